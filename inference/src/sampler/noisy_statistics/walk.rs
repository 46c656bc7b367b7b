//! Draws of a density that costs nothing to look at, nearly independent of each other.
//!
//! Two kinds of moves take turns. Independence proposals from a multivariate t around a Gaussian
//! approximation (Tierney 1994) give draws that remember nothing where the approximation is good, and reach
//! into tails that are heavier than a Gaussian's. Elliptical slices through a Gaussian of the same place and
//! shape (Murray, Adams & MacKay 2010; the density divided by that Gaussian is the likelihood there) always
//! move and need no tuning: they carry the walk where a box cuts the density off, or a prior bends it.
//!
//! The approximation is measured anew three times in the warm-up, from the draws of all chains, and kept
//! from then on: kept draws come from one fixed kernel that leaves the density invariant. Slices along the
//! coordinates and the approximation's principal axes (Neal 2003) come before the first measurement: they find
//! their width themselves where the approximation is far off. They stay in the kernel where independence
//! proposals are rarely accepted: where a box cuts many coordinates off, say.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::gaussian::factor;
use crate::sampler::matrix::{Cholesky, Matrix};

/// Degrees of freedom of the independence proposals.
const FREEDOM: u32 = 8;
/// Moves of each kind per draw.
const TURNS: usize = 2;
/// Narrowings of a slice before it stays where it is: the angle is below 1e-12 by then.
const NARROWINGS: usize = 200;
/// The slices' Gaussian is wider than the approximation by this, in variance: what is too narrow mixes
/// slowly in its tails.
const WIDER: f64 = 1.2;
/// Draws per chain of the warm-up where none is given.
const WARMUP: usize = 700;
/// Parts of the warm-up after which the approximation is measured.
const PARTS: [usize; 3] = [7, 3, 1];
/// Most widths that a slice along a line is stepped out by, to either side.
const STEPS_OUT: usize = 12;
/// Accepted share of independence proposals below which slices along lines go on.
const RARELY: f64 = 0.25;
/// Halvings of the way from a point of positive density to the approximation's mean.
const HALVINGS: u32 = 30;

/// How to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkSettings {
    /// Number of chains.
    pub(crate) chains: usize,
    /// The job's seed.
    pub(crate) seed: u64,
    /// The stream of the first chain; the others follow.
    pub(crate) first_stream: u64,
    /// Draws per chain that go before; 0 for a number that has been enough.
    pub(crate) warmup: usize,
}

/// Chains at work.
pub(crate) struct Walk {
    around: Around,
    /// Slices along lines per turn.
    lines: usize,
    chains: Vec<Chain>,
}

/// The approximation that moves are made by.
struct Around {
    mean: Vec<f64>,
    factor: Cholesky,
    /// Coordinates and principal axes, each as long as the sd along it.
    lines: Vec<Vec<f64>>,
}

struct Chain {
    at: Place,
    rng: ChaCha20Rng,
    /// The line that is moved along next.
    line: usize,
    asked: u64,
    taken: u64,
}

#[derive(Clone)]
struct Place {
    u: Vec<f64>,
    log: f64,
}

/// A log density in the walk's coordinates.
pub(crate) type Density<'a> = &'a dyn Fn(&[f64]) -> f64;

