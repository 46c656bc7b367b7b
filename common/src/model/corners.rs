//! Extreme records of a regression's declared columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::linear_predictor::{FeatureRange, LinearPredictor};
use super::reach::Edges;

/// The maximum number of corners in the list.
const MOST_CORNERS: usize = 4096;

impl LinearPredictor {
    /// Returns the extreme records of the declared columns, with the intercept's 1 first: every combination of an end for each
    /// feature and a level for each term with levels.
    ///
    /// With few features, points on the edges are included too. Returns `None` if there are more than 4,096 corners.
    pub(super) fn corners(&self) -> Option<Vec<Vec<f64>>> {
        /// Points per edge, in the order of preference.
        const BETWEEN: [u32; 3] = [7, 3, 0];
        let all = BETWEEN.iter().map(|between| self.corners_and_between(*between));
        all.into_iter().find_map(|(corners, fits)| (fits || corners.is_none()).then_some(corners)).flatten()
    }

    /// Returns the corners of the declared columns, and the edges between corners that differ in one feature. `None` if there are
    /// more than 4,096 corners.
    pub(super) fn edges(&self) -> Option<&Edges> {
        self.edges.get_or_init(|| self.joined_corners().map(Arc::new)).as_deref()
    }

    fn joined_corners(&self) -> Option<Edges> {
        let (corners, _) = self.corners_and_between(0);
        let corners = corners?;
        let first = usize::from(self.intercept);
        let alone = |row: &[f64], j: usize| {
            let together = |f: &FeatureRange| f.exclusive && f.term == self.features[j].term;
            self.features.iter().enumerate().all(|(k, f)| k == j || !together(f) || row[first + k] == 0.0)
        };
        // Zeros of either sign are equal.
        let bits = |row: &[f64]| row.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>();
        let numbers: BTreeMap<Vec<u64>, usize> = corners.iter().enumerate().map(|(number, row)| (bits(row), number)).collect();
        let mut joined = Vec::new();
        for (number, row) in corners.iter().enumerate() {
            for (j, feature) in self.features.iter().enumerate().filter(|(_, feature)| !feature.indicator) {
                let (low, high) = feature.range;
                if row[first + j] == high && low < high && (!feature.exclusive || alone(row, j)) {
                    let mut other = row.clone();
                    other[first + j] = low;
                    joined.push([number, *numbers.get(&bits(&other))?]);
                }
            }
        }
        Some(Edges { corners, joined })
    }

    /// Returns corners with `points` points on each edge, and whether they are within the maximum number. `None` if the corners
    /// alone exceed it.
    pub(super) fn corners_and_between(&self, points: u32) -> (Option<Vec<Vec<f64>>>, bool) {
        let mut rows: Vec<Vec<f64>> = vec![self.intercept.then_some(1.0).into_iter().collect()];
        let mut inner: Vec<Vec<f64>> = Vec::new();
        let mut at = 0;
        while at < self.features.len() {
            let feature = &self.features[at];
            let width = if feature.exclusive {
                self.features[at..].iter().take_while(|f| f.exclusive && f.term == feature.term).count()
            } else {
                1
            };
            let mut choices: Vec<Vec<f64>> = Vec::new();
            let mut between: Vec<Vec<f64>> = Vec::new();
            if feature.exclusive {
                choices.push(vec![0.0; width]);
            }
            for j in 0..width {
                let (low, high) = self.features[at + j].range;
                let one = |value: f64| (0..width).map(|k| if k == j { value } else { 0.0 }).collect::<Vec<f64>>();
                choices.extend([low, high].into_iter().filter(|value| !(feature.exclusive && *value == 0.0)).map(one));
                if !feature.indicator {
                    let share = |point| f64::from(point) / f64::from(points + 1);
                    between.extend((1..=points).map(|point| one(low + share(point) * (high - low))));
                }
            }
            if rows.len().saturating_mul(choices.len()) > MOST_CORNERS {
                return (None, false);
            }
            let extend = |rows: &[Vec<f64>], choices: &[Vec<f64>]| -> Vec<Vec<f64>> {
                rows.iter().flat_map(|row| choices.iter().map(|choice| [row.as_slice(), choice].concat())).collect()
            };
            // A point on an edge lies between the ends in one feature alone.
            inner = [extend(&inner, &choices), extend(&rows, &between)].concat();
            rows = extend(&rows, &choices);
            at += width;
        }
        rows.extend(inner);
        let fits = rows.len() <= MOST_CORNERS;
        (Some(rows), fits)
    }
}
