//! Identities about the movement of a run's chains. They hold for correct draws from any posterior, or from any approximately
//! normal one.
//!
//! Only kept steps and released numbers are used. Standard errors are those of means over stretches of a chain that are long
//! compared with its memory.

use super::Kicked;
use crate::sampler::dot;

/// Number of steps of a stretch, in units of one over a step's length.
const STRETCH: f64 = 10.0;
const SHORTEST: u64 = 16;
/// Maximum number of separate stretches; beyond it, neighbours are merged.
const MOST: usize = 512;
/// Least number of stretches for a standard error.
const FEWEST: usize = 20;

/// A mean with its standard error; `None` for too few steps.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Identity {
    /// Deviation from the expectation for correct draws.
    pub error: f64,
    /// Standard error of the deviation.
    pub standard_error: Option<f64>,
}

impl Identity {
    /// Returns the error in units of its standard error.
    pub(crate) fn z(self) -> f64 {
        self.standard_error.map_or(0.0, |se| if se > 0.0 { self.error.abs() / se } else { 0.0 })
    }

    /// Returns the one with the greatest error in units of its standard error.
    pub(crate) fn worst(identities: Vec<Self>) -> Option<Self> {
        identities.into_iter().max_by(|a, b| a.z().total_cmp(&b.z()))
    }
}

/// Sums over a stretch of one chain.
#[derive(Debug, Clone, Default)]
struct Stretch {
    steps: u64,
    /// Sums of places, of slopes at the midpoints after them, and of their products, per component.
    places: Vec<f64>,
    slopes: Vec<f64>,
    products: Vec<f64>,
    /// Sum of the squares of momenta.
    momenta: f64,
}

impl Stretch {
    fn add(&mut self, other: &Self) {
        let sum = |to: &mut Vec<f64>, from: &[f64]| {
            to.resize(from.len().max(to.len()), 0.0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        sum(&mut self.places, &other.places);
        sum(&mut self.slopes, &other.slopes);
        sum(&mut self.products, &other.products);
        self.steps += other.steps;
        self.momenta += other.momenta;
    }
}

/// The sums of all chains.
pub(crate) struct Watch {
    /// Number of steps of a stretch.
    length: u64,
    ended: Vec<Stretch>,
    /// Present stretch of each chain.
    open: Vec<Stretch>,
    /// Number of steps rejected without a query.
    unasked: u64,
    steps: u64,
    tested: u64,
    /// Sum of the probabilities of acceptance; sums of the squared errors of the energy, and of their noise's variance.
    acceptance: f64,
    energy: (f64, f64),
}

impl Watch {
    pub(crate) fn new(chains: usize, step: f64) -> Self {
        let length = ((STRETCH / step).ceil() as u64).max(SHORTEST);
        let open = vec![Stretch::default(); chains];
        Self { length, ended: Vec::new(), open, unasked: 0, steps: 0, tested: 0, acceptance: 0.0, energy: (0.0, 0.0) }
    }

    /// Adds a chain's place before a step, and the slope that was released at the step's midpoint.
    pub(crate) fn kicked(&mut self, chain: u32, Kicked { from, slope, momentum, .. }: &Kicked) {
        let Some(open) = self.open.get_mut(chain as usize) else { return };
        let products = from.iter().zip(slope).map(|(u, g)| u * g).collect();
        open.add(&Stretch {
            steps: 1,
            places: from.clone(),
            slopes: slope.clone(),
            products,
            momenta: dot(momentum, momentum) / momentum.len().max(1) as f64,
        });
        if open.steps >= self.length {
            self.ended.push(std::mem::take(open));
        }
        if self.ended.len() > MOST {
            // Neighbours may belong to two chains: a mean over both is just as good.
            let merged = self.ended.chunks(2).map(|pair| {
                let mut sum = Stretch::default();
                pair.iter().for_each(|part| sum.add(part));
                sum
            });
            self.ended = merged.collect();
            self.length *= 2;
        }
    }

    /// Adds the end of a step: its log acceptance ratio with the variance of the test's noise, or no test.
    pub(crate) fn stepped(&mut self, tested: Option<(f64, f64)>) {
        self.steps += 1;
        let Some((log_alpha, variance)) = tested else {
            self.unasked += 1;
            return;
        };
        self.tested += 1;
        self.acceptance += libm::exp(log_alpha.min(0.0));
        let error = log_alpha + 0.5 * variance;
        self.energy = (self.energy.0 + error * error, self.energy.1 + variance);
    }

    /// Returns the number of kept steps of all chains.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the share of kept steps that were rejected without a query.
    pub(crate) fn unasked(&self) -> f64 {
        self.unasked as f64 / self.steps.max(1) as f64
    }

    pub(crate) fn acceptance(&self) -> Option<f64> {
        (self.steps > 0).then(|| self.acceptance / self.steps as f64)
    }

    /// Returns the root mean square error of a step's energy, without the test's own noise.
    pub(crate) fn energy_error(&self) -> Option<f64> {
        (self.tested > 0).then(|| ((self.energy.0 - self.energy.1) / self.tested as f64).max(0.0).sqrt())
    }

    /// Returns the ratio of the momenta's mean square at the start of a step to its expectation, minus 1.
    pub(crate) fn kinetic(&self, variance: f64) -> Option<Identity> {
        self.identity(|part, _| part.momenta / variance - part.steps as f64, 1).pop()
    }

    /// Returns, per component, the mean of `(u - mean) g + 1`: 0 for a normal posterior, for any step (Stein's identity).
    pub(crate) fn stein(&self) -> Vec<Identity> {
        let total = self.total();
        let mean = |j: usize| total.places[j] / total.steps as f64;
        self.identity(|part, j| part.products[j] - mean(j) * part.slopes[j] + part.steps as f64, total.places.len())
    }

    /// Returns, per component, the mean of the slopes, whose expectation is 0.
    pub(crate) fn slopes(&self) -> Vec<Identity> {
        self.identity(|part, j| part.slopes[j], self.total().places.len())
    }

    fn total(&self) -> Stretch {
        let mut total = Stretch::default();
        self.ended.iter().chain(&self.open).for_each(|part| total.add(part));
        total
    }

    /// Returns the mean of a stretch's sum, per component.
    fn identity(&self, sum: impl Fn(&Stretch, usize) -> f64, components: usize) -> Vec<Identity> {
        let steps = self.total().steps;
        if steps == 0 {
            return Vec::new();
        }
        let one = |j: usize| {
            let all = self.ended.iter().chain(self.open.iter().filter(|part| part.steps > 0));
            let error = all.map(|part| sum(part, j)).sum::<f64>() / steps as f64;
            let count = self.ended.len();
            let squares = self.ended.iter().map(|part| (sum(part, j) / part.steps as f64 - error).powi(2));
            let se = (squares.sum::<f64>() / (count.max(2) - 1) as f64 / count.max(1) as f64).sqrt();
            Identity { error, standard_error: (count >= FEWEST).then_some(se) }
        };
        (0..components).map(one).collect()
    }
}
