//! The total number of records, where every party publishes its own.

use conclave_pages::text::thousands;
use serde_json::Value;

/// Returns the number of records of all parties, formatted: `24,000`. For parties that protect persons it is that of persons. `None` if any
/// party's number is not public, or if some count records and others persons.
pub(super) fn total(parties: &[Value]) -> Option<String> {
    let sum = |key: &str| parties.iter().map(|party| party[key].as_u64()).sum::<Option<u64>>();
    let records = sum("records").map(thousands);
    let found = records.or_else(|| sum("persons").map(|persons| format!("{} persons", thousands(persons))));
    found.filter(|_| !parties.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_total_exists_only_where_every_party_s_number_is_public() {
        let of = |key: &str, n: u64| json!({ key: n });
        assert_eq!(total(&[of("records", 1_000), of("records", 234)]).as_deref(), Some("1,234"));
        assert_eq!(total(&[of("persons", 1_000), of("persons", 234)]).as_deref(), Some("1,234 persons"));
        for parties in [vec![], vec![of("records", 1), json!({})], vec![of("records", 1), of("persons", 1)]] {
            assert_eq!(total(&parties), None);
        }
    }
}
