//! Nearly independent draws from a density that is cheap to evaluate.
//!
//! Two kinds of moves alternate. Independence proposals from a multivariate t around a Gaussian approximation (Tierney 1994) give
//! uncorrelated draws where the approximation is good, and reach into tails that are heavier than a Gaussian's. Elliptical slices
//! through a Gaussian of the same location and shape (Murray, Adams & MacKay 2010) use the density divided by that Gaussian as
//! the likelihood. They always move and need no tuning, and so make progress where a box truncates the density or a prior bends
//! it.
//!
//! The approximation is measured again three times during the warm-up, from the draws of all chains, and is fixed after that:
//! kept draws come from one fixed kernel that leaves the density invariant. Before the first measurement, slices along the
//! coordinates and the approximation's principal axes (Neal 2003) run as well, because they find their own width where the
//! approximation is far off. They stay in the kernel if independence proposals are rarely accepted, for example where a box
//! truncates many coordinates.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::gaussian::factor;
use crate::sampler::matrix::{Cholesky, Matrix};

/// Degrees of freedom of the independence proposals.
const FREEDOM: u32 = 8;
/// Number of moves of each kind per draw.
const TURNS: usize = 2;
/// Maximum number of narrowings of a slice, after which the chain does not move: the angle is below 1e-12 by then.
const NARROWINGS: usize = 200;
/// Ratio of the slices' variance to the approximation's: a Gaussian that is too narrow mixes slowly in its tails.
const WIDER: f64 = 1.2;
/// Default number of warm-up draws per chain.
const WARMUP: usize = 700;
/// Divisors of the warm-up's length after which the approximation is measured.
const PARTS: [usize; 3] = [7, 3, 1];
/// Maximum number of widths by which a slice along a line is stepped out on each side.
const STEPS_OUT: usize = 12;
/// Acceptance rate of independence proposals below which slices along lines continue.
const RARELY: f64 = 0.25;
/// Number of halvings of the path from a point of positive density to the approximation's mean.
const HALVINGS: u32 = 30;

/// Settings of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkSettings {
    /// Number of chains.
    pub(crate) chains: usize,
    /// The job's seed.
    pub(crate) seed: u64,
    /// Random stream of the first chain; the others follow.
    pub(crate) first_stream: u64,
    /// Number of warm-up draws per chain; 0 for the default.
    pub(crate) warmup: usize,
}

/// The chains of a walk.
pub(crate) struct Walk {
    approximation: Approximation,
    /// Number of slices along lines per turn.
    lines: usize,
    chains: Vec<Chain>,
}

/// The Gaussian approximation behind the moves.
struct Approximation {
    mean: Vec<f64>,
    factor: Cholesky,
    /// Coordinates and principal axes, each as long as the sd along it.
    lines: Vec<Vec<f64>>,
}

struct Chain {
    at: Place,
    rng: ChaCha20Rng,
    /// Index of the next line.
    line: usize,
    proposed: u64,
    accepted: u64,
}

#[derive(Clone)]
struct Place {
    u: Vec<f64>,
    log: f64,
}

/// A log density in the walk's coordinates.
pub(crate) type Density<'a> = &'a dyn Fn(&[f64]) -> f64;

impl Walk {
    /// Warms chains up from a Gaussian approximation and a point of positive density. Returns `None` if the density is not
    /// positive there. A value that is not finite counts as density 0.
    pub(crate) fn new(
        settings: WalkSettings,
        mean: &[f64],
        covariance: &Matrix,
        inside: &[f64],
        density: Density<'_>,
    ) -> Option<Self> {
        let start = towards(mean, inside, density)?;
        let chain = |id: usize| {
            let mut rng = ChaCha20Rng::seed_from_u64(settings.seed);
            rng.set_stream(settings.first_stream.wrapping_add(id as u64));
            Chain { at: start.clone(), rng, line: 0, proposed: 0, accepted: 0 }
        };
        let approximation = Approximation::new(mean.to_vec(), covariance, factor(covariance));
        let mut walk = Self { approximation, lines: 0, chains: (0..settings.chains.max(1)).map(chain).collect() };
        let warmup = if settings.warmup == 0 { WARMUP } else { settings.warmup };
        let mut gone = 0;
        let some = mean.len() / 2 + 1;
        for part in PARTS {
            let until = warmup / part;
            walk.lines = if gone == 0 { 2 * mean.len() / TURNS + 1 } else { walk.lines };
            let seen: Vec<Vec<Vec<f64>>> = (gone..until).map(|_| walk.draw(density)).collect();
            gone = until;
            walk.lines = if walk.acceptance() < RARELY { some } else { 0 };
            walk.measure(&seen);
            walk.chains.iter_mut().for_each(|chain| (chain.proposed, chain.accepted) = (0, 0));
        }
        Some(walk)
    }

