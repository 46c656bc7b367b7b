//! Warnings about a budget that protects little, in the same words wherever the job is shown.

use super::privacy_spec::PrivacySpec;

/// Largest epsilon that is shown without a warning: beyond it the guarantee excludes hardly any inference about a record.
pub const MOST_EPSILON: f64 = 20.0;

impl PrivacySpec {
    /// Returns the warnings about the job's budget. `parties` are names with the known numbers of records or persons.
    pub fn warnings<'a>(&self, parties: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> Vec<String> {
        let (epsilon, delta) = (self.budget.epsilon, self.budget.promised_delta());
        let large = format!(
            "privacy.epsilon = {epsilon} is above {MOST_EPSILON}: the guarantee excludes hardly any inference about a record. Lower \
             `privacy.epsilon`, or use it for made-up records alone."
        );
        let protected = self.budget.unit;
        let many = |(name, units): (&str, Option<u64>)| {
            let units = units.filter(|units| *units > 0 && delta * *units as f64 >= 1.0)?;
            Some(format!(
                "privacy.delta = {delta:e} is at least 1/{units}, and {name} has {units} units ({protected}): publishing one of them would \
                 satisfy the guarantee. Lower `privacy.delta` to a small part of 1/{units}."
            ))
        };
        let large = (epsilon > MOST_EPSILON).then_some(large);
        large.into_iter().chain(parties.into_iter().filter_map(many)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::job::JobSpec;

    #[test]
    fn a_large_epsilon_and_a_delta_of_one_record_are_warned_of() {
        let warnings = |epsilon: f64, delta: f64, records: Option<u64>| {
            let text = format!(
                "name = \"t\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = {{ binary = true }}\n\
                 [privacy]\nepsilon = {epsilon:?}\ndelta = {delta:?}\n"
            );
            JobSpec::parse(&text).unwrap().privacy.warnings([("hospital-a", records)])
        };
        assert!(warnings(20.0, 1e-6, Some(999_000)).is_empty() && warnings(1.0, 1e-3, None).is_empty());
        let [epsilon] = warnings(20.5, 1e-6, None).try_into().unwrap();
        assert!(epsilon.contains("20.5 is above 20"), "{epsilon}");
        let [delta] = warnings(1.0, 1e-3, Some(1000)).try_into().unwrap();
        assert!(delta.contains("hospital-a has 1000 units") && delta.contains("1/1000"), "{delta}");
        assert_eq!(warnings(30.0, 1e-3, Some(1001)).len(), 2);
    }
}
