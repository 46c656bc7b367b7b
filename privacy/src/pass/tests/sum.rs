#![allow(clippy::unwrap_used)]
//! Sums, and the noise that releases them.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::mechanism::{NoiseScale, NoiseStock};

const UNMOVED: fn() -> Moves = || Moves::interval(0, 0);

fn released(sum: &[i64], noise: &[i64]) -> Vec<i64> {
    let mut noise = noise.iter();
    let sample = NoiseSample::gathered(sum.len(), || NoiseSample::for_test(*noise.next().unwrap()));
    let sum = LatticeSum::of_components_for_test(Components::new(sum).unwrap());
    sum.add_noise(sample).as_slice().to_vec()
}

#[test]
fn releases_saturate() {
    assert_eq!(released(&[i64::MAX - 3], &[9]), [i64::MAX]);
    assert_eq!(released(&[-5], &[i64::MIN]), [i64::MIN]);
    assert_eq!(released(&[-5], &[7]), [2]);
}

#[test]
fn every_component_has_noise_of_its_own() {
    assert_eq!(released(&[1, 2, 3], &[10, -20, 30]), [11, -18, 33]);
    let scale = NoiseScale::from_units(1 << 50).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut one = || NoiseSample::of_scale(scale, &mut rng);
    let sample = NoiseSample::gathered(100, &mut one);
    let distinct: std::collections::HashSet<i64> = sample.units().iter().copied().collect();
    assert_eq!((sample.units().len(), distinct.len()), (100, 100));
    assert_eq!(NoiseSample::gathered(1, one).units().len(), 1);
}

#[test]
#[should_panic(expected = "different lengths")]
fn no_component_is_released_without_noise() {
    let sum = LatticeSum::of_components_for_test(Components::new(&[1, 2]).unwrap());
    let _ = sum.add_noise(NoiseSample::for_test(5));
}

#[test]
fn a_stock_gives_each_integer_once() {
    let mut stock = NoiseStock::new(3);
    let mut next = 0;
    let pair = NoiseSample::gathered(2, || {
        next += 1;
        NoiseSample::for_test(next)
    });
    stock.put(pair);
    stock.put(NoiseSample::gathered(2, || NoiseSample::for_test(9)));
    assert_eq!(stock.room(), 1, "what does not fit whole is not kept");
    let taken: Vec<i64> = std::iter::from_fn(|| stock.take().map(|sample| sample.units()[0])).collect();
    assert_eq!(taken, [2, 1]);
}

#[test]
fn stored_sums_are_found_by_their_kind() {
    let kinds = [QueryKind::Statistic { component: 7 }, QueryKind::Ratio, QueryKind::Statistic { component: 0 }];
    let cache = SumCache::new(kinds.into_iter().zip([7, 1, 0]).map(|(kind, sum)| (kind, LatticeSum::from_units_for_test(sum))));
    let open = |kind| cache.sum(kind).map(LatticeSum::open_for_test);
    assert_eq!(kinds.map(open), [Some(7), Some(1), Some(0)]);
    assert_eq!((open(QueryKind::ClipCount), open(QueryKind::Statistic { component: 1 })), (None, None));
    assert!(SumCache::default().sum(QueryKind::Ratio).is_none());
}

/// Sums in finer units are rounded once, whatever parts they have, and also together with whole ones.
#[test]
fn finer_units_are_rounded_when_noise_is_added() {
    let half = 1_i128 << (FRACTION - 1);
    let fine = |units: &[i128]| LatticeSum::fine(units.to_vec(), UNMOVED());
    let parts = fine(&[half, -half, 3]).merge(fine(&[half, -half, -3])).merge(LatticeSum::whole(&[5, 6, 7], UNMOVED()));
    assert_eq!((parts.length(), parts.open_components_for_test()), (3, vec![6, 5, 7]));
    let whole = LatticeSum::whole(&[1, 2], UNMOVED()).merge(fine(&[half - 1, half]));
    assert_eq!(whole.open_components_for_test(), [1, 3]);
    assert_eq!(fine(&[half]).open_for_test(), 1);
    assert_eq!(
        fine(&[i128::MAX, i128::MIN]).merge(fine(&[i128::MAX, i128::MIN])).open_components_for_test(),
        [i64::MAX, i64::MIN]
    );
}

/// A sum or a choice leaves only with the cover of a charge that pays for it.
#[test]
fn nothing_leaves_beyond_its_cover() {
    use crate::accounting::{Honest, Priced, PrivacyUnit};
    use crate::mechanism::{LogWeights, Sensitivity};
    let cover = |kind, units, unit| {
        let sensitivity = Sensitivity::from_units(units).unwrap();
        let priced = Priced::new(kind, sensitivity, NoiseScale::from_units(1 << 40).unwrap(), Honest::ALONE);
        Cover { priced, sampled: None, unit }
    };
    let sum = || LatticeSum::whole(&[7], Moves::interval(-5, 5));
    let released = |charge: &Cover, sum: LatticeSum| {
        let length = sum.length();
        let noise = NoiseSample::gathered(length, || NoiseSample::for_test(2));
        sum.release(charge, noise).map(|released| released.as_slice().to_vec())
    };
    let row = PrivacyUnit::default();
    let person = |records| PrivacyUnit::person(Adjacency::Replace, records).unwrap();
    assert_eq!(released(&cover(QueryKind::Ratio, 5, row), sum()), Some(vec![9]));
    assert_eq!(released(&cover(QueryKind::Ratio, 4, row), sum()), None);
    // A clip count's sensitivity bounds the distance itself.
    assert_eq!(released(&cover(QueryKind::ClipCount, 10, row), sum()), Some(vec![9]));
    assert_eq!(released(&cover(QueryKind::ClipCount, 9, row), sum()), None);
    let one = QueryKind::Gradient { parameters: 1 };
    for (kind, sum) in [
        (QueryKind::Choice { candidates: 1 }, sum()),
        (QueryKind::Gradient { parameters: 2 }, sum()),
        (one, LatticeSum::whole(&[7, 8], Moves::interval(-5, 5))),
        (QueryKind::Ratio, sum().sampled_for_test(Some(SamplingProbability::ONE))),
    ] {
        assert_eq!(released(&cover(kind, 5, row), sum), None, "{kind}");
    }
    let few = || {
        let data = crate::pass::ModelData { outcome: vec![0.0], ..Default::default() };
        LatticeSum::whole(&[7], Moves::interval(-5, 5).grouped(&crate::pass::Block::lent(&data)))
    };
    assert_eq!((released(&cover(one, 5, person(1)), few()), released(&cover(one, 5, person(2)), few())), (Some(vec![9]), None));
    let chosen = |kind, units, most, records| {
        let weights = LogWeights::new(vec![0, 1 << 50], most, records);
        weights.release(&cover(kind, units, person(2)), &mut ChaCha8Rng::seed_from_u64(1))
    };
    let choice = QueryKind::Choice { candidates: 2 };
    assert_eq!(chosen(choice, 5, 5, 2), Some(1));
    assert_eq!([chosen(choice, 4, 5, 2), chosen(choice, 5, 5, 1), chosen(QueryKind::Ratio, 5, 5, 2)], [None; 3]);
    assert_eq!(chosen(QueryKind::Choice { candidates: 3 }, 5, 5, 2), None);
}
