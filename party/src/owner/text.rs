//! Texts for the owner, identical wherever they are shown.

use conclave_common::epsilon;
use conclave_common::job::{ANY_MODEL, Algorithm, ClipRule, HmcTest, JobSpec, Warmup, Weights};
use conclave_common::schema::ColumnSpec;
use conclave_pages::document::{Fact, fact};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit, gaussian_dp};
use conclave_privacy::mechanism::QueryKind;

use super::figure::figure;
use super::jobs::JobView;
use super::masked;
use super::price::price;
use super::samples::samples;

/// States the unit of privacy, as a sentence without its full stop.
pub(crate) fn unit_of_privacy(unit: PrivacyUnit) -> String {
    let who = match unit.records_per_person() {
        None => "protects one row, not one person: if a person has several rows, the guarantee is weaker for that person".into(),
        Some(limit) => format!("protects one person, with all of the person's rows that are used, at most {limit}"),
    };
    match unit.adjacency {
        Adjacency::Replace => who,
        Adjacency::AddRemove => format!("{who}; its presence in the data is protected, and so is the number of such units"),
    }
}

/// Formats a column with its public bounds.
pub(crate) fn column(name: &str, spec: Option<&ColumnSpec>) -> String {
    match spec {
        Some(ColumnSpec::Numeric { min, max }) => format!("{name}, clamped to {} to {}", figure(*min), figure(*max)),
        Some(ColumnSpec::Binary) => format!("{name}, 0 or 1"),
        Some(ColumnSpec::Levels(levels)) => format!("{name}, one of {}", levels.join(", ")),
        None => name.to_owned(),
    }
}

/// Describes the queries and their number.
fn queries(spec: &JobSpec) -> String {
    let Some(most) = spec.most_rounds() else {
        return spec.query_description();
    };
    let what: Vec<&str> = spec
        .releases()
        .into_iter()
        .map(|release| match release {
            "moments" if spec.releases().len() == 1 => {
                "a table: the number of records with each combination of the predictors' levels, the sum of their outcomes, and once \
                 the sum of all squared outcomes"
            }
            "moments" => "second moments (sums of products) of the columns, two by two",
            "score" => "scores: gradient and curvature of the log likelihood at a setting of the model",
            "statistic" if spec.algorithm == Algorithm::Augmentation && spec.model.design().is_some() => {
                "sums of the columns over the records, and of their products two by two"
            }
            "statistic" => "the model's sufficient statistics (sums over the records)",
            "table" if spec.algorithm == Algorithm::Augmentation => "tables: the number of records with each class and level",
            "table" if spec.weights != Weights::Never => {
                "tables: the number of records by the outcome, by the distance of the outcome from the model's prediction, and by how unusual \
                 the predictors are"
            }
            "table" if spec.releases().len() > 1 => {
                "once, a histogram: the number of records with and without an event in ranges of time"
            }
            "table" => "a table: the number of records with each outcome and each combination of the predictors' levels",
            other => other,
        })
        .collect();
    let (what, times) = (what.join("; "), if most == 1 { "once".to_owned() } else { format!("at most {most} times") });
    let stages = match &spec.release {
        release if most > 4 && release.stages.is_none() && release.curvature_share.is_none() => {
            format!(", up to {} of them to find the point of the last three", most - 3)
        }
        _ => String::new(),
    };
    let apart = match spec.sites {
        Some(_) => {
            ", at points of this party's own. The job estimates how this party differs from the others, and its answers are kept apart"
        }
        None => "",
    };
    format!("{what}; queried {times}{stages}{apart}. {ANY_MODEL}")
}

