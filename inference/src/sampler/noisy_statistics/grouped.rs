//! The frame of a gradient where the corners of the declared columns are too many to list.
//!
//! A record's gradient is a slope times its coded predictors. These lie in a product: 1 for the intercept, a number of magnitude
//! at most 1 for each single predictor, and one of the `L` vertices of a simplex for a column of `L` levels. In suitable
//! coordinates each simplex lies around its centre, `v = x - x_0/L`, and its vertices are equally long:
//! `v' (I + 1 1') v = (L - 1)/L`.
//!
//! There, noise that is independent between groups does the least harm. With variances `s` per group, the greatest squared length
//! is the sum of `a/s`, where `a` is a group's own maximum; the bound is met with equality. The harm is the sum of `w s`, where
//! `w` is the harm of noise of variance 1 in the group. It is least at `s = sqrt(a/w) sum sqrt(a w)`. For symmetric designs this
//! is the shape that [`super::frame`] finds from all corners.

use super::frame::Frame;
use super::gaussian::factor;
use crate::sampler::matrix::Matrix;
use conclave_common::model::ScoreModel;

/// Relative shrinkage of a frame that absorbs rounding.
const ROUNDING: f64 = 1e-9;

/// Coefficients of which a record has at most one with a predictor other than 0.
struct Group {
    of: Vec<usize>,
    /// Number of levels, including the reference level without a predictor, if the levels lie around their centre.
    levels: Option<f64>,
}

impl Group {
    /// Returns the greatest squared length of the group's coordinates.
    fn longest(&self) -> f64 {
        self.levels.map_or(1.0, |levels| (levels - 1.0) / levels)
    }
}

/// Returns the frame whose noise does the least harm to a posterior of this covariance, for gradients of length at most
/// `longest`.
///
/// Falls back to a ball if the numbers allow no better frame.
pub(crate) fn grouped(scores: &dyn ScoreModel, weight: &Matrix, longest: f64) -> Frame {
    let ball = Frame::ball(weight.order(), longest);
    if !(longest.is_finite() && longest > 0.0 && weight.order() == scores.coefficients()) {
        return ball;
    }
    let steepest = longest / (scores.most_squares() as f64).sqrt();
    Some(of_groups(&groups(scores), weight).shrunk(steepest * (1.0 + ROUNDING))).filter(Frame::finite).unwrap_or(ball)
}

fn groups(scores: &dyn ScoreModel) -> Vec<Group> {
    let coding = scores.coding();
    let group = |of: Vec<usize>| {
        let simplex = scores.has_intercept() && of[0] > 0 && of.iter().all(|j| scores.is_indicator(*j) && !coding[*j]);
        Group { levels: simplex.then_some(of.len() as f64 + 1.0), of }
    };
    scores.groups().into_iter().map(group).collect()
}

fn of_groups(groups: &[Group], weight: &Matrix) -> Frame {
    let order = weight.order();
    let (mut moved, mut back, mut metric) = (Matrix::identity(order), Matrix::identity(order), Matrix::identity(order));
    for Group { of, levels } in groups {
        let Some(levels) = levels else { continue };
        for j in of {
            (moved[(*j, 0)], back[(*j, 0)]) = (-levels.recip(), levels.recip());
            of.iter().for_each(|k| metric[(*j, *k)] += 1.0);
        }
    }
    // (L L')^-1 L is the inverse of L'.
    let root = factor(&metric);
    let (round, back) = (root.lower().transposed().times(&moved), back.times(&root.inverse().times(root.lower())));
    // Increase of the posterior variances by noise of variance 1 in each coordinate, in units of these variances.
    let made = weight.times(&back);
    let harm = |j: usize| (0..order).map(|i| made[(i, j)] * made[(i, j)] / weight[(i, i)]).sum::<f64>();
    let harms: Vec<f64> = groups.iter().map(|group| group.of.iter().map(|j| harm(*j)).sum()).collect();
    let all: f64 = groups.iter().zip(&harms).map(|(group, harm)| (group.longest() * harm).sqrt()).sum();
    let mut sds = vec![1.0; order];
    for (group, harm) in groups.iter().zip(&harms) {
        group.of.iter().for_each(|j| sds[*j] = ((group.longest() / harm).sqrt() * all).sqrt());
    }
    let inverse: Vec<f64> = sds.iter().map(|sd| sd.recip()).collect();
    Frame {
        centre: vec![0.0; order],
        matrix: Matrix::diagonal(&inverse).times(&round),
        inverse: back.times(&Matrix::diagonal(&sds)),
    }
}

#[cfg(test)]
#[path = "tests/grouped.rs"]
mod tests;
