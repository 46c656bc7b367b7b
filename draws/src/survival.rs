//! Survival curves of a piecewise exponential model or a life table, and restricted mean survival times.

use conclave_common::job::JobSpec;
use conclave_common::schema::{ColumnSpec, LifeTable, ModelSpec, PiecewiseExponential};
use serde::Serialize;

/// Times of a curve between 0 and the longest declared time, besides the cuts.
const TIMES: usize = 24;

/// The posterior of the survival function of one kind of record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurvivalCurve {
    /// The records: `baseline`, or a level or binary predictor that differs from the baseline, by the name of its coefficient. Numeric predictors
    /// are at the middle of their bounds, binary ones 0, and levels the reference. In a life table a group, as `arm[b]`, or `all`.
    pub of: String,
    /// The probability to survive a time, at several times.
    pub points: Vec<SurvivalPoint>,
    /// The mean survival time, restricted to the longest declared time, in the data's unit of time: the area under the curve.
    pub restricted_mean: Quantiles,
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurvivalPoint {
    /// The time, in the data's unit.
    pub time: f64,
    /// The probability to survive it.
    #[serde(flatten)]
    pub survival: Quantiles,
}

/// Quantiles of the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// 5% quantile.
    pub q5: f64,
    /// Median.
    pub median: f64,
    /// 95% quantile.
    pub q95: f64,
}

impl Quantiles {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let quantile = |part: f64| values.get((part * values.len() as f64) as usize).copied();
        Some(Self { q5: quantile(0.05)?, median: quantile(0.5)?, q95: quantile(0.95)? })
    }
}

/// Computes the curves from the draws on the scale of the priors, `[parameter][chain][draw]`; none for another model.
pub(crate) fn survival(spec: &JobSpec, samples: &[Vec<&[f64]>]) -> Vec<SurvivalCurve> {
    let draws = samples.first().map_or(0, |chains| chains.iter().map(|chain| chain.len()).sum());
    let values: Vec<Vec<f64>> = samples.iter().map(|chains| chains.concat()).collect();
    match &spec.model {
        ModelSpec::PiecewiseExponential(model) => {
            let Some(times) = Times::of(spec, &model.outcome, &model.cuts, TIMES) else { return Vec::new() };
            let curve = |(of, more): (String, Option<usize>)| {
                let log = |k: usize, draw: usize| values[k][draw] + more.map_or(0.0, |at| values[at][draw]);
                times.curve(of, draws, |k, draw| libm::exp(log(k, draw)))
            };
            kinds(spec, model).into_iter().filter_map(curve).collect()
        }
        ModelSpec::LifeTable(table) => {
            let Some(times) = Times::of(spec, &table.outcome, &table.cuts, 1) else { return Vec::new() };
            let curve = |(group, of): (usize, String)| {
                // Within an interval, the area is that under a constant hazard.
                let rate = |k: usize, draw: usize| -libm::log1p(-values[group * table.intervals() + k][draw]) / times.width(k);
                times.curve(of, draws, rate)
            };
            groups(table).into_iter().enumerate().filter_map(curve).collect()
        }
        _ => Vec::new(),
    }
}

/// The times of a curve and the ends of the intervals, in units of the longest declared time.
struct Times {
    times: Vec<f64>,
    ends: Vec<f64>,
    longest: f64,
}

impl Times {
    /// Returns the times of a model with these cuts: theirs, and `even` others at equal distances up to the longest.
    fn of(spec: &JobSpec, outcome: &str, cuts: &[f64], even: usize) -> Option<Self> {
        let Some(ColumnSpec::Numeric { max: longest, .. }) = spec.columns.get(outcome) else { return None };
        let cuts: Vec<f64> = cuts.iter().map(|cut| cut / longest).collect();
        let even = (0..=even).map(|place| place as f64 / even as f64);
        let mut times: Vec<f64> = even.chain(cuts.iter().copied()).collect();
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        Some(Self { times, ends: [&[0.0], cuts.as_slice(), &[1.0]].concat(), longest: *longest })
    }

    fn width(&self, interval: usize) -> f64 {
        self.ends[interval + 1] - self.ends[interval]
    }

    /// Computes a curve from its hazard in each interval and draw, per longest time.
    fn curve(&self, of: String, draws: usize, rate: impl Fn(usize, usize) -> f64) -> Option<SurvivalCurve> {
        let intervals = self.ends.len() - 1;
        let cumulative = |draw: usize, time: f64| -> f64 {
            let passed = |k: usize| (time.min(self.ends[k + 1]) - self.ends[k]).max(0.0);
            (0..intervals).map(|k| rate(k, draw) * passed(k)).sum()
        };
        let at = |time: &f64| {
            let survival = Quantiles::of((0..draws).map(|draw| libm::exp(-cumulative(draw, *time))).collect())?;
            Some(SurvivalPoint { time: time * self.longest, survival })
        };
        let area = |draw: usize| {
            let mut area = 0.0;
            for k in 0..intervals {
                let (rate, width) = (rate(k, draw), self.width(k));
                // exp(-H) at the interval's start, integrated over an exponential fall.
                let fallen = if rate * width > 1e-12 { -libm::expm1(-rate * width) / rate } else { width };
                area += libm::exp(-cumulative(draw, self.ends[k])) * fallen;
            }
            self.longest * area
        };
        let restricted_mean = Quantiles::of((0..draws).map(area).collect())?;
        Some(SurvivalCurve { of, points: self.times.iter().map(at).collect::<Option<_>>()?, restricted_mean })
    }
}

