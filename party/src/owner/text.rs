//! The owner's text says the same things in the same words wherever they are read.

use conclave_common::job::{ANY_MODEL, Algorithm, ClipRule, HmcTest, JobSpec, Warmup};
use conclave_common::schema::ColumnSpec;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit, gaussian_dp};
use conclave_privacy::mechanism::QueryKind;

use super::figure::figure;
use super::masked;
use super::price::price;
use super::samples::samples;

/// What a guarantee protects, as a sentence without its full stop.
pub(crate) fn unit_of_privacy(unit: PrivacyUnit) -> String {
    let who = match unit.records_per_person() {
        None => {
            "protects one row, not one person: where a person has several rows, the guarantee is weaker for that person".into()
        }
        Some(limit) => format!("protects one person, with all of the person's rows that are used, at most {limit}"),
    };
    match unit.adjacency {
        Adjacency::Replace => who,
        Adjacency::AddRemove => format!("{who}; whether it is in the data at all is protected, and so is their number"),
    }
}

/// A column with its public bounds.
pub(crate) fn column(name: &str, spec: Option<&ColumnSpec>) -> String {
    match spec {
        Some(ColumnSpec::Numeric { min, max }) => format!("{name}, clamped to {} to {}", figure(*min), figure(*max)),
        Some(ColumnSpec::Binary) => format!("{name}, 0 or 1"),
        Some(ColumnSpec::Levels(levels)) => format!("{name}, one of {}", levels.join(", ")),
        None => name.to_owned(),
    }
}

/// What the noise of a kind of release is counted in.
pub(crate) fn noise_unit(kind: QueryKind) -> &'static str {
    match kind {
        QueryKind::Ratio | QueryKind::SampledRatio | QueryKind::Remainder { .. } | QueryKind::Choice { .. } => {
            "in log-likelihood units"
        }
        QueryKind::Statistic { .. } => "in widths of the statistic's range",
        QueryKind::SecondMoment => "in squares of what one record or person contributes at most",
        QueryKind::ClipCount | QueryKind::Table { .. } => "in records or persons counted",
        QueryKind::Moments { .. } | QueryKind::Curvature { .. } => "in products of two numbers between -1 and 1",
        QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } => "in what one record contributes at most",
    }
}

/// What of the data is asked for, and how often.
fn asked_for(spec: &JobSpec) -> String {
    let Some(most) = spec.most_rounds() else {
        return spec.asked_for();
    };
    let what: Vec<&str> = spec
        .releases()
        .into_iter()
        .map(|release| match release {
            "moments" => "second moments (sums of products) of the columns, two by two",
            "score" => "scores: gradient and curvature of the log likelihood at a setting of the model",
            "statistic" => "the model's sufficient statistics (sums over the records)",
            "table" if spec.algorithm == Algorithm::Augmentation => "tables: how many records have each class and level",
            "table" => "a table: how many records have each outcome with each combination of the predictors' levels",
            other => other,
        })
        .collect();
    let (what, times) = (what.join("; "), if most == 1 { "once".to_owned() } else { format!("at most {most} times") });
    let stages = match &spec.release {
        release if most > 2 && release.stages.is_none() && release.curvature_share.is_none() => {
            format!(", up to {} of them to find where the last three are asked", most - 3)
        }
        _ => String::new(),
    };
    format!("{what}; asked {times}{stages}. {ANY_MODEL}")
}