/// Describes a job for a party that protects `unit`.
pub(crate) fn describe(spec: &JobSpec, unit: PrivacyUnit) -> Vec<Fact> {
    let columns: Vec<String> = spec.model.columns().into_iter().map(|name| column(name, spec.columns.get(name))).collect();
    let warmup = match spec.sampler.warmup {
        Warmup::Sweeps(sweeps) => format!("{sweeps} sweeps of warm-up"),
        Warmup::UntilRhat { max, .. } => format!("at most {max} sweeps of warm-up"),
    };
    let clip = match spec.privacy.clip {
        Some(ClipRule::PerRecord(clip)) => format!("{} log-likelihood units per record, set by the job", figure(clip)),
        Some(ClipRule::Slope(slope)) => {
            format!("{} log-likelihood units per record for each unit of a step's length, set by the job", figure(slope))
        }
        None => "the model's own public bound".into(),
    };
    let budget = spec.privacy.budget;
    let (count, draws, sd) = (spec.sampler.chains, spec.sampler.draws, figure(spec.privacy.noise.sd()));
    let at_most = if spec.plans_chains() { "at most " } else { "" };
    let share = "each step takes the same share of the job's budget, which sets its noise";
    let (chains, noise, clip) = match spec.most_rounds() {
        Some(_) => (
            format!("{count} chains of at most {draws} draws, made from the releases without further queries"),
            "each release takes a share of the job's budget, which sets its noise".to_owned(),
            "the contribution of a record is limited to a public length".to_owned(),
        ),
        None if spec.is_polished() => (
            format!(
                "{at_most}{count} chains of at most {draws} steps after a warm-up, and then of {} draws; each step and each draw takes one \
                 query",
                spec.draws_asked()
            ),
            format!("{share}; every later number has noise of standard deviation {sd}"),
            "the contribution of a record is limited to public lengths, and then by the model's own public bound".to_owned(),
        ),
        None if spec.algorithm.follows_gradients() => {
            let queries = match (spec.algorithm.is_unadjusted(), spec.sampler.hmc.test) {
                (true, _) | (_, HmcTest::None) => "one query".to_owned(),
                (_, HmcTest::Remainder) => "two queries".to_owned(),
                (_, HmcTest::Ratio { kicks }) => format!("{} queries", kicks + 1),
            };
            let noise = match spec.runs_dp_hmc() {
                true => format!(
                    "each gradient takes the same share of the job's budget, which sets its noise; every number of the tests has noise of \
                     standard deviation {sd}"
                ),
                false => share.to_owned(),
            };
            let chains = format!("{at_most}{count} chains of at most {draws} draws, each of which takes {queries}");
            (chains, noise, "the contribution of a record is limited to public lengths".to_owned())
        }
        None if spec.algorithm == Algorithm::Ops => (
            format!("at most {draws} independent draws, each one of {} candidates", spec.sampler.ops.candidates),
            "none is added: a draw is random itself, and is charged by the range of its log probabilities between neighbouring data"
                .to_owned(),
            clip,
        ),
        None => {
            let noise = match spec.asks(QueryKind::SecondMoment) {
                false => format!("standard deviation {sd} of every number while the chains run"),
                true => format!(
                    "standard deviation {sd} of every subsampled number while the chains run; the noise of the sums of squares is set so \
                     that all of them together take 1/25 of the job's budget"
                ),
            };
            (format!("{count} chains of at most {draws} draws after {warmup}"), noise, clip)
        }
    };
    let (chains, noise) = match spec.start_share() {
        Some(_) => (
            format!("{chains}; all start at one draw, one of {} candidates", spec.sampler.ops.candidates),
            format!("{noise}; none is added to the draw at which the chains start, which is random itself"),
        ),
        None => (chains, noise),
    };
    let weights = match spec.weights {
        Weights::Never => "",
        _ if spec.weighs_chains() => "; records with unusual predictors may count less",
        Weights::Auto => "; records with unusual predictors or outcomes may count less",
        Weights::Always => "; records with unusual predictors or outcomes count less",
    };
    let fixed = if spec.exposure_fixed { "; the analyst states that the exposure was fixed by design" } else { "" };
    let power = match (spec.power, spec.power_prior) {
        (1.0, _) => String::new(),
        (power, false) => format!(", likelihood raised to the power {}", figure(power)),
        (power, true) => format!(", likelihood and prior raised to the power {}", figure(power)),
    };
    let inert = if spec.incomplete_rows { "; unusable rows are counted and contribute zero" } else { "" };
    let mut facts = vec![
        fact("model", format!("{}{power}{weights}{fixed}{inert}", spec.model.describe())),
        fact("columns", columns.join("; ")),
        fact("queries", queries(spec)),
        fact("parties", spec.parties.join(", ")),
        fact("chains", chains),
        fact("noise", noise),
        fact("price", price(spec)),
        fact("clip", clip),
        fact("at most", format!("epsilon {} at delta {}", figure(budget.epsilon), figure(budget.delta))),
    ];
    facts.extend(samples(spec, unit).map(|words| fact("samples", words)));
    facts.extend(masked::promise(spec).map(|words| fact("masked", words)));
    facts.extend((spec.parties.len() > 1).then(|| fact("together", at_several_owners(spec))));
    facts
}

/// States who signed a job and what they say of the study.
pub(crate) fn signed(job: &JobView) -> Vec<Fact> {
    let mut facts = vec![fact("analyst's key", job.signer())];
    let study = job.spec.as_ref().map(|spec| &spec.study);
    facts.extend(study.and_then(|study| study.purpose.as_ref()).map(|purpose| fact("purpose, by the analyst", purpose)));
    facts.extend(study.and_then(|study| study.contact.as_ref()).map(|contact| fact("contact", contact)));
    facts
}

/// Names what no guarantee covers, in one sentence.
pub(crate) fn not_protected(unit: PrivacyUnit) -> String {
    let number = match (unit.adjacency, unit.records_per_person()) {
        (Adjacency::AddRemove, _) => "",
        (Adjacency::Replace, None) => "; the number of rows",
        (Adjacency::Replace, Some(_)) => "; the number of persons",
    };
    format!(
        "Not protected: what holds for everyone alike; that you take part, and the job itself{number}; the same patient's data elsewhere; \
         records that are read on this machine."
    )
}

