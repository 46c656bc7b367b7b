//! Coordinates in which the posterior is about standard normal, and what a gradient and its noise are in them.

use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::frame::Frame as Shape;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::grouped::grouped;
use crate::sampler::noisy_statistics::score_strategy::Found;
use crate::sampler::noisy_statistics::scores::{FILLED, coded_extremes, frame_numbers, longest};
use crate::sampler::target::Target;
use conclave_common::model::ScoreModel;
use conclave_privacy::pass::Frame;

/// Step of the differences that the prior's slope is found by, in posterior sds.
const DIFFERENCE: f64 = 1e-3;

/// What a bound on a record's image is raised by against the rounding of its own arithmetic, and of a record's numbers.
const ROUNDING: f64 = 2e-6;

/// `x = mean + A u` in coded coordinates.
pub(crate) struct Coordinates {
    coding: Coding,
    /// Records that take a centre off each, else 0.
    pub(crate) centred: f64,
    mean: Vec<f64>,
    /// A, whose columns are such that the noise of a gradient has no correlation in `u`.
    matrix: Matrix,
    inverse: Matrix,
    /// The frame of a gradient but for how wide it is, which follows its point.
    shape: Shape,
    /// How wide it is at the mean, where corners are too many to list: the bound on a record's length there.
    longest: Option<f64>,
    /// The variances of a gradient's noise in `u` where each component of its sums, in a frame as wide as 1, has noise of variance 1.
    variances: Vec<f64>,
}

/// The frame of a gradient at a point.
pub(crate) struct At {
    pub(crate) frame: Shape,
    /// How much wider it is than the shape alone.
    pub(crate) width: f64,
}

impl Coordinates {
    /// Of what a search found.
    pub(in crate::sampler) fn new(target: &Target, scores: &dyn ScoreModel, found: Found) -> Self {
        let Found { coding, centred, mean, covariance, .. } = found;
        let theta = target.space.theta_inside(&target.spec, &coding.plain(&mean));
        let (shape, longest) = match coded_extremes(scores, &coding, &theta) {
            Some(points) => (Shape::shaped(&points, &covariance, centred > 0.0), None),
            None => {
                let longest = longest(scores, &theta);
                (grouped(scores, &covariance, longest), Some(longest))
            }
        };
        let root = factor(&covariance);
        let noise = root.lower().transposed().times(&shape.noise(1.0)).times(root.lower()).symmetrised();
        let axes = noise.eigen();
        let turned = Matrix::from_fn(mean.len(), |i, j| axes[j].1[i]);
        let matrix = root.lower().times(&turned);
        let inverse = matrix.transposed().times(&root.inverse());
        let variances = axes.into_iter().map(|(value, _)| value.max(0.0)).collect();
        Self { coding, centred, mean, matrix, inverse, shape, longest, variances }
    }

    pub(crate) fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The model's own coordinates of a place.
    pub(crate) fn plain(&self, u: &[f64]) -> Vec<f64> {
        let coded: Vec<f64> = self.matrix.apply(u).iter().zip(&self.mean).map(|(x, mean)| x + mean).collect();
        self.coding.plain(&coded)
    }

    /// The place of these of the model's own coordinates.
    pub(crate) fn place(&self, plain: &[f64]) -> Vec<f64> {
        let from: Vec<f64> = self.coding.coded(plain).iter().zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.inverse.apply(&from)
    }

    /// A step in coded coordinates.
    pub(crate) fn step(&self, u: &[f64]) -> Vec<f64> {
        self.matrix.apply(u)
    }

    /// What a step of 1 in each of these is in the model's coordinates.
    pub(crate) fn axes(&self) -> Vec<Vec<f64>> {
        let unit = |j: usize| -> Vec<f64> { (0..self.dimension()).map(|i| f64::from(u8::from(i == j))).collect() };
        (0..self.dimension()).map(|j| self.coding.plain(&self.matrix.apply(&unit(j)))).collect()
    }

