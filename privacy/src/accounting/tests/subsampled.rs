//! Blocks: reference values, properties of all blocks, and faults that must be detected.

use super::*;
use crate::accounting::gaussian_cover::GaussianCover;

pub(super) const RESERVE_UNIT: f64 = (1_u64 << RESERVE_LOG2) as f64;

pub(super) fn release(probability: f64, k: f64, adjacency: Adjacency) -> SubsampledRelease {
    let noise = NoiseScale::from_units(1 << 49).unwrap();
    SubsampledRelease {
        probability: SamplingProbability::at_least(probability).unwrap(),
        sensitivity: Sensitivity::from_units((k * noise.units() as f64).ceil() as u64).unwrap(),
        noise,
        honest: Honest::ALONE,
        components: 1,
        adjacency,
    }
}

pub(super) fn block(probability: f64, k: f64, releases: u64, reserve: f64, adjacency: Adjacency) -> BlockCharge {
    release(probability, k, adjacency).block_charge(releases, (reserve * RESERVE_UNIT) as u64).unwrap()
}

pub(super) fn within(got: f64, expected: f64, below: f64, above: f64, what: &str) {
    assert!(got >= expected * (1.0 - below) && got <= expected * (1.0 + above), "{what}: {got}, expected {expected}");
}

/// `q, k, T, delta', mu, epsilon(1e-6)` under replacement.
const BLOCKS: [(f64, f64, u64, f64, f64, f64); 4] = [
    (0.01, 0.5, 500, 1e-9, 0.22492, 0.94630),
    (0.01, 0.5, 10_000, 1e-7, 1.00386, 4.90847),
    (0.001, 0.1, 5_000, 1e-7, 0.014_145, 0.048_916),
    (0.1, 0.5, 1_000, 1e-7, 3.1386, 19.2487),
];

#[test]
fn blocks_match_the_reference_values() {
    for (q, k, releases, reserve, mu, epsilon) in BLOCKS {
        let what = format!("{q} {k} {releases}");
        within(block(q, k, releases, reserve, Adjacency::Replace).covering_mu(), mu, 1e-3, 2e-3, &what);
        let losses = release(q, k, Adjacency::Replace).losses(releases, 1e-6).unwrap();
        within(losses.epsilon(1e-6).unwrap(), epsilon, 1e-3, 2e-3, &what);
    }
}

/// Every machine computes these integers.
#[test]
fn charges_are_the_same_bits_everywhere() {
    let units = |q, k, releases, reserve, adjacency| block(q, k, releases, reserve, adjacency).covering_units;
    assert_eq!(units(0.01, 0.5, 500, 1e-9, Adjacency::Replace), 14_239_088_492_732);
    assert_eq!(units(0.1, 0.5, 1_000, 1e-7, Adjacency::Replace), 2_772_804_106_426_783);
    assert_eq!(units(0.01, 0.75, 77, 1e-8, Adjacency::AddRemove), 3_429_294_348_052);
}

#[test]
fn the_setting_of_heikkila_and_others() {
    // A million records, samples of 1,000, 5,000 releases.
    let k = 1e-3_f64.sqrt();
    let epsilon = |adjacency| release(1e-3, k, adjacency).losses(5_000, 1e-6).unwrap().epsilon(1e-6).unwrap();
    within(epsilon(Adjacency::Replace), 0.01410, 1e-3, 1e-2, "replace");
    within(epsilon(Adjacency::AddRemove), 0.00662, 1e-3, 1e-2, "add-remove");
    // With one block, and with twenty.
    for (blocks, expected) in [(1, 0.01423), (20, 0.01422)] {
        let one = block(1e-3, k, 5_000 / blocks, 1e-7 / blocks as f64, Adjacency::Replace);
        let together = gaussian_dp::epsilon(one.covering_mu() * (blocks as f64).sqrt(), 0.9e-6);
        within(together, expected, 1e-2, 1e-2, &format!("{blocks} blocks"));
    }
}

/// Returns `delta' + (1 - delta') G(epsilon; mu)` for any real epsilon.
fn covering_curve(charge: &BlockCharge, epsilon: f64) -> f64 {
    let mu = charge.covering_mu();
    let gaussian = if epsilon >= 0.0 {
        gaussian_dp::delta(epsilon, mu)
    } else {
        -epsilon.exp_m1() + epsilon.exp() * gaussian_dp::delta(-epsilon, mu)
    };
    charge.reserve() + (1.0 - charge.reserve()) * gaussian
}

