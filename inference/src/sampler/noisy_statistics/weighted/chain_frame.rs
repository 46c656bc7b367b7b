//! The frame of the leverage weights of chains, from the information that a search released.
//!
//! Its images have a mean squared length of 1 over the records, each counted by its information. It is fixed before the first query of
//! a chain.

use super::answered::Answered;
use super::learnt_frame::LearntFrame;
use super::plan::Facts;
use super::progress::Progress;
use super::setting::{Lengths, Setting, TRACE};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::answer::Weighted;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::frame::Frame as Shape;
use crate::sampler::noisy_statistics::scores::frame_numbers;
use conclave_common::model::{Leverage, ScoreModel};
use conclave_privacy::pass::Frame;

/// Factor by which a frame is narrowed that is too wide for its integers, and the maximum number of times.
const NARROWER: f64 = 0.9;
const TRIES: usize = 80;

/// The frame, and the released lengths of the records.
#[derive(Debug, Clone)]
pub(crate) struct ChainFrame {
    unit: LearntFrame,
    is_indicator: Vec<bool>,
    lengths: Lengths,
    records: f64,
}

impl ChainFrame {
    /// R.
    pub(crate) const TRACE: f64 = TRACE;

    /// Builds the frame from a search's last stage.
    pub(super) fn new(answered: &Answered, facts: &Facts, progress: &Progress) -> Self {
        let (stage, noise) = (&answered.stage, answered.stage.eigenvalue_noise());
        let clear = stage.information.map_eigenvalues(|value| value.max(noise));
        let unit = of_information(&stage.frame, &clear, facts.records).scaled(progress.root(facts));
        Self { unit, is_indicator: facts.is_indicator.clone(), lengths: answered.lengths.clone(), records: facts.records }
    }

    /// Builds the frame that a search would find for a guessed information about the coefficients, over a number of records.
    pub(crate) fn guessed(scores: &dyn ScoreModel, coding: &Coding, information: &Matrix, records: f64) -> Self {
        /// Mean information of a record where there is no intercept, and bounds of it.
        const USUAL: f64 = 0.15;
        const BOUNDS: (f64, f64) = (1e-4, 0.25);
        let order = scores.coefficients();
        let mean = if scores.has_intercept() { information[(0, 0)] / records } else { USUAL };
        let base = LearntFrame::ball(coding, order, 1.0);
        let in_base = base.matrix().times(information).times(&base.matrix().transposed()).symmetrised();
        let unit = of_information(&base, &in_base, records).scaled(mean.clamp(BOUNDS.0, BOUNDS.1).sqrt());
        let is_indicator = (0..order).map(|j| scores.is_indicator(j)).collect();
        Self { unit, is_indicator, lengths: Lengths::of_normal(order), records }
    }

    /// Returns F, as a frame of coded gradients, for a squared radius in mean squared lengths; `None` if no narrower frame fits its
    /// integers.
    pub(crate) fn shape(&self, coding: &Coding, radius: f64) -> Option<Shape> {
        let frame = self.unit.clone().scaled(radius.sqrt().recip()).held(&self.is_indicator, 1.0, 1.0);
        let (order, back) = (self.is_indicator.len(), frame.inverse());
        let rows: Vec<Vec<f64>> = (0..order).map(|k| coding.coded(frame.matrix().row(k))).collect();
        let columns: Vec<Vec<f64>> =
            (0..order).map(|k| coding.gradient(&(0..order).map(|i| back[(i, k)]).collect::<Vec<f64>>())).collect();
        let mut shape = Shape {
            centre: vec![0.0; order],
            matrix: Matrix::from_fn(order, |i, j| rows[i][j]),
            inverse: Matrix::from_fn(order, |i, j| columns[j][i]),
        };
        for _ in 0..TRIES {
            let widening = Leverage::widening(Frame::new(&frame_numbers(coding, &shape), order)?);
            let within = shape.clone().shrunk(widening);
            let numbers = frame_numbers(coding, &within);
            if widening.is_finite() && Leverage::of(Frame::new(&numbers, order)?, TRACE).is_some() {
                return Some(within);
            }
            shape = shape.shrunk(NARROWER.recip());
        }
        None
    }

    /// Returns the report on chains with a squared radius, where unweighted ones would have this error, in posterior sds.
    pub(crate) fn weighted(&self, radius: f64, plain_noise: f64) -> Weighted {
        let (share_cut, mean_weight, shift) = self.lengths.summary(Setting { clip: f64::INFINITY, radius }, self.records, None);
        Weighted {
            radius,
            clip: None,
            share_cut,
            mean_weight,
            shift,
            clip_bias: None,
            plain_noise,
            frame: Vec::new(),
            at: Vec::new(),
            trace: TRACE,
            binary: true,
        }
    }
}

/// Returns the frame in which this information of a frame is the same along each axis, and its trace the number of records.
fn of_information(frame: &LearntFrame, information: &Matrix, records: f64) -> LearntFrame {
    let order = information.order() as f64;
    frame.stretched(information, |value| (records / (order * value.max(f64::MIN_POSITIVE))).sqrt())
}
