#![allow(clippy::unwrap_used)]
use super::*;
use conclave_common::job::JobSpec;

fn table(cuts: &str, by: bool) -> LifeTable {
    let (key, column) = if by { ("by = \"g\"\n", "g = { binary = true }\n") } else { ("", "") };
    let spec = JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"p\"]\n[model]\nkind = \"life_table\"\noutcome = \"y\"\nevent = \"d\"\ncuts = {cuts}\n{key}[columns]\n\
         y = {{ min = 0, max = 9 }}\nd = {{ binary = true }}\n{column}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap();
    spec.build_model().life_table().unwrap().clone()
}

/// The noise of a difference is a sum of the counts' own, with the coefficients that one count's change gives.
#[test]
fn intervals_share_the_noise_of_later_counts() {
    let table = table("[3, 6]", false);
    let h = [0.1, 0.3, 0.6];
    let differences = |counts: &[f64]| -> Vec<f64> {
        let group = &LifeCounts::new(&table, counts, 1.0).groups[0];
        (0..3).map(|k| group.events[k] - h[k] * group.at_risk[k]).collect()
    };
    let moved: Vec<Vec<f64>> = (0..table.cells())
        .map(|cell| {
            let mut counts = vec![0.0; table.cells()];
            counts[cell] = 1.0;
            differences(&counts)
        })
        .collect();
    for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        let shared: f64 = moved.iter().map(|moved| moved[a] * moved[b]).sum();
        assert!((shared - shared_noise(&h, a, b)).abs() < 1e-12, "{a} {b}");
    }
}

/// With vanishing noise the maximum is the actuarial estimate, group by group, and its curvature the binomial one.
#[test]
fn without_noise_the_estimate_is_the_actuarial_one() {
    let table = table("[3]", true);
    let mut counts = vec![0.0; table.cells()];
    for (group, interval, values) in
        [(0, 0, [40.0, 20.0, 10.0]), (0, 1, [30.0, 0.0, 100.0]), (1, 0, [10.0, 40.0, 0.0]), (1, 1, [50.0, 10.0, 40.0])]
    {
        for (end, value) in [FollowUpEnd::Event, FollowUpEnd::Within, FollowUpEnd::AtEnd].into_iter().zip(values) {
            counts[table.cell(group, interval, end)] = value;
        }
    }
    let seen = LifeCounts::new(&table, &counts, 1e-9);
    let wanted = [40.0 / 190.0, 30.0 / 130.0, 10.0 / 130.0, 50.0 / 95.0];
    let rough = seen.rough();
    assert!(rough.iter().zip(wanted).all(|((h, ..), wanted)| (h - wanted).abs() < 1e-12), "{rough:?}");
    let sd = (wanted[0] * (1.0 - wanted[0]) / 190.0).sqrt();
    assert!((rough[0].1 / sd - 1.0).abs() < 1e-6 && (rough[0].2 / sd - 1.0).abs() < 1e-12);
    for j in 0..4 {
        let at = |by: f64| {
            let mut h = wanted;
            h[j] += by;
            seen.log_likelihood(&h)
        };
        assert!(at(0.0) > at(0.02) && at(0.0) > at(-0.02), "{j}");
    }
}

/// With 2 to 12 events among 300 at risk and noise of variance 2.4, the quantiles of the pivot's posterior are those of the mixture over
/// the true number of events, within a quarter of an sd.
#[test]
fn the_pivot_agrees_with_the_mixture_over_true_counts() {
    let (at_risk, variance) = (300.0, 2.4);
    let group = |events: f64| GroupCounts { events: vec![events], at_risk: vec![at_risk] };
    let log_binomial = |k: f64| libm::lgamma(at_risk + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(at_risk - k + 1.0);
    for events in [2.0_f64, 5.0, 12.0] {
        let grid: Vec<f64> = (1..4000).map(|i| 1e-4 * 0.5 * f64::from(i)).collect();
        let mixture = |h: f64| -> f64 {
            (0..60)
                .map(f64::from)
                .map(|k| {
                    let noise = -0.5 * (events - k).powi(2) / variance;
                    libm::exp(log_binomial(k) + k * libm::log(h) + (at_risk - k) * libm::log1p(-h) + noise)
                })
                .sum()
        };
        let prior = |h: f64| h.sqrt().recip();
        let quantiles = |density: &dyn Fn(f64) -> f64| {
            let weights: Vec<f64> = grid.iter().map(|h| density(*h) * prior(*h)).collect();
            let all: f64 = weights.iter().sum();
            [0.05, 0.5, 0.95].map(|part| {
                let mut sum = 0.0;
                let at = weights.iter().position(|weight| {
                    sum += weight;
                    sum >= part * all
                });
                grid[at.unwrap()]
            })
        };
        let exact = quantiles(&mixture);
        let own = group(events);
        let pivot = quantiles(&|h: f64| libm::exp(own.log_likelihood(&[h], variance)));
        let sd = (exact[2] - exact[0]) / 3.29;
        assert!(exact.iter().zip(pivot).all(|(a, b)| (a - b).abs() < 0.25 * sd), "{events}: {exact:?} {pivot:?}");
    }
}

/// The predicted ratio of noise to the records' own variance grows along the intervals, and falls with the number of records.
#[test]
fn predictions_follow_the_counts() {
    let few = expected_ratios(3, 100.0, 0.5, 4.0);
    let many = expected_ratios(3, 400.0, 0.5, 4.0);
    assert!(
        few.windows(2).all(|pair| pair[0] < pair[1]) && few.iter().zip(&many).all(|(few, many)| (few / many - 4.0).abs() < 1e-9)
    );
}
