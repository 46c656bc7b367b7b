//! Tests of the law of a count and of its tables.

use super::*;

/// Sums over every count, in place of what follows from the rest.
fn by_enumeration(law: CountLaw, eta: f64, clip: f64, statistic: impl Fn(f64) -> f64) -> [f64; 3] {
    let mean = libm::exp(eta);
    (0..40_000).map(f64::from).fold([0.0; 3], |[all, centre, slope], y| {
        let (p, s) = (libm::exp(law.log_density(y, mean)), statistic(y));
        [all + p, centre + p * s.clamp(-clip, clip), slope + p * s.clamp(-clip, clip) * s]
    })
}

#[test]
fn expectations_are_those_of_an_enumeration() {
    for dispersion in [0.0, 1e-6, 0.3, 1.0, 4.0] {
        let law = CountLaw { dispersion };
        for (eta, clip) in [(-6.0, 3.0), (-1.0, 3.0), (0.3, 1.5), (2.0, 3.0), (3.0, 6.0), (6.0, 2.0)] {
            let mean = libm::exp(eta);
            let sd = (mean * (1.0 + dispersion * mean)).sqrt();
            let [all, centre, slope] = by_enumeration(law, eta, clip, |y| (y - mean) / sd);
            let [a, kappa] = law.of_residual(eta, clip);
            // Large counts are summed in strides.
            let close = if eta > 5.0 { 2e-4 } else { 1e-8 };
            assert!(
                (all - 1.0).abs() < 1e-6 && (a - centre).abs() < close && (kappa - slope).abs() < close,
                "{dispersion} {eta} {clip}: {a} {centre} {kappa} {slope}"
            );
        }
    }
}

/// The expected slope is that of differences of the log density; the information about the dispersion without a clip is its variance.
#[test]
fn the_dispersion_has_its_expectations() {
    for (dispersion, eta, clip) in [(0.5, 0.5, 0.4), (2.0, 1.5, 1.0), (1.0, -2.0, 0.7), (0.7, 4.0, 1e3)] {
        let (law, mean) = (CountLaw { dispersion }, libm::exp(eta));
        let slope = |y: f64| {
            let at = |by: f64| CountLaw { dispersion: dispersion * libm::exp(by) }.log_density(y, mean);
            (at(1e-4) - at(-1e-4)) / 2e-4
        };
        let [_, centre, information] = by_enumeration(law, eta, clip, slope);
        let [a, kappa] = law.of_dispersion(eta, clip);
        assert!((a - centre).abs() < 1e-5 && (kappa - information).abs() < 1e-4, "{a} {centre} {kappa} {information}");
    }
}

/// The interpolation moves the score of 25,000 records by less than .02 posterior sds, at the widest ends that a query states.
#[test]
fn a_table_is_fine_enough() {
    for (dispersion, clip) in [(0.0, 3.0), (1.0, 3.0), (0.0, 6.0), (3.0, 3.0)] {
        let (law, ends) = (CountLaw { dispersion }, [-12.0, 7.0]);
        let table = law.residuals(ends, clip);
        let at = |of: &[f64], eta: f64| {
            let place = (eta - ends[0]) / (ends[1] - ends[0]) * (SlopeTable::NODES - 1) as f64;
            let node = (place as usize).min(SlopeTable::NODES - 2);
            of[node] + (place - node as f64) * (of[node + 1] - of[node])
        };
        let (centres, _) = table.numbers[2..].split_at(SlopeTable::NODES);
        for middle in [-2.0, 0.0, 1.0, 3.0] {
            let (mut error, mut information, mut all) = (0.0, 0.0, 0.0);
            for k in 0..600 {
                let z = f64::from(k) / 100.0 - 3.0;
                let (eta, p) = (middle + 0.4 * z, libm::exp(-0.5 * z * z));
                let [a, kappa] = law.of_residual(eta, clip);
                let root = law.information(eta).sqrt();
                error += p * root * (at(centres, eta) - a);
                information += p * kappa * root * root;
                all += p;
            }
            let sds = (25_000.0 / (all * information)).sqrt() * error;
            assert!(sds.abs() < 0.02, "{dispersion} {clip} {middle}: {sds}");
        }
        assert!(SlopeTable::new(&table.numbers, clip).is_some() && table.unit <= 1.0 && table.limit <= 2.0 * clip);
    }
}