    /// Returns one draw per chain.
    pub(crate) fn draw(&mut self, density: Density<'_>) -> Vec<Vec<f64>> {
        let (approximation, lines) = (&self.approximation, self.lines);
        let one = |chain: &mut Chain| {
            chain.advance(approximation, lines, density);
            chain.at.u.clone()
        };
        self.chains.iter_mut().map(one).collect()
    }

    /// Returns the acceptance rate of the independence proposals since the warm-up.
    pub(crate) fn acceptance(&self) -> f64 {
        let (proposed, accepted) = self.chains.iter().fold((0, 0), |(a, t), chain| (a + chain.proposed, t + chain.accepted));
        accepted as f64 / (proposed as f64).max(1.0)
    }

    /// Replaces the approximation by mean and covariance of the later two thirds of these draws, if there are enough.
    fn measure(&mut self, seen: &[Vec<Vec<f64>>]) {
        let draws: Vec<&Vec<f64>> = seen[seen.len() / 3..].iter().flatten().collect();
        let d = self.approximation.mean.len();
        let count = draws.len() as f64;
        if draws.len() <= 4 * d {
            return;
        }
        let mean: Vec<f64> = (0..d).map(|j| draws.iter().map(|u| u[j]).sum::<f64>() / count).collect();
        let mut covariance = Matrix::zeros(d);
        for u in &draws {
            let off: Vec<f64> = u.iter().zip(&mean).map(|(u, m)| u - m).collect();
            covariance = covariance.plus(&Matrix::outer(&off, 1.0 / count), 1.0);
        }
        // A direction without any moves so far keeps some width.
        let before = self.approximation.factor.lower();
        let kept = before.times(&before.transposed()).diagonal_entries();
        let least: Vec<f64> = kept.iter().zip(covariance.diagonal_entries()).map(|(k, c)| (1e-6 * k).max(1e-9 * c)).collect();
        let covariance = covariance.plus(&Matrix::diagonal(&least), 1.0).symmetrised();
        if let Some(factor) = covariance.cholesky() {
            self.approximation = Approximation::new(mean, &covariance, factor);
        }
    }
}

/// Returns the first point of positive density on the path from `mean` to `inside`, found by halving.
fn towards(mean: &[f64], inside: &[f64], density: Density<'_>) -> Option<Place> {
    let mut part = 1.0;
    for _ in 0..HALVINGS {
        let place = Place::of(inside.iter().zip(mean).map(|(i, m)| i + part * (m - i)).collect(), density);
        if place.log.is_finite() {
            return Some(place);
        }
        part *= 0.5;
    }
    Some(Place::of(inside.to_vec(), density)).filter(|place| place.log.is_finite())
}

impl Place {
    fn of(u: Vec<f64>, density: Density<'_>) -> Self {
        let log = density(&u);
        Self { u, log: if log.is_finite() { log } else { f64::NEG_INFINITY } }
    }
}

impl Approximation {
    fn new(mean: Vec<f64>, covariance: &Matrix, factor: Cholesky) -> Self {
        let scaled = |(variance, axis): (f64, Vec<f64>)| axis.iter().map(|x| variance.max(0.0).sqrt() * x).collect();
        let sds = covariance.diagonal_entries();
        let coordinate =
            |(j, variance): (usize, &f64)| (0..sds.len()).map(|i| if i == j { variance.sqrt() } else { 0.0 }).collect();
        let lines = sds.iter().enumerate().map(coordinate).chain(covariance.eigen().into_iter().map(scaled)).collect();
        Self { mean, factor, lines }
    }

    /// `mean + factor z`.
    fn place(&self, z: &[f64]) -> Vec<f64> {
        let lower = self.factor.lower();
        let moved = |i: usize| lower.row(i)[..=i].iter().zip(z).map(|(l, z)| l * z).sum::<f64>();
        self.mean.iter().enumerate().map(|(i, m)| m + moved(i)).collect()
    }

