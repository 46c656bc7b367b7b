//! A gradient-driven chain, message by message.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{Field, Place};
use crate::sampler::Matrix;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// The state of a chain at the midpoint of a step, with the released gradient.
pub(crate) struct Kicked {
    /// Place at the start of the step.
    pub(crate) from: Vec<f64>,
    /// Released slope of the log posterior at the midpoint.
    pub(crate) slope: Vec<f64>,
    /// Momentum before the kick.
    pub(crate) momentum: Vec<f64>,
    /// Midpoint, in the model's coordinates.
    pub(crate) middle: Vec<f64>,
    /// Slope of the log likelihood alone, with the variances of its noise.
    pub(crate) score: Vec<f64>,
    pub(crate) variances: Vec<f64>,
    /// If the midpoint was queried before, every party's earlier and present answers.
    pub(crate) repeated: Option<[Vec<Vec<i64>>; 2]>,
    /// Set if a correct chain follows its stationary law before the kick. In the middle of a trajectory its momenta are warmer.
    pub(crate) at_rest: bool,
}

/// The query of a step's test.
pub(crate) struct TestQuery {
    pub(crate) kind: QueryKind,
    pub(crate) from: Vec<f64>,
    pub(crate) to: Vec<f64>,
}

/// One chain: as many gradients per step as its settings say, and at most one test at its end.
pub(crate) trait Moves {
    fn state(&self) -> &ChainState;

    fn state_mut(&mut self) -> &mut ChainState;

    /// Returns the query for the next gradient of a step, the first one or a later one; `None` if the step has ended.
    fn gradient_query(&mut self, field: &Field<'_>, first: bool) -> Option<Query>;

    /// Processes the gradient's totals and each party's release.
    fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked>;

    /// Returns the query of the step's test, if there is one.
    fn test(&self) -> Option<TestQuery>;

    /// Accepts or rejects the step on the test's answer, summed over the parties in log-likelihood units.
    fn decide(&mut self, step: f64, answer: f64);
}

/// The place of a chain, its own random stream, and its last decision.
pub(crate) struct ChainState {
    pub(super) id: u32,
    pub(super) rng: ChaCha20Rng,
    pub(super) at: Place,
    /// Variance of the noise of the pending test, over all parties.
    pub(super) test_variance: f64,
    accepted: bool,
    log_alpha: f64,
    /// Variance of the noise of the last step's test; `None` if it had none.
    tested: Option<f64>,
}

impl ChainState {
    /// Starts a chain near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(super) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(field.target.spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let at = Place::first(field, &mut rng, error, start);
        Self { id, rng, at, test_variance: 0.0, accepted: false, log_alpha: f64::NEG_INFINITY, tested: None }
    }

    /// Decides the pending test by the next random number. `libm` makes a replay on another machine decide in the same way.
    pub(super) fn decides(&mut self, log_alpha: f64) -> bool {
        let accepted = libm::log(1.0 - self.rng.random::<f64>()) < log_alpha;
        (self.accepted, self.log_alpha, self.tested) = (accepted, log_alpha, Some(self.test_variance));
        accepted
    }

    /// Accepts a step without a test.
    pub(super) fn accept(&mut self) {
        (self.accepted, self.log_alpha, self.tested) = (true, 0.0, Some(0.0));
    }

    /// Rejects a step without a query.
    pub(super) fn reject(&mut self) {
        (self.accepted, self.log_alpha, self.tested) = (false, f64::NEG_INFINITY, None);
    }

    /// Returns the last step's log acceptance ratio and the variance of its test's noise; `None` if it was rejected without a
    /// query.
    pub(super) fn tested(&self) -> Option<(f64, f64)> {
        self.tested.map(|variance| (self.log_alpha, variance))
    }

    pub(super) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        let Self { id: chain, at, accepted, log_alpha, .. } = self;
        let theta = at.theta.clone();
        Draw { chain: *chain, warmup, theta, accepted: *accepted, log_alpha: *log_alpha, iteration }
    }
}
