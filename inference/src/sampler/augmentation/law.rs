//! The requirements of augmentation on a model: a law that complete records are drawn from, and a record's released statistic.

use rand_chacha::ChaCha20Rng;

use super::{Conditional, Move};

/// The law of one record given theta, its released statistic, and the law of theta given all records.
pub(super) trait RecordLaw: Send + Sync {
    /// Type of one number of a latent record.
    type Value: Copy + Default + Send + Sync;
    /// Values that are computed once per sweep for drawing records.
    type Prepared: Send + Sync;
    /// Unknowns that are not parameters of the job, such as the law of the covariates.
    type Nuisance: Send + Sync;

    /// Returns the number of values in a record, at least 1.
    fn width(&self) -> usize;

    /// Returns the length of the summary that [`Self::add`] fills.
    fn summary(&self) -> usize;

    /// Returns the initial nuisance of a chain.
    fn nuisance(&self) -> Self::Nuisance;

    /// Prepares the drawing of records.
    fn prepare(&self, theta: &[f64], nuisance: &Self::Nuisance) -> Self::Prepared;

    /// Draws a record from `f(. | theta)`, before any clamping.
    fn draw(&self, prepared: &Self::Prepared, rng: &mut ChaCha20Rng, record: &mut [Self::Value]);

    /// Pushes every component other than 0 of a record's statistic, clamped and on the lattice as at a party.
    fn statistic(&self, record: &[Self::Value], moves: &mut Vec<Move>);

    /// Pushes, once each, the changes of the sum's components when one record replaces another.
    fn replacement(&self, from: &[Self::Value], to: &[Self::Value], moves: &mut Vec<Move>);

    /// Adds a record to the sufficient statistics that theta depends on.
    fn add(&self, record: &[Self::Value], summary: &mut [f64]);

    /// Takes one step of theta and the nuisance that leaves their law given all records, `summary`, unchanged; returns true if
    /// theta has moved.
    fn step(&self, summary: &[f64], theta: &mut [f64], nuisance: &mut Self::Nuisance, conditional: &mut Conditional<'_>) -> bool;

    /// Returns the change of each parameter's estimate if predictors that are imputed beyond their bounds lay on them; `None` for
    /// a law without predictors that are clamped.
    fn shift_of_clamped(&self, _records: &mut dyn Iterator<Item = &[Self::Value]>) -> Option<Vec<f64>> {
        None
    }
}