    /// Returns the z of a place.
    fn standard(&self, u: &[f64]) -> Vec<f64> {
        let off: Vec<f64> = u.iter().zip(&self.mean).map(|(u, m)| u - m).collect();
        self.factor.solve_lower(&off)
    }
}

fn squared(z: &[f64]) -> f64 {
    z.iter().map(|x| x * x).sum()
}

/// Returns the log density of the t proposals at squared distance `r2`, up to a constant.
fn log_t(r2: f64, dimension: usize) -> f64 {
    -0.5 * (f64::from(FREEDOM) + dimension as f64) * libm::log1p(r2 / f64::from(FREEDOM))
}

impl Chain {
    fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| StandardNormal.sample(&mut self.rng)).collect()
    }

    /// Draws a uniform number in (0, 1].
    fn uniform(&mut self) -> f64 {
        1.0 - self.rng.random::<f64>()
    }

    fn advance(&mut self, approximation: &Approximation, lines: usize, density: Density<'_>) {
        for _ in 0..TURNS {
            for _ in 0..lines {
                self.along(&approximation.lines[self.line % approximation.lines.len()], density);
                self.line = (self.line + 1) % approximation.lines.len();
            }
            self.jump(approximation, density);
            self.slice(approximation, density);
        }
    }

    /// Makes one independence proposal.
    fn jump(&mut self, approximation: &Approximation, density: Density<'_>) {
        let d = approximation.mean.len();
        let chi = squared(&self.normals(FREEDOM as usize)) / f64::from(FREEDOM);
        let z: Vec<f64> = self.normals(d).iter().map(|z| z / chi.sqrt()).collect();
        let uniform = self.uniform();
        let to = Place::of(approximation.place(&z), density);
        let back = log_t(squared(&approximation.standard(&self.at.u)), d);
        let log_alpha = to.log - self.at.log + back - log_t(squared(&z), d);
        self.proposed += 1;
        if libm::log(uniform) <= log_alpha {
            self.accepted += 1;
            self.at = to;
        }
    }

    /// Makes one slice move along a line through the current place, with stepping out and narrowing.
    fn along(&mut self, line: &[f64], density: Density<'_>) {
        let from = self.at.u.clone();
        let at = |t: f64| Place::of(from.iter().zip(line).map(|(u, l)| u + t * l).collect(), density);
        let level = self.at.log + libm::log(self.uniform());
        let low = -self.uniform();
        let end = |start: f64, sign: f64| (0..STEPS_OUT).map(|k| start + sign * k as f64).find(|t| at(*t).log < level);
        let (mut high, mut low) =
            (end(low + 1.0, 1.0).unwrap_or(low + 1.0 + STEPS_OUT as f64), end(low, -1.0).unwrap_or(low - STEPS_OUT as f64));
        for _ in 0..NARROWINGS {
            let t = low + (high - low) * self.uniform();
            let to = at(t);
            if to.log >= level {
                self.at = to;
                return;
            }
            if t < 0.0 {
                low = t;
            } else {
                high = t;
            }
        }
    }

    /// Makes one elliptical slice move.
    fn slice(&mut self, approximation: &Approximation, density: Density<'_>) {
        let root = WIDER.sqrt();
        let from = approximation.standard(&self.at.u);
        let other: Vec<f64> = self.normals(approximation.mean.len()).iter().map(|z| root * z).collect();
        // The density relative to the slices' Gaussian.
        let beside = |log: f64, z: &[f64]| log + 0.5 * squared(z) / WIDER;
        let level = beside(self.at.log, &from) + libm::log(self.uniform());
        let mut angle = 2.0 * std::f64::consts::PI * self.uniform();
        let (mut low, mut high) = (angle - 2.0 * std::f64::consts::PI, angle);
        for _ in 0..NARROWINGS {
            let (cos, sin) = (libm::cos(angle), libm::sin(angle));
            let z: Vec<f64> = from.iter().zip(&other).map(|(a, b)| a * cos + b * sin).collect();
            let to = Place::of(approximation.place(&z), density);
            if beside(to.log, &z) >= level {
                self.at = to;
                return;
            }
            if angle < 0.0 {
                low = angle;
            } else {
                high = angle;
            }
            angle = low + (high - low) * self.uniform();
        }
    }
}

#[cfg(test)]
#[path = "tests/walk.rs"]
mod tests;