/// What is asked of a party that protects `unit`, as lines of a name and its words.
pub(crate) fn describe(spec: &JobSpec, unit: PrivacyUnit) -> Vec<(&'static str, String)> {
    let columns: Vec<String> = spec.model.columns().into_iter().map(|name| column(name, spec.columns.get(name))).collect();
    let warmup = match spec.sampler.warmup {
        Warmup::Sweeps(sweeps) => format!("{sweeps} sweeps of warm-up"),
        Warmup::UntilRhat { max, .. } => format!("at most {max} sweeps of warm-up"),
    };
    let clip = match spec.privacy.clip {
        Some(ClipRule::PerRecord(clip)) => format!("{} log-likelihood units a record, set by the job", figure(clip)),
        Some(ClipRule::Slope(slope)) => {
            format!("{} log-likelihood units a record for each unit of a step's length, set by the job", figure(slope))
        }
        None => "the model's own public bound".into(),
    };
    let budget = spec.privacy.budget;
    let (chains, noise, clip) = match spec.most_rounds() {
        Some(_) => (
            format!(
                "{} chains of at most {} draws, made from what was released: they ask nothing",
                spec.sampler.chains, spec.sampler.draws
            ),
            "each release takes a share of the job's budget, and as much noise as that needs".to_owned(),
            "what a record adds is held to a public length".to_owned(),
        ),
        None if spec.is_polished() => (
            format!(
                "{}{} chains of at most {} steps after a warm-up, and then of {} draws; a step takes one question, and so does a draw",
                if spec.plans_chains() { "at most " } else { "" },
                spec.sampler.chains,
                spec.sampler.draws,
                spec.draws_asked()
            ),
            format!(
                "each step takes the same share of the job's budget, and as much noise as that needs; standard deviation {} of every number after them",
                figure(spec.privacy.noise.sd())
            ),
            "what a record adds is held to public lengths, and then to the model's own public bound".to_owned(),
        ),
        None if spec.algorithm.follows_gradients() => (
            format!(
                "{}{} chains of at most {} draws, each of which takes {}",
                if spec.plans_chains() { "at most " } else { "" },
                spec.sampler.chains,
                spec.sampler.draws,
                match (spec.algorithm.is_unadjusted(), spec.sampler.hmc.test) {
                    (true, _) | (_, HmcTest::None) => "one question".to_owned(),
                    (_, HmcTest::Remainder) => "two questions".to_owned(),
                    (_, HmcTest::Ratio { kicks }) => format!("{} questions", kicks + 1),
                }
            ),
            if spec.runs_dp_hmc() {
                format!(
                    "each gradient takes the same share of the job's budget, and as much noise as that needs; standard deviation {} of every number \
                     of the tests",
                    figure(spec.privacy.noise.sd())
                )
            } else {
                "each step takes the same share of the job's budget, and as much noise as that needs".to_owned()
            },
            "what a record adds is held to public lengths".to_owned(),
        ),
        None if spec.algorithm == Algorithm::Ops => (
            format!("at most {} independent draws, each one of {} candidates", spec.sampler.draws, spec.sampler.ops.candidates),
            "a draw has none: it is random itself, and costs what the range of its log probabilities between neighbouring data comes to".to_owned(),
            clip,
        ),
        None => (
            format!("{} chains of at most {} draws after {warmup}", spec.sampler.chains, spec.sampler.draws),
            match spec.asks(QueryKind::SecondMoment) {
                false => format!("standard deviation {} of every number while the chains run", figure(spec.privacy.noise.sd())),
                true => format!(
                    "standard deviation {} of every number over a sample while the chains run; of the sums of squares so much that all of them together \
                     take a twenty-fifth of the job's budget",
                    figure(spec.privacy.noise.sd())
                ),
            },
            clip,
        ),
    };
    let together = (spec.parties.len() > 1).then(|| ("together", at_several_owners(spec)));
    let masked = masked::promise(spec).map(|words| ("masked", words));
    let lines = vec![
        ("model", {
            let power = (spec.power != 1.0).then(|| format!(", likelihood raised to the power {}", figure(spec.power)));
            let inert = spec.incomplete_rows.then_some("; rows that can't be used count and add nothing");
            format!("{}{}{}", spec.model.describe(), power.unwrap_or_default(), inert.unwrap_or_default())
        }),
        ("columns", columns.join("; ")),
        ("asks for", asked_for(spec)),
        ("parties", spec.parties.join(", ")),
        ("chains", chains),
        ("noise", noise),
        ("price", price(spec)),
        ("clip", clip),
        ("at most", format!("epsilon {} at delta {}", figure(budget.epsilon), figure(budget.delta))),
    ];
    lines.into_iter().chain(samples(spec, unit).map(|words| ("samples", words))).chain(masked).chain(together).collect()
}

