//! Blocks that are refused, and the most extreme admissible ones.

use super::subsampled::release;
use super::*;

#[test]
fn inadmissible_blocks_are_refused_by_name() {
    let good = release(0.01, 0.5, Adjacency::Replace);
    for q in [0.0, -0.1, 0.9 / f64::from(1 << 20), 1.01, f64::NAN, f64::INFINITY] {
        assert!(matches!(SamplingProbability::at_least(q), Err(SubsampledError::Probability(_))), "{q}");
    }
    assert!(SamplingProbability::from_parts(0).is_err() && SamplingProbability::from_parts((1 << 20) + 1).is_err());
    assert_eq!(SamplingProbability::at_least(0.01).unwrap().parts(), 10_486);
    assert_eq!(SamplingProbability::at_least(1.0).unwrap(), SamplingProbability::ONE);
    let wide = release(0.01, 1.500_001, Adjacency::Replace);
    assert!(matches!(wide.block_charge(5, 1 << 30), Err(SubsampledError::RelativeSensitivity(_))));
    assert!(release(0.5, 1.5, Adjacency::Replace).block_charge(2, 1 << 30).is_ok());
    assert!(release(1.0, 1.6, Adjacency::Replace).block_charge(5, 0).is_ok());
    assert!(matches!(good.block_charge(0, 1 << 30), Err(SubsampledError::Releases(0))));
    assert!(matches!(good.block_charge(MOST_RELEASES + 1, 1 << 30), Err(SubsampledError::Releases(_))));
    let none = SubsampledRelease { components: 0, ..good };
    assert!(matches!(none.block_charge(5, 1 << 30), Err(SubsampledError::Draws { .. })));
    let many = SubsampledRelease { components: u32::MAX, ..good };
    assert!(matches!(many.block_charge(5_000, 1 << 30), Err(SubsampledError::Draws { .. })));
    for reserve in [0, MOST_RESERVE_UNITS + 1, u64::MAX] {
        assert_eq!(good.block_charge(5, reserve), Err(SubsampledError::Reserve(reserve)));
    }
    assert!(matches!(release(1.0, 0.5, Adjacency::Replace).losses(5, 1e-6), Err(SubsampledError::Probability(_))));
    for delta in [0.0, 1.0, f64::NAN, 1e-19] {
        assert!(matches!(good.losses(5, delta), Err(SubsampledError::Accounting(AccountingError::Delta(_)))));
    }
    let expensive = SubsampledRelease { probability: SamplingProbability::ONE, ..good };
    let overflow = expensive.block_charge(MOST_RELEASES, 0);
    assert!(matches!(overflow, Err(SubsampledError::Accounting(AccountingError::ChargeOverflow { .. }))), "{overflow:?}");
}

#[test]
fn far_losses_cost_what_all_units_do() {
    // Half of all units a hundred thousand times: e^epsilon exceeds a float's range, and the charge without sampling remains
    // valid.
    let one = release(0.5, 1.0, Adjacency::AddRemove);
    let charge = one.block_charge(5_000, 1 << 34).unwrap();
    assert_eq!(
        charge.covering_units,
        5_000 * PrivacyUnit::row(Adjacency::AddRemove).charge_units(one.sensitivity, one.noise).unwrap()
    );
}

#[test]
fn extremes_are_priced() {
    let least = 1.0 / f64::from(1 << 20);
    let nearly = 1.0 - least;
    for (q, k, releases) in
        [(least, 1e-14, MOST_RELEASES), (least, 1.5, 1), (nearly, 1.5, 1), (nearly, 1e-14, 3), (0.5, 1e-6, 1), (nearly, 0.01, 40)]
    {
        for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
            for reserve_units in [1, MOST_RESERVE_UNITS] {
                let one = release(q, k, adjacency);
                let charge = one.block_charge(releases, reserve_units).unwrap();
                let whole = adjacency.factor() as f64 * one.relative_sensitivity() * (releases as f64).sqrt();
                assert!(
                    charge.covering_units >= 1 && charge.covering_mu() <= whole + 1e-3,
                    "{q} {k} {releases}: {charge:?} {whole}"
                );
                // A reserve as large as the probability of being in any sample covers everything.
                let hidden = charge.reserve() >= q * releases as f64;
                assert!(!hidden || charge.covering_units == 1, "{q} {k} {releases}: {charge:?}");
            }
        }
    }
}
