//! What augmentation needs of a model: a law that whole records are drawn from, and what of a record is released.

use rand_chacha::ChaCha20Rng;

use super::conditional::Conditional;
use super::noise::Move;

/// The law of one record given theta, what of it is released, and the law of theta given all records.
pub(super) trait RecordLaw: Send + Sync {
    /// One of the numbers that a latent record is.
    type Value: Copy + Default + Send + Sync;
    /// What drawing records needs, worked out once a sweep.
    type Prepared: Send + Sync;
    /// Unknowns that are no parameter of the job, such as the law of the covariates.
    type Nuisance: Send + Sync;

    /// Numbers of a record, at least 1.
    fn width(&self) -> usize;

    /// Length of a [`Self::add`]ed summary.
    fn summary(&self) -> usize;

    /// The nuisance that a chain starts with.
    fn nuisance(&self) -> Self::Nuisance;

    /// Makes ready to draw records.
    fn prepare(&self, theta: &[f64], nuisance: &Self::Nuisance) -> Self::Prepared;

    /// Draws a record from `f(. | theta)`, before any clamping.
    fn draw(&self, prepared: &Self::Prepared, rng: &mut ChaCha20Rng, record: &mut [Self::Value]);

    /// What of a record is summed, clamped and on the lattice as at a party: pushes every component that is not 0.
    fn statistic(&self, record: &[Self::Value], moves: &mut Vec<Move>);

    /// How the sum moves when one record takes another's place: pushes every component whose value differs, once.
    fn replacement(&self, from: &[Self::Value], to: &[Self::Value], moves: &mut Vec<Move>);

    /// Adds a record to the sufficient statistics that theta depends on.
    fn add(&self, record: &[Self::Value], summary: &mut [f64]);

    /// One step of theta and the nuisance that leaves their law given all records, `summary`, unchanged; whether theta has moved.
    fn step(&self, summary: &[f64], theta: &mut [f64], nuisance: &mut Self::Nuisance, conditional: &mut Conditional<'_>) -> bool;
}