#[test]
fn a_charges_curve_lies_above_the_composition_everywhere() {
    for (q, k, releases, reserve) in
        [(0.01, 0.5, 500, 1e-9), (0.25, 1.0, 3, 1e-7), (0.0625, 0.5, 1, 1e-6), (0.001, 0.1, 5_000, 1e-7)]
    {
        for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
            let charge = block(q, k, releases, reserve, adjacency);
            let losses = release(q, k, adjacency).losses(releases, reserve).unwrap();
            let mut tightest = f64::INFINITY;
            for i in -1_000..=1_000 {
                let epsilon = f64::from(i) / 125.0 * charge.covering_mu();
                let (above, below) = (covering_curve(&charge, epsilon), losses.delta(epsilon));
                // Below 0 the mirror image of the other order is covered; the grid's own mass exceeds 1 by rounding.
                let rounding = if epsilon < 0.0 { 1e-8 } else { 1e-12 * below };
                assert!(above >= below - rounding, "{q} {k} {releases} {epsilon}: {above:e} {below:e}");
                tightest = tightest.min((above - below) / above);
            }
            // Each order is the other's mirror image, and replacement its own, up to the grids' rounding.
            let grids = losses.grids();
            for i in 0..=100 {
                let epsilon = f64::from(i) / 20.0 * charge.covering_mu();
                let (first, other) = (grids[0].delta(-epsilon), grids[grids.len() - 1].delta(epsilon));
                let mirrored = -(-epsilon).exp_m1() + (-epsilon).exp() * other;
                assert!(
                    (first - mirrored).abs() < 1e-3 * grids[0].delta(0.0),
                    "{q} {k} {releases} {epsilon}: {first:e} {mirrored:e}"
                );
            }
            // A smaller charge would not suffice: somewhere the curves nearly touch.
            assert!(tightest < 5e-3, "{q} {k} {releases} {adjacency:?}: {tightest}");
            let less = GaussianCover::new(losses.grids(), charge.reserve());
            assert!(less.covered_by(charge.covering_mu()) && !less.covered_by(charge.covering_mu() * 0.9999));
        }
    }
}

#[test]
fn one_release_in_closed_form() {
    for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
        let one = release(0.0625, 0.5, adjacency);
        let losses = one.losses(1, 1e-6).unwrap();
        for i in -40..=40 {
            let epsilon = f64::from(i) / 200.0;
            let (exact, bound) = (one.delta_of_one(epsilon).unwrap(), losses.delta(epsilon));
            assert!(exact <= bound && bound <= exact + 1e-5, "{adjacency:?} {epsilon}: {exact:e} {bound:e}");
        }
        // The total variation is the probability that a unit is sampled and the noise reveals it.
        let revealed = 2.0 * normal::cdf(if adjacency == Adjacency::Replace { 0.5 } else { 0.25 }) - 1.0;
        close(one.delta_of_one(0.0).unwrap(), 0.0625 * revealed);
    }
}

#[test]
fn more_sampling_distance_or_releases_cost_more() {
    for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
        let mu = |q, k, releases| block(q, k, releases, 1e-8, adjacency).covering_mu();
        let base = mu(0.01, 0.25, 300);
        let rows = [mu(0.0101, 0.25, 300), mu(0.02, 0.25, 300), mu(0.01, 0.2525, 300), mu(0.01, 0.5, 300), mu(0.01, 0.25, 310)];
        assert!(rows.iter().all(|mu| *mu > base), "{base} {rows:?}");
        // Composition soon becomes Gaussian: four times as many releases cost twice as much, and never less.
        within(mu(0.01, 0.25, 1_200), 2.0 * base, 2e-2, 1e-3, "four times as many");
        // A larger reserve does not cost more.
        assert!(block(0.01, 0.25, 300, 1e-6, adjacency).covering_mu() <= base);
    }
}

#[test]
fn sampling_of_nearly_all_costs_what_all_does() {
    for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
        let one = release(1.0, 0.5, adjacency);
        let whole = one.block_charge(16, 0).unwrap();
        let ordinary = PrivacyUnit::row(adjacency).charge_units(one.sensitivity, one.noise).unwrap();
        assert_eq!((whole.units, whole.covering_units, whole.reserve_units), (16 * ordinary, 16 * ordinary, 0));
        let nearly = SubsampledRelease { probability: SamplingProbability::from_parts((1 << 20) - 1).unwrap(), ..one };
        let nearly = nearly.block_charge(16, (1e-12 * RESERVE_UNIT) as u64).unwrap();
        assert!(nearly.covering_units <= whole.units);
        within(nearly.covering_mu(), whole.covering_mu(), 2e-3, 0.0, "nearly all");
    }
}