/// What the job comes to for a person who is at more than one of its owners: promises are made owner by owner, and their mu squared add; where
/// one sum is opened, mu does.
pub(crate) fn at_several_owners(spec: &JobSpec) -> String {
    if let Some(masked) = masked::at_several_owners(spec) {
        return masked;
    }
    let (owners, budget) = (spec.parties.len(), spec.privacy.budget);
    let mu = gaussian_dp::mu(budget.epsilon, budget.delta) * (owners as f64).sqrt();
    format!(
        "each owner promises for its own records, and promises add: for a person with records at all {owners} owners up to epsilon {} at \
         delta {}",
        figure(gaussian_dp::epsilon(mu, budget.delta)),
        figure(budget.delta)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_unit_of_privacy_is_said_in_so_many_words() {
        assert!(unit_of_privacy(PrivacyUnit::default()).starts_with("protects one row, not one person"));
        let person = PrivacyUnit::person(Adjacency::AddRemove, 5).unwrap();
        let words = unit_of_privacy(person);
        assert!(words.contains("one person") && words.contains("at most 5") && words.contains("number"), "{words}");
    }

    /// With four owners mu is twice as much: what the accountant makes of it, and nothing where there is one owner.
    #[test]
    fn promises_of_several_owners_are_said_to_add() {
        let describe = |parties: &str| {
            let text = format!(
                "name = \"i\"\nparties = [{parties}]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\n\
                 y = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            );
            let lines = super::describe(&JobSpec::parse(&text).unwrap(), PrivacyUnit::default());
            lines.into_iter().find(|(name, _)| *name == "together").map(|(_, words)| words)
        };
        let doubled = figure(gaussian_dp::epsilon(2.0 * gaussian_dp::mu(1.0, 1e-6), 1e-6));
        let words = describe(r#""a", "b", "c", "d""#).unwrap();
        assert!(words.contains("promises add") && words.contains(&format!("all 4 owners up to epsilon {doubled} at")), "{words}");
        assert_eq!(describe(r#""a""#), None);
    }

    #[test]
    fn what_is_asked_for_is_said_with_how_often() {
        let spec = |algorithm: &str, kind: &str, outcome: &str, more: &str| {
            let text = format!(
                "name = \"i\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
                 predictors = [\"age\"]\n[columns]\ny = {{ {outcome} }}\nage = {{ min = 20, max = 80 }}\n[privacy]\nepsilon = 1.0\n\
                 delta = 1e-6\n{more}"
            );
            let lines = describe(&JobSpec::parse(&text).unwrap(), PrivacyUnit::default());
            lines.into_iter().find(|(name, _)| *name == "asks for").unwrap().1
        };
        let once = "noisy-statistics";
        for (words, there) in [
            (
                spec(once, "logistic", "binary = true", ""),
                &["scores: gradient", "at most 11 times, up to 8 of them to find where the last three", ANY_MODEL][..],
            ),
            (spec(once, "logistic", "binary = true", "[release]\nstages = [0.5, 0.5]\n"), &["at most 4 times.", ANY_MODEL]),
            (spec(once, "linear", "min = 0, max = 9", ""), &["second moments", "scores", "at most 2 times.", ANY_MODEL]),
            (spec("hmc", "logistic", "binary = true", ""), &["gradient at the middle of the step", "step after step", ANY_MODEL]),
            (spec("sgld", "logistic", "binary = true", ""), &["gradient where the chain is", "step after step", ANY_MODEL]),
            (
                spec("sgfs", "logistic", "binary = true", "[sampler]\nbatch = 0.25\n"),
                &["each over a hidden random sample of 0.25 of", ANY_MODEL],
            ),
            (
                spec("sghmc", "logistic", "binary = true", "[sampler]\nbatch = 0.25\npolish = 9\n"),
                &["each over a hidden random sample of 0.25 of", "then, over all of them, how much better", ANY_MODEL],
            ),
            (spec("sgnht", "logistic", "binary = true", ""), &["gradient where the chain is", "step after step", ANY_MODEL]),
            (
                spec("hmc", "logistic", "binary = true", "[sampler]\nfriction = 0\nrefresh = 7\n"),
                &["gradient at the middle of the step", "after every 7 of them one number more", ANY_MODEL],
            ),
            (
                spec("barker", "logistic", "binary = true", ""),
                &["how much better one setting", "one number at a time, round after round"],
            ),
            (
                spec("barker", "logistic", "binary = true", "clip = 0.05\n[sampler]\nbatch = 0.5\n"),
                &["a fresh hidden sample of the records", "a sum of squares over all of them"],
            ),
            (
                spec("ops", "logistic", "binary = true", "[sampler]\ndraws = 3\ncandidates = 512\n"),
                &["some dozens of numbers", "at most 3 answers of the number of one of 512 settings", "and nothing else"],
            ),
            (spec("penalty", "logistic", "binary = true", ""), &["how much better one setting", "round after round"]),
            (
                spec("penalty", "logistic", "binary = true", "[sampler]\nlocate = \"gradients\"\n"),
                &["scores (gradient and curvature", "to begin with; then how much better", "round after round", ANY_MODEL],
            ),
        ] {
            assert!(there.iter().all(|part| words.contains(part)), "{words}");
        }
        let family = "name = \"i\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n\
                      [columns]\ny = { binary = true }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        let words = asked_for(&JobSpec::parse(family).unwrap());
        assert!(words.contains("sufficient statistics") && words.contains("asked once.") && words.contains(ANY_MODEL), "{words}");
    }
}
