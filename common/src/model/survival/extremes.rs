//! The scores of extreme records of the declared columns.
//!
//! For one value of the linear predictor, a record's cumulative hazards do not depend on its predictors otherwise, and its score is
//! affine in them. The length of its image is convex, and so greatest where the linear predictor's plane meets an edge of the declared
//! set. With fixed predictors, the score is piecewise affine in the time and in the entry. So it is greatest where an interval, or the
//! capped follow-up, begins or ends; among these are records whose entry makes the cap meet an interval's end. Points on the edges are listed at a few
//! places between the corners.

use super::scores::SurvivalScores;
use crate::model::linear_predictor::LinearPredictor;

/// The maximum number of listed scores.
const MOST: usize = 24_000;
/// Points between the corners of an edge, in the order of preference.
const BETWEEN: [u32; 4] = [7, 3, 1, 0];

impl SurvivalScores<'_> {
    /// Lists scores at a point; `None` if there are too many corners.
    pub(super) fn extremes(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        let (log_hazards, coefficients) = self.split(at);
        let intervals = log_hazards.len();
        let entries = if self.model.intervals.entry { intervals } else { 1 };
        let of_one = 6 * (0..entries).map(|entry| intervals - entry).sum::<usize>();
        let rows = places(&self.model.predictor, MOST / of_one)?;
        let mut extremes = Vec::with_capacity(rows.len() * of_one);
        for row in rows {
            // The first is the intercept's 1.
            let x = &row[1..];
            let eta: f64 = x.iter().zip(coefficients).map(|(x, b)| x * b).sum();
            for entry in 0..entries {
                self.from(entry, (log_hazards, eta), |scores| {
                    let slope: f64 = scores.iter().sum();
                    extremes.push(scores.iter().copied().chain(x.iter().map(|x| slope * x)).collect());
                });
            }
        }
        Some(extremes)
    }

    /// Visits the scores in the log hazards of records that enter in an interval: with and without an event in each later one.
    fn from(&self, entry: usize, (log_hazards, eta): (&[f64], f64), mut visit: impl FnMut(&[f64])) {
        let (ends, cap) = (&self.model.intervals.ends, self.model.cap);
        let hazard = |k: usize| libm::exp((log_hazards[k] + eta).min(80.0)) * (ends[k + 1] - ends[k]);
        let (first, mut between) = (hazard(entry), 0.0);
        let mut scores = vec![0.0; log_hazards.len()];
        for (event, passed) in [(1.0, 0.0), (1.0, first.min(cap)), (0.0, first.min(cap))] {
            scores[entry] = event - passed;
            visit(&scores);
        }
        for k in entry + 1..log_hazards.len() {
            let last = hazard(k);
            for (passed, here) in self.corners(first, between, last) {
                scores[entry] = -passed;
                for event in [0.0, 1.0] {
                    scores[k] = event - here;
                    visit(&scores);
                }
            }
            scores[k] = -last;
            between += last;
        }
    }

    /// Returns the corners of the cumulative hazards in the interval of the entry and in that of the end, with those of the intervals
    /// between them in full: at most `first` and `last`, and all together at most the cap. Without entries the first is in full, too.
    fn corners(&self, first: f64, between: f64, last: f64) -> Vec<(f64, f64)> {
        let left = self.model.cap - between;
        if left < 0.0 || (!self.model.intervals.entry && first > left) {
            return Vec::new();
        }
        let most = first.min(left);
        let mut corners = vec![(most, 0.0), (most, last.min(left - most))];
        if self.model.intervals.entry {
            corners.push(((left - last).clamp(0.0, first), last.min(left)));
        }
        corners
    }
}

/// Returns the corners of the declared columns and points on the edges between them, at most `most`.
fn places(predictor: &LinearPredictor, most: usize) -> Option<Vec<Vec<f64>>> {
    let all = BETWEEN.iter().map(|between| predictor.corners_and_between(*between).0);
    all.flatten().find(|rows| rows.len() <= most)
}