#[test]
fn draws_have_their_minimal_price() {
    let one = SubsampledRelease { components: 12, ..release(0.001, 0.1, Adjacency::Replace) };
    let charge = one.block_charge(5_000, 1 << 37).unwrap();
    assert_eq!(charge.units, 5_000 * 12 * LEAST_CHARGE_UNITS);
    assert!(charge.covering_units < charge.units);
    // With noise of few lattice units, the price is that of its slack.
    let coarse = SubsampledRelease {
        noise: NoiseScale::from_units(1 << 20).unwrap(),
        sensitivity: Sensitivity::from_units(1 << 10).unwrap(),
        ..one
    };
    let slack = 8 * slack_units_of_draw(coarse.noise, Honest::ALONE);
    assert!(slack > LEAST_CHARGE_UNITS);
    assert_eq!(coarse.block_charge(5_000, 1 << 37).unwrap().units, 5_000 * 12 * slack);
}

#[test]
fn the_noise_of_several_parties_is_one_of_a_larger_scale() {
    let alone = release(0.01, 0.5, Adjacency::Replace);
    let four = SubsampledRelease { honest: Honest::new(4).unwrap(), ..alone };
    let half = release(0.01, 0.25, Adjacency::Replace);
    let units = |release: &SubsampledRelease| release.block_charge(100, 1 << 34).unwrap().covering_units;
    within(units(&four) as f64, units(&half) as f64, 1e-9, 1e-9, "four parties");
    // If the others' noise were known, a block would cost more than four times as much. So charges of blocks cannot be divided.
    assert!(units(&alone) > 4 * units(&four) + units(&four) / 50);
}

#[test]
fn the_pair_of_add_remove_at_twice_the_distance_is_detected() {
    for (q, k, releases, reserve, mu, _) in BLOCKS.into_iter().take(1) {
        let wrong = block(q, 2.0 * k, releases, reserve, Adjacency::AddRemove).covering_mu();
        assert!(wrong > mu * 1.2, "{wrong} {mu}");
        // The same at the distance itself.
        assert!(block(q, k, releases, reserve, Adjacency::AddRemove).covering_mu() < mu * 0.7);
    }
}

/// `q, k, T`, adjacency, epsilon(1e-6) of the composition, and with 1, 5, 20 and 100 blocks with a tenth of delta in reserve. 0
/// where unknown.
type Row = (f64, f64, u64, Adjacency, f64, [f64; 4]);

#[test]
#[ignore = "takes a minute"]
fn tables_of_blocks() {
    use Adjacency::{AddRemove, Replace};
    let rows: [Row; 9] = [
        (0.001, 0.031_622_8, 5_000, Replace, 0.01409, [0.01422, 0.01423, 0.01422, 0.01422]),
        (0.001, 0.031_622_8, 5_000, AddRemove, 0.00662, [0.00668, 0.00669, 0.00670, 0.00672]),
        (0.001, 0.1, 5_000, Replace, 0.04891, [0.04929, 0.04931, 0.0493, 0.04931]),
        (0.01, 0.031_622_8, 100_000, Replace, 0.8341, [0.8388, 0.8396, 0.8396, 0.8392]),
        (0.01, 0.5, 10_000, Replace, 4.908, [4.929, 4.931, 4.939, 4.993]),
        (0.01, 1.0, 10_000, Replace, 11.957, [11.99, 12.11, 12.78, 20.6]),
        (0.01, 1.0, 10_000, AddRemove, 6.908, [6.910, 7.459, 9.393, 19.03]),
        (0.1, 0.5, 1_000, Replace, 19.247, [19.30, 19.38, 19.71, 21.66]),
        (0.001, 1.43, 10_000, AddRemove, 1.637, [1.782, 3.716, 7.675, 19.3]),
    ];
    for (q, k, releases, adjacency, composed, by_blocks) in rows {
        let losses = release(q, k, adjacency).losses(releases, 1e-6).unwrap();
        let got = losses.epsilon(1e-6).unwrap();
        println!("{q} {k} {releases} {adjacency:?}: composed {got:.5} ({composed})");
        within(got, composed, 1e-3, 1e-2, "composed");
        for (blocks, expected) in [1_u64, 5, 20, 100].into_iter().zip(by_blocks) {
            let one = block(q, k, releases / blocks, 1e-7 / blocks as f64, adjacency);
            let got = gaussian_dp::epsilon(one.covering_mu() * (blocks as f64).sqrt(), 0.9e-6);
            println!("  {blocks} blocks {got:.5} ({expected})");
            within(got, expected, 1e-2, 1e-2, &format!("{blocks} blocks"));
        }
    }
}