/// States the loss of a person with records at several owners of the job. Guarantees are separate, and their mu squared add; if
/// one sum is opened, mu itself adds.
pub(crate) fn at_several_owners(spec: &JobSpec) -> String {
    if let Some(masked) = masked::at_several_owners(spec) {
        return masked;
    }
    let (owners, budget) = (spec.parties.len(), spec.privacy.budget);
    let mu = gaussian_dp::mu(budget.epsilon, budget.delta) * (owners as f64).sqrt();
    format!(
        "each owner's guarantee covers its own records, and guarantees add: for a person with records at all {owners} owners, up \
         to epsilon {} at delta {}",
        epsilon::spent(gaussian_dp::epsilon(mu, budget.delta)),
        figure(budget.delta)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_unit_of_privacy_is_stated_explicitly() {
        assert!(unit_of_privacy(PrivacyUnit::default()).starts_with("protects one row, not one person"));
        let person = PrivacyUnit::person(Adjacency::AddRemove, 5).unwrap();
        let words = unit_of_privacy(person);
        assert!(words.contains("one person") && words.contains("at most 5") && words.contains("number"), "{words}");
    }

    /// With four owners mu is doubled, as computed by the accountant; with one owner there is no such line.
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
        let doubled = epsilon::spent(gaussian_dp::epsilon(2.0 * gaussian_dp::mu(1.0, 1e-6), 1e-6));
        let words = describe(r#""a", "b", "c", "d""#).unwrap();
        assert!(
            words.contains("guarantees add") && words.contains(&format!("all 4 owners, up to epsilon {doubled} at")),
            "{words}"
        );
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
            lines.into_iter().find(|(name, _)| *name == "queries").unwrap().1
        };
        let once = "noisy-statistics";
        for (words, there) in [
            (
                spec(once, "logistic", "binary = true", ""),
                &["scores: gradient", "at most 11 times, up to 8 of them to find the point of the last three", ANY_MODEL][..],
            ),
            (spec(once, "logistic", "binary = true", "[release]\nstages = [0.5, 0.5]\n"), &["at most 4 times.", ANY_MODEL]),
            (spec(once, "linear", "min = 0, max = 9", ""), &["second moments", "scores", "at most 4 times.", ANY_MODEL]),
            (spec("hmc", "logistic", "binary = true", ""), &["gradient at the middle of the step", "each step", ANY_MODEL]),
            (
                spec("augmentation", "logistic", "binary = true", ""),
                &["sums of the columns over the records, and of their products two by two", "queried once.", ANY_MODEL],
            ),
            (
                spec("sgld", "logistic", "binary = true", ""),
                &["gradient at the chain's current position", "each step", ANY_MODEL],
            ),
            (
                spec("sgfs", "logistic", "binary = true", "[sampler]\nbatch = 0.25\n"),
                &["each from a secret random sample", "sampling rate 0.25", ANY_MODEL],
            ),
            (
                spec("sghmc", "logistic", "binary = true", "[sampler]\nbatch = 0.25\npolish = 9\n"),
                &["sampling rate 0.25", "then, over all of them, how much better", ANY_MODEL],
            ),
            (
                spec("sgnht", "logistic", "binary = true", ""),
                &["gradient at the chain's current position", "each step", ANY_MODEL],
            ),
            (
                spec("hmc", "logistic", "binary = true", "[sampler]\nfriction = 0\nrefresh = 7\n"),
                &["gradient at the middle of the step", "after every 7 of them one more number", ANY_MODEL],
            ),
            (
                spec("barker", "logistic", "binary = true", ""),
                &["how much better one setting", "one number at a time, round after round"],
            ),
            (
                spec("barker", "logistic", "binary = true", "clip = 0.05\n[sampler]\nbatch = 0.5\n"),
                &["a fresh secret sample of the records", "a sum of squares over all of them"],
            ),
            (
                spec("ops", "logistic", "binary = true", "[sampler]\ndraws = 3\ncandidates = 512\n"),
                &["a few dozen numbers", "at most 3 answers, each the index of one of 512 public settings", "and nothing else"],
            ),
            (
                spec("sgnht", "logistic", "binary = true", "[sampler]\nstart = \"ops\"\ncandidates = 512\n"),
                &[
                    "scores (gradient and curvature",
                    "the index of one of 512 public settings",
                    "gradient at the chain's current position",
                    ANY_MODEL,
                ],
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
        let words = queries(&JobSpec::parse(family).unwrap());
        assert!(
            words.contains("sufficient statistics") && words.contains("queried once.") && words.contains(ANY_MODEL),
            "{words}"
        );
    }
}
