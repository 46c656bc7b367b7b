//! Every kind of release is checked, with records that come close to its charge; a charge slightly too small is a finding.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use super::*;

fn units() -> [PrivacyUnit; 4] {
    let person = |adjacency| PrivacyUnit::person(adjacency, 3).unwrap();
    let row = PrivacyUnit::row;
    [row(Adjacency::Replace), row(Adjacency::AddRemove), person(Adjacency::Replace), person(Adjacency::AddRemove)]
}

#[test]
fn every_kind_has_its_place() {
    let forms: Vec<Form> = std::iter::successors(after(None), |form| after(Some(*form))).collect();
    let codes: BTreeSet<u32> =
        forms.iter().filter(|form| form.influence == OfInfluence::Whole).map(|form| form.kind.code()).collect();
    assert_eq!((forms.len(), codes.len()), (26, 12));
    let words: BTreeSet<&str> = forms.iter().map(|form| form.kind.release()).collect();
    assert_eq!(words, BTreeSet::from(QueryKind::RELEASES), "every word of a policy");
}

/// Records come within a tenth of every charge: a charge that is smaller by more is found. The seeds are fixed.
#[test]
fn no_unit_moves_a_release_by_more_than_its_charge() {
    for unit in units() {
        let (reached, findings) = check(unit, Sensitivity::units).unwrap();
        assert!(findings.is_empty(), "{unit:?}: {findings:?}");
        for Reached { form, share, .. } in &reached {
            assert!(*share > 0.9 * most_share(*form, unit), "{unit:?} {form:?}: {share}");
        }
        let expected = if unit == PrivacyUnit::row(Adjacency::Replace) { 26 } else { 25 };
        assert_eq!(reached.len(), expected, "{unit:?}: a statistic is released of replaced rows alone");
    }
}

/// The charge of a matrix holds for every number of rows. Replacement moves one of a single row by the root of a half of that.
fn most_share(form: Form, unit: PrivacyUnit) -> f64 {
    let is_one_row = form.kind == (QueryKind::Curvature { parameters: 1 }) && unit.adjacency == Adjacency::Replace;
    if is_one_row { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 }
}

#[test]
fn a_charge_that_is_too_small_is_a_finding_for_every_kind() {
    for unit in units() {
        let (reached, findings) = check(unit, |charged| charged.units() / 10 * 9).unwrap();
        let whole = reached.iter().filter(|reached| most_share(reached.form, unit) == 1.0).count();
        assert_eq!(findings.len(), whole, "{unit:?}: {findings:?}");
        let (reached, findings) = check(unit, |charged| charged.units() / 10 * 6).unwrap();
        assert_eq!(findings.len(), reached.len(), "{unit:?}: {findings:?}");
    }
}