impl Walk {
    /// Chains that have warmed up from a Gaussian approximation and a point of positive density. `None`
    /// where the density is not positive there. What is not finite counts as no density.
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
            Chain { at: start.clone(), rng, line: 0, asked: 0, taken: 0 }
        };
        let around = Around::new(mean.to_vec(), covariance, factor(covariance));
        let mut walk = Self { around, lines: 0, chains: (0..settings.chains.max(1)).map(chain).collect() };
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
            walk.chains.iter_mut().for_each(|chain| (chain.asked, chain.taken) = (0, 0));
        }
        Some(walk)
    }

    /// One draw of every chain.
    pub(crate) fn draw(&mut self, density: Density<'_>) -> Vec<Vec<f64>> {
        let (around, lines) = (&self.around, self.lines);
        let one = |chain: &mut Chain| {
            chain.advance(around, lines, density);
            chain.at.u.clone()
        };
        self.chains.iter_mut().map(one).collect()
    }

    /// The share of the independence proposals since the warm-up that were accepted.
    pub(crate) fn acceptance(&self) -> f64 {
        let (asked, taken) = self.chains.iter().fold((0, 0), |(a, t), chain| (a + chain.asked, t + chain.taken));
        taken as f64 / (asked as f64).max(1.0)
    }

    /// Takes mean and covariance of the later two thirds of these draws as the approximation, where they are
    /// enough.
    fn measure(&mut self, seen: &[Vec<Vec<f64>>]) {
        let draws: Vec<&Vec<f64>> = seen[seen.len() / 3..].iter().flatten().collect();
        let d = self.around.mean.len();
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
        // A direction that no chain has moved along yet keeps some width of its own.
        let before = self.around.factor.lower();
        let kept = before.times(&before.transposed()).diagonal_entries();
        let least: Vec<f64> = kept.iter().zip(covariance.diagonal_entries()).map(|(k, c)| (1e-6 * k).max(1e-9 * c)).collect();
        let covariance = covariance.plus(&Matrix::diagonal(&least), 1.0).symmetrised();
        if let Some(factor) = covariance.cholesky() {
            self.around = Around::new(mean, &covariance, factor);
        }
    }
}

/// The point nearest to `mean`, on the way from `inside`, that the halvings find positive density at.
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

impl Around {
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

    /// z of a place.
    fn standard(&self, u: &[f64]) -> Vec<f64> {
        let off: Vec<f64> = u.iter().zip(&self.mean).map(|(u, m)| u - m).collect();
        self.factor.solve_lower(&off)
    }
}

fn squared(z: &[f64]) -> f64 {
    z.iter().map(|x| x * x).sum()
}

/// Log density of the t proposals at squared distance `r2`, up to a constant.
fn log_t(r2: f64, dimension: usize) -> f64 {
    -0.5 * (f64::from(FREEDOM) + dimension as f64) * libm::log1p(r2 / f64::from(FREEDOM))
}

impl Chain {
    fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| StandardNormal.sample(&mut self.rng)).collect()
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f64 {
        1.0 - self.rng.random::<f64>()
    }

    fn advance(&mut self, around: &Around, lines: usize, density: Density<'_>) {
        for _ in 0..TURNS {
            for _ in 0..lines {
                self.along(&around.lines[self.line % around.lines.len()], density);
                self.line = (self.line + 1) % around.lines.len();
            }
            self.jump(around, density);
            self.slice(around, density);
        }
    }

    /// One independence proposal.
    fn jump(&mut self, around: &Around, density: Density<'_>) {
        let d = around.mean.len();
        let chi = squared(&self.normals(FREEDOM as usize)) / f64::from(FREEDOM);
        let z: Vec<f64> = self.normals(d).iter().map(|z| z / chi.sqrt()).collect();
        let uniform = self.uniform();
        let to = Place::of(around.place(&z), density);
        let back = log_t(squared(&around.standard(&self.at.u)), d);
        let log_alpha = to.log - self.at.log + back - log_t(squared(&z), d);
        self.asked += 1;
        if libm::log(uniform) <= log_alpha {
            self.taken += 1;
            self.at = to;
        }
    }

    /// One slice along a line through where the chain is, stepped out and narrowed.
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

    /// One elliptical slice.
    fn slice(&mut self, around: &Around, density: Density<'_>) {
        let root = WIDER.sqrt();
        let from = around.standard(&self.at.u);
        let other: Vec<f64> = self.normals(around.mean.len()).iter().map(|z| root * z).collect();
        // The density beside the slices' Gaussian.
        let beside = |log: f64, z: &[f64]| log + 0.5 * squared(z) / WIDER;
        let level = beside(self.at.log, &from) + libm::log(self.uniform());
        let mut angle = 2.0 * std::f64::consts::PI * self.uniform();
        let (mut low, mut high) = (angle - 2.0 * std::f64::consts::PI, angle);
        for _ in 0..NARROWINGS {
            let (cos, sin) = (libm::cos(angle), libm::sin(angle));
            let z: Vec<f64> = from.iter().zip(&other).map(|(a, b)| a * cos + b * sin).collect();
            let to = Place::of(around.place(&z), density);
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