    /// How much of its variance each of the model's coordinates has from each of these, `[coordinate][component]`; rows add up to 1.
    pub(crate) fn shares(&self) -> Vec<Vec<f64>> {
        let columns = self.axes();
        let row = |i: usize| {
            let squares: Vec<f64> = columns.iter().map(|column| column[i] * column[i]).collect();
            let sum: f64 = squares.iter().sum();
            squares.into_iter().map(|square| square / sum).collect()
        };
        (0..self.dimension()).map(row).collect()
    }

    /// A covariance of coded coordinates in these.
    pub(crate) fn covariance(&self, coded: &Matrix) -> Matrix {
        self.inverse.times(coded).times(&self.inverse.transposed()).symmetrised()
    }

    /// A slope in coded coordinates as one in these.
    pub(crate) fn slope(&self, coded: &[f64]) -> Vec<f64> {
        self.matrix.transposed().apply(coded)
    }

    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// The frame of a gradient at theta; `None` where no number says how long a record's is there.
    pub(crate) fn at(&self, scores: &dyn ScoreModel, theta: &[f64]) -> Option<At> {
        let width = match self.longest {
            Some(here) => longest(scores, theta) / here / FILLED,
            None => {
                // A record that is left out adds no gradient.
                let none = if self.centred > 0.0 { self.reached(&[vec![0.0; self.dimension()]]) } else { 0.0 };
                let image = |gradient: &[f64]| self.shape.transform(&self.coding.gradient(gradient));
                let all = match scores.reach(theta, &image) {
                    Some(reach) => reach * (1.0 + ROUNDING),
                    None => self.reached(&coded_extremes(scores, &self.coding, theta)?) / FILLED,
                };
                all.max(none * (1.0 + ROUNDING))
            }
        };
        let fits = |width: f64| width.is_finite() && width > 0.0;
        let numbers = frame_numbers(&self.coding, &self.shape.clone().shrunk(Some(width).filter(|width| fits(*width))?));
        let width = width * scores.widened(theta, Frame::new(&numbers, self.dimension())?);
        fits(width).then(|| At { frame: self.shape.clone().shrunk(width), width })
    }

    /// The greatest length of these coded gradients in the shape alone.
    fn reached(&self, gradients: &[Vec<f64>]) -> f64 {
        let length = |z: &Vec<f64>| self.shape.transform(z).iter().map(|x| x * x).sum::<f64>();
        gradients.iter().map(length).fold(0.0, f64::max).sqrt()
    }

    /// The variances of a gradient's noise where each component of its sums has noise of this sd in a frame of this width.
    pub(crate) fn noise(&self, width: f64, sd: f64) -> Vec<f64> {
        self.variances.iter().map(|variance| variance * (width * sd) * (width * sd)).collect()
    }

    /// The slope of the log prior, in coded coordinates: by differences, and 0 where there is none.
    ///
    /// A step is exact whatever is taken for it, as long as it is a function of the place.
    pub(in crate::sampler) fn prior_slope(&self, target: &Target, plain: &[f64]) -> Vec<f64> {
        let Target { spec, space, .. } = target;
        let log_prior = |u: &[f64]| space.log_prior(spec, u, &space.theta(u));
        let sds = self.coding.plain_covariance(&self.matrix.times(&self.matrix.transposed())).diagonal_entries();
        let slope = |(j, variance): (usize, f64)| {
            let by = DIFFERENCE * variance.sqrt();
            let (mut low, mut high) = (plain.to_vec(), plain.to_vec());
            low[j] -= by;
            high[j] += by;
            let slope = (log_prior(&high) - log_prior(&low)) / (high[j] - low[j]);
            if slope.is_finite() { slope } else { 0.0 }
        };
        self.coding.gradient(&sds.into_iter().enumerate().map(slope).collect::<Vec<_>>())
    }
}
