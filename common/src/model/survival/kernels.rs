//! The kernels of a piecewise exponential model's score and information.

use super::intervals::{Followed, Hazards, ZERO};
use crate::model::weighted::WeightedSum;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::{Columns, Place};
use conclave_privacy::pass::small_tile::TileLane;
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// Each record's score in a frame. An inert record contributes the shift.
pub(super) struct Score<'a> {
    pub(super) hazards: Hazards<'a>,
    /// The frame's rows and shift.
    rows: Vec<Vec<f64>>,
    shift: Vec<f64>,
    /// Each component's weights of the predictors.
    along: Vec<WeightedSum>,
}

impl<'a> Score<'a> {
    pub(super) fn new(hazards: Hazards<'a>, frame: Frame<'_>) -> Self {
        let intervals = hazards.log_hazards.len();
        let row = |component: usize| frame.row(component).iter().map(|entry| usable(*entry)).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = (0..frame.parameters()).map(row).collect();
        let weights = |row: &Vec<f64>| {
            WeightedSum::new(0.0, row[intervals..].iter().enumerate().map(|(j, weight)| (*weight, ColumnRef::Predictor(j))))
        };
        Self {
            along: rows.iter().map(weights).collect(),
            shift: frame.shift().iter().map(|b| usable(*b)).collect(),
            rows,
            hazards,
        }
    }
}

/// Returns an entry of a frame, or 0 for one with which products of records would be subnormal or overflow.
fn usable(entry: f64) -> f64 {
    if (LEAST_ENTRY..=LEAST_ENTRY.recip()).contains(&entry.abs()) { entry } else { 0.0 }
}

/// The least magnitude of a frame's entry.
const LEAST_ENTRY: f64 = 1e-30;

/// Space for a tile's scores.
pub(super) struct ScoreRoom {
    followed: Followed,
    /// `d - L`
    slope: TileLane<f64>,
    along: TileLane<f64>,
}

impl Columns for Score<'_> {
    type Room = ScoreRoom;

    fn room(&self) -> ScoreRoom {
        ScoreRoom { followed: Followed::new(self.hazards.log_hazards.len()), slope: ZERO, along: ZERO }
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, room: &mut ScoreRoom, columns: &mut [[f64; N]]) {
        let records = rows.len();
        let ScoreRoom { followed, slope, along } = room;
        self.hazards.follow(rows, followed);
        let (slope, along) = (&mut slope.0[..records], &mut along.0[..records]);
        slope.fill(0.0);
        for (events, hazards) in followed.events.iter_mut().zip(&followed.hazards) {
            for ((event, hazard), slope) in events.0.iter_mut().zip(&hazards.0).zip(&mut *slope) {
                // From here on, the score in the interval's log hazard.
                *event -= hazard;
                *slope += *event;
            }
        }
        for (component, (column, weights)) in columns.iter_mut().zip(&self.along).enumerate() {
            let (row, shift) = (&self.rows[component], self.shift[component]);
            weights.fill(rows, along);
            along.iter_mut().zip(&*slope).for_each(|(along, slope)| *along *= slope);
            for (weight, score) in row.iter().zip(&followed.events) {
                along.iter_mut().zip(&score.0).for_each(|(along, score)| *along += weight * score);
            }
            for i in 0..records {
                column[i] = shift + if along[i].is_nan() { 0.0 } else { along[i] };
            }
        }
    }
}

/// Each record's mean of the information at a point and of its event's, over its greatest weight. In each interval it is the outer product of the
/// interval's unit vector and the predictors.
pub(super) struct Information<'a> {
    pub(super) hazards: Hazards<'a>,
    /// The coded predictors.
    pub(super) predictors: Vec<WeightedSum>,
    /// The weight of a record that is released as 1.
    pub(super) scale: f64,
}

impl Information<'_> {
    /// Returns the vector and the component of each column: interval by interval, the interval's own and the predictors'.
    pub(super) fn places(&self) -> Vec<Place> {
        let intervals = self.hazards.log_hazards.len();
        let components = |vector| std::iter::once(vector).chain(intervals..intervals + self.predictors.len());
        (0..intervals).flat_map(|vector| components(vector).map(move |component| Place { vector, component })).collect()
    }
}

impl Columns for Information<'_> {
    type Room = (Followed, TileLane<f64>);

    fn room(&self) -> (Followed, TileLane<f64>) {
        (Followed::new(self.hazards.log_hazards.len()), ZERO)
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, (followed, coded): &mut (Followed, TileLane<f64>), columns: &mut [[f64; N]]) {
        let records = rows.len();
        self.hazards.follow(rows, followed);
        let width = 1 + self.predictors.len();
        for (k, (events, hazards)) in followed.events.iter().zip(&followed.hazards).enumerate() {
            let root = &mut columns[k * width];
            for (root, (event, hazard)) in root[..records].iter_mut().zip(events.0.iter().zip(&hazards.0)) {
                *root = (0.5 * (event + hazard) / self.scale).sqrt();
            }
        }
        let coded = &mut coded.0[..records];
        for (j, predictor) in self.predictors.iter().enumerate() {
            predictor.fill(rows, coded);
            for interval in columns.chunks_exact_mut(width) {
                if let [root, others @ ..] = interval {
                    others[j][..records].iter_mut().zip(&*coded).zip(&*root).for_each(|((out, x), root)| *out = x * root);
                }
            }
        }
    }
}