/// Returns the names of a life table's groups; `all` without groups.
fn groups(table: &LifeTable) -> Vec<String> {
    match &table.by {
        None => vec!["all".to_owned()],
        Some(by) => by.levels.iter().map(|level| format!("{}[{level}]", by.column)).collect(),
    }
}

/// Returns the kinds of records, each with the parameter that is added to its log hazards: the baseline, and each level and binary predictor
/// by itself.
fn kinds(spec: &JobSpec, model: &PiecewiseExponential) -> Vec<(String, Option<usize>)> {
    let binary = |column: &str| matches!(spec.columns.get(column), Some(ColumnSpec::Binary));
    let mut kinds = vec![("baseline".to_owned(), None)];
    for (at, feature) in model.design.features.iter().enumerate() {
        if let [factor] = feature.factors.as_slice()
            && (factor.level.is_some() || binary(&factor.column))
        {
            kinds.push((feature.name.clone(), Some(model.intervals() + at)));
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec() -> JobSpec {
        JobSpec::parse(
            "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"auto\"\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"years\"\nevent = \"d\"\ncuts = [2]\n\
             predictors = [\"x\", \"g\"]\n[columns]\nyears = { min = 0, max = 8 }\nd = { binary = true }\nx = { min = 0, max = 1 }\ng = { binary = true }\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap()
    }

    /// With hazards of 0.4 and 0.8 per 8 years, survival and its area are those of the integral in closed form.
    #[test]
    fn curves_follow_the_hazards() {
        let value = |x: f64| [x.ln(); 4];
        let (first, second, slope, doubled) = (value(0.4), value(0.8), [0.7; 4], value(2.0));
        let samples: Vec<Vec<&[f64]>> = [&first, &second, &slope, &doubled].map(|draws| vec![&draws[..2], &draws[2..]]).to_vec();
        let curves = survival(&spec(), &samples);
        assert_eq!(curves.iter().map(|curve| curve.of.as_str()).collect::<Vec<_>>(), ["baseline", "g"]);
        for (curve, factor) in curves.iter().zip([1.0, 2.0]) {
            let hazard = |years: f64| factor * (0.05 * years.min(2.0) + 0.1 * (years - 2.0).max(0.0));
            for point in &curve.points {
                assert!((point.survival.median - (-hazard(point.time)).exp()).abs() < 1e-12, "{point:?}");
            }
            assert!(curve.points.iter().any(|point| point.time == 2.0) && curve.points.last().unwrap().time == 8.0);
            let steps = 80_000;
            let area: f64 = (0..steps).map(|i| (-hazard((f64::from(i) + 0.5) * 1e-4)).exp() * 1e-4).sum();
            assert!((curve.restricted_mean.median - area).abs() < 1e-6, "{:?} {area}", curve.restricted_mean);
        }
    }

    /// A life table has a curve by group at the intervals' ends, the product of the probabilities to pass each interval.
    #[test]
    fn curves_of_a_life_table_multiply_by_group() {
        let spec = JobSpec::parse(
            "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"auto\"\n[model]\nkind = \"life_table\"\noutcome = \"years\"\nevent = \"d\"\ncuts = [2]\nby = \"g\"\n\
             [columns]\nyears = { min = 0, max = 8 }\nd = { binary = true }\ng = { levels = [\"old\", \"new\"] }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let hazards = [0.1, 0.5, 0.2, 0.25].map(|h| [h; 2]);
        let samples: Vec<Vec<&[f64]>> = hazards.iter().map(|draws| vec![draws.as_slice()]).collect();
        let curves = survival(&spec, &samples);
        let of = |curve: &SurvivalCurve| curve.points.iter().map(|point| (point.time, point.survival.median)).collect::<Vec<_>>();
        assert_eq!(curves.iter().map(|curve| curve.of.as_str()).collect::<Vec<_>>(), ["g[old]", "g[new]"]);
        for (curve, wanted) in curves.iter().zip([[0.9, 0.45], [0.8, 0.6]]) {
            let points = of(curve);
            assert_eq!(points.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [0.0, 2.0, 8.0]);
            assert!(
                points.iter().map(|(_, s)| *s).zip([1.0, wanted[0], wanted[1]]).all(|(s, w)| (s - w).abs() < 1e-12),
                "{points:?}"
            );
            // Constant hazards within the intervals.
            let area = |from: f64, to: f64, years: f64| years * (from - to) / (from / to).ln();
            let mean = area(1.0, wanted[0], 2.0) + area(wanted[0], wanted[1], 6.0);
            assert!((curve.restricted_mean.median - mean).abs() < 1e-12, "{:?} {mean}", curve.restricted_mean);
        }
    }
}
