//! The owner's text says the same things in the same words wherever they are read.

use conclave_common::accounting::{Adjacency, PrivacyUnit};
use conclave_common::job::{ClipRule, JobSpec, Warmup};
use conclave_common::schema::ColumnSpec;

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

/// A number for people: six significant digits at most.
pub(crate) fn figure(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) {
        let digits = 5 - (x.abs().max(1e-3).log10().floor() as i32).clamp(-3, 5);
        let text = format!("{x:.*}", digits as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:e}")
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

/// What is asked, as lines of a name and its words.
pub(crate) fn describe(spec: &JobSpec) -> Vec<(&'static str, String)> {
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
    vec![
        (
            "model",
            if spec.power == 1.0 {
                spec.model.describe()
            } else {
                format!("{}, likelihood raised to the power {}", spec.model.describe(), figure(spec.power))
            },
        ),
        ("columns", columns.join("; ")),
        ("parties", spec.parties.join(", ")),
        ("chains", format!("{} chains of at most {} draws after {warmup}", spec.sampler.chains, spec.sampler.draws)),
        ("noise", format!("standard deviation {} of every number while the chains run", figure(spec.privacy.noise.sd()))),
        ("clip", clip),
        ("at most", format!("epsilon {} at delta {}", figure(budget.epsilon), figure(budget.delta))),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_digits() {
        for (x, shown) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.001, "0.001"),
            (1.234_567_89, "1.23457"),
            (123_456.7, "123457"),
            (100.0, "100"),
            (1e-6, "1e-6"),
            (2e7, "2e7"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(figure(x), shown);
        }
    }

    #[test]
    fn the_unit_of_privacy_is_said_in_so_many_words() {
        assert!(unit_of_privacy(PrivacyUnit::default()).starts_with("protects one row, not one person"));
        let person = PrivacyUnit::person(Adjacency::AddRemove, 5).unwrap();
        let words = unit_of_privacy(person);
        assert!(words.contains("one person") && words.contains("at most 5") && words.contains("number"), "{words}");
    }
}
