//! Coordinates in which the posterior is approximately standard normal, and the gradient and its noise in them.

use crate::sampler::noisy_statistics::ChainFrame;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::frame::Frame as Shape;
use crate::sampler::noisy_statistics::grouped::grouped;
use crate::sampler::noisy_statistics::scores::{FILLED, coded_extremes, longest};
use crate::sampler::{Found, Matrix, Target, factor, frame_numbers};
use conclave_common::model::{Leverage, ScoreModel};
use conclave_privacy::pass::Frame;

/// Step of the differences that approximate the prior's slope, in posterior sds.
const DIFFERENCE: f64 = 1e-3;

/// Relative margin of a bound on a record's image for the rounding of its own arithmetic and of the record's numbers.
const ROUNDING: f64 = 2e-6;

/// The coordinates `u`, with `x = mean + A u` in coded coordinates.
pub(crate) struct Coordinates {
    coding: Coding,
    /// Number of records that subtract a centre, or 0.
    pub(crate) centred: f64,
    mean: Vec<f64>,
    /// A, with columns in which the components of a gradient's noise are uncorrelated in `u`.
    matrix: Matrix,
    inverse: Matrix,
    /// Frame of a gradient up to its width, which depends on the point.
    shape: Shape,
    /// Width at the mean if the corners are too many to list: the bound on a record's length there.
    longest: Option<f64>,
    /// Variances of a gradient's noise in `u` if each component of its sums has noise of variance 1 in a frame of width 1.
    variances: Vec<f64>,
    /// The numbers of the records' leverage weights, if they have any: the frame, which is then the same at every point, and R.
    leverage: Option<Vec<f64>>,
}

/// The frame of a gradient at a point.
pub(crate) struct At {
    pub(crate) frame: Shape,
    /// Ratio of its width to that of the shape alone.
    pub(crate) width: f64,
}

impl Coordinates {
    /// Builds the coordinates from the result of a search.
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
        Self::with_shape(coding, centred, (mean, &covariance), (shape, longest))
    }

    /// Builds the coordinates of chains with leverage weights of a squared radius from the result of a search; `None` if that has no
    /// frame, or none fits.
    pub(in crate::sampler) fn weighted(target: &Target, found: &Found, radius: f64) -> Option<Self> {
        let Found { coding, mean, covariance, frame, .. } = found;
        let shape = frame.as_ref()?.shape(coding, radius)?;
        let numbers = frame_numbers(coding, &shape).into_iter().chain([ChainFrame::TRACE]).collect::<Vec<f64>>();
        let _ = Leverage::new(&numbers, target.space.dimension())?;
        let coordinates = Self::with_shape(coding.clone(), 0.0, (mean.clone(), covariance), (shape, None));
        Some(Self { leverage: Some(numbers), ..coordinates })
    }

    fn with_shape(
        coding: Coding,
        centred: f64,
        (mean, covariance): (Vec<f64>, &Matrix),
        (shape, longest): (Shape, Option<f64>),
    ) -> Self {
        let root = factor(covariance);
        let noise = root.lower().transposed().times(&shape.noise(1.0)).times(root.lower()).symmetrised();
        let axes = noise.eigen();
        let turned = Matrix::from_fn(mean.len(), |i, j| axes[j].1[i]);
        let matrix = root.lower().times(&turned);
        let inverse = matrix.transposed().times(&root.inverse());
        let variances = axes.into_iter().map(|(value, _)| value.max(0.0)).collect();
        Self { coding, centred, mean, matrix, inverse, shape, longest, variances, leverage: None }
    }

    /// Returns the leverage weights of the records, if they have any.
    pub(crate) fn leverage(&self) -> Option<Leverage<'_>> {
        self.leverage.as_ref().and_then(|numbers| Leverage::new(numbers, self.dimension()))
    }

    /// Returns R of the leverage weights, the last number of a query, if the records have any.
    pub(crate) fn trace(&self) -> Option<f64> {
        self.leverage.as_ref().map(|_| ChainFrame::TRACE)
    }

    pub(crate) fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// Returns the model's own coordinates of a place.
    pub(crate) fn plain(&self, u: &[f64]) -> Vec<f64> {
        let coded: Vec<f64> = self.matrix.apply(u).iter().zip(&self.mean).map(|(x, mean)| x + mean).collect();
        self.coding.plain(&coded)
    }

    /// Returns theta at the search's result.
    pub(in crate::sampler) fn centre(&self, target: &Target) -> Vec<f64> {
        target.space.theta_inside(&target.spec, &self.plain(&vec![0.0; self.dimension()]))
    }

    /// Returns the place of the model's own coordinates.
    pub(crate) fn place(&self, plain: &[f64]) -> Vec<f64> {
        let from: Vec<f64> = self.coding.coded(plain).iter().zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.inverse.apply(&from)
    }

    /// Converts a step to coded coordinates.
    pub(crate) fn step(&self, u: &[f64]) -> Vec<f64> {
        self.matrix.apply(u)
    }

    /// Returns the unit steps of these coordinates in the model's coordinates.
    pub(crate) fn axes(&self) -> Vec<Vec<f64>> {
        let unit = |j: usize| -> Vec<f64> { (0..self.dimension()).map(|i| f64::from(u8::from(i == j))).collect() };
        (0..self.dimension()).map(|j| self.coding.plain(&self.matrix.apply(&unit(j)))).collect()
    }

    /// Returns the share of the variance of each of the model's coordinates that comes from each of these,
    /// `[coordinate][component]`; rows sum to 1.
    pub(crate) fn shares(&self) -> Vec<Vec<f64>> {
        let columns = self.axes();
        let row = |i: usize| {
            let squares: Vec<f64> = columns.iter().map(|column| column[i] * column[i]).collect();
            let sum: f64 = squares.iter().sum();
            squares.into_iter().map(|square| square / sum).collect()
        };
        (0..self.dimension()).map(row).collect()
    }

    /// Converts a covariance of coded coordinates to these.
    pub(crate) fn covariance(&self, coded: &Matrix) -> Matrix {
        self.inverse.times(coded).times(&self.inverse.transposed()).symmetrised()
    }

    /// Converts a slope in coded coordinates to these.
    pub(crate) fn slope(&self, coded: &[f64]) -> Vec<f64> {
        self.matrix.transposed().apply(coded)
    }

    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// Returns the frame of a gradient at theta; `None` if there is no finite bound on a record's gradient there.
    pub(crate) fn at(&self, scores: &dyn ScoreModel, theta: &[f64]) -> Option<At> {
        if self.leverage.is_some() {
            return Some(At { frame: self.shape.clone(), width: 1.0 });
        }
        let width = match self.longest {
            Some(here) => longest(scores, theta) / here / FILLED,
            None => {
                // An inert record contributes no gradient.
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

    /// Returns the greatest length of these coded gradients in the shape alone.
    fn reached(&self, gradients: &[Vec<f64>]) -> f64 {
        let length = |z: &Vec<f64>| self.shape.transform(z).iter().map(|x| x * x).sum::<f64>();
        gradients.iter().map(length).fold(0.0, f64::max).sqrt()
    }

    /// Returns the variances of a gradient's noise if each component of its sums has noise of this sd in a frame of this width.
    pub(crate) fn noise(&self, width: f64, sd: f64) -> Vec<f64> {
        self.variances.iter().map(|variance| variance * (width * sd) * (width * sd)).collect()
    }

    /// Returns the slope of the log prior in coded coordinates, by differences; 0 if it is not finite.
    ///
    /// A step is exact for any approximation of the slope, as long as it is a function of the place.
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
