//! The requirements of augmentation on a model: a law that complete records are drawn from, and a record's released statistic.

use rand_chacha::ChaCha20Rng;

use super::{Conditional, Move};

/// The complete records that theta is drawn given.
pub(super) struct Complete<'a, V> {
    /// The sums that [`RecordLaw::add`] filled.
    pub(super) summary: &'a [f64],
    /// The values of each party's records, record after record.
    pub(super) records: &'a [&'a [V]],
}

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

    /// Writes a proposal that depends on the present record, `from`, to `to` (Algorithm 2). Returns the log of
    /// `f(to) q(from | to) / (f(from) q(to | from))`, the part of its acceptance ratio beside the release's density; `None` for a
    /// law whose records are proposed from the model alone (Algorithm 1).
    #[inline]
    fn propose(
        &self,
        _prepared: &Self::Prepared,
        _rng: &mut ChaCha20Rng,
        _from: &[Self::Value],
        _to: &mut [Self::Value],
    ) -> Option<f64> {
        None
    }

    /// Pushes every component other than 0 of a record's statistic, clamped and on the lattice as at a party.
    fn statistic(&self, record: &[Self::Value], moves: &mut Vec<Move>);

    /// Pushes, once each, the changes of the sum's components when one record replaces another.
    fn replacement(&self, from: &[Self::Value], to: &[Self::Value], moves: &mut Vec<Move>);

    /// Adds a record to the sufficient statistics that theta depends on.
    fn add(&self, record: &[Self::Value], summary: &mut [f64]);

    /// Takes one step of theta and the nuisance that leaves their law given all records unchanged; returns true if theta has moved.
    fn step(
        &self,
        complete: &Complete<'_, Self::Value>,
        theta: &mut [f64],
        nuisance: &mut Self::Nuisance,
        conditional: &mut Conditional<'_>,
    ) -> bool;

    /// Returns the change of each coefficient's estimate if predictors that are imputed beyond their bounds lay on them; `None` for
    /// a law without predictors that are clamped.
    fn shift_of_clamped(&self, _theta: &[f64], _records: &mut dyn Iterator<Item = &[Self::Value]>) -> Option<Vec<f64>> {
        None
    }
}
