//! One party's latent records: imputed data sets that could have led to its release.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::{Move, NoiseLaw, RecordLaw, Residuals};

/// The number of a party's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// A public number.
    Known(usize),
    /// An unknown number with a flat prior on 0, 1, 2, …; only the release informs it.
    Unknown {
        /// Initial number of the chain. It is public, because it is computed from the release. Each sweep proposes a tenth of it
        /// as additions or removals. A number of proposals that followed the present count would not leave the posterior
        /// unchanged.
        start: usize,
    },
}

/// A party's latent records, and the release that they are compared with.
pub(super) struct LatentRecords<L: RecordLaw, N: NoiseLaw> {
    /// Values, record after record.
    values: Vec<L::Value>,
    count: usize,
    kind: Count,
    residuals: Residuals<N>,
    rng: ChaCha20Rng,
    proposal: Vec<L::Value>,
    moves: Vec<Move>,
    summary: Vec<f64>,
    accepted: u64,
    proposed: u64,
}

impl<L: RecordLaw, N: NoiseLaw> LatentRecords<L, N> {
    /// Draws initial records from the law, independently of the release; `residuals` are those before any latent record.
    pub(super) fn new(law: &L, prepared: &L::Prepared, residuals: Residuals<N>, kind: Count, rng: ChaCha20Rng) -> Self {
        let mut records = Self {
            values: Vec::new(),
            count: 0,
            kind,
            residuals,
            rng,
            proposal: vec![L::Value::default(); law.width()],
            moves: Vec::new(),
            summary: vec![0.0; law.summary()],
            accepted: 0,
            proposed: 0,
        };
        let (Count::Known(start) | Count::Unknown { start }) = kind;
        for _ in 0..start {
            law.draw(prepared, &mut records.rng, &mut records.proposal);
            records.weigh_birth(law);
            records.residuals.apply(&records.moves);
            records.values.extend_from_slice(&records.proposal);
            records.count += 1;
        }
        records
    }

    /// Updates every record once, and by a local proposal if the law has them, after births and deaths if the count is unknown, and sums up the records.
    pub(super) fn sweep(&mut self, law: &L, prepared: &L::Prepared) {
        if let Count::Unknown { start } = self.kind {
            for _ in 0..(start / 10).max(1) {
                if self.rng.random::<bool>() { self.birth(law, prepared) } else { self.death(law) }
            }
        }
        self.summary.fill(0.0);
        let width = law.width();
        for at in 0..self.count {
            self.update(law, prepared, at);
            self.nudge(law, prepared, at);
            law.add(&self.values[at * width..][..width], &mut self.summary);
        }
    }

    /// Proposes to replace this record by one drawn from the law; its own likelihood cancels against the proposal's.
    #[inline]
    fn update(&mut self, law: &L, prepared: &L::Prepared, at: usize) {
        let width = law.width();
        law.draw(prepared, &mut self.rng, &mut self.proposal);
        let record = &mut self.values[at * width..][..width];
        self.moves.clear();
        law.replacement(record, &self.proposal, &mut self.moves);
        self.proposed += 1;
        if accepts(self.residuals.log_ratio(&self.moves), &mut self.rng) {
            self.residuals.apply(&self.moves);
            record.copy_from_slice(&self.proposal);
            self.accepted += 1;
        }
    }

    /// Proposes to replace this record by one that depends on it, if the law has such proposals.
    #[inline]
    fn nudge(&mut self, law: &L, prepared: &L::Prepared, at: usize) {
        let width = law.width();
        let record = &mut self.values[at * width..][..width];
        let Some(log_ratio) = law.propose(prepared, &mut self.rng, record, &mut self.proposal) else { return };
        self.moves.clear();
        law.replacement(record, &self.proposal, &mut self.moves);
        self.proposed += 1;
        if accepts(log_ratio + self.residuals.log_ratio(&self.moves), &mut self.rng) {
            self.residuals.apply(&self.moves);
            record.copy_from_slice(&self.proposal);
            self.accepted += 1;
        }
    }

    /// Proposes one more record, at a uniform index of the list; the record there moves to the end.
    ///
    /// The probability of drawing the record cancels against its likelihood, and that of its index (one of n + 1) against that of
    /// a death that picks it. The flat prior of the count does not enter the ratio.
    fn birth(&mut self, law: &L, prepared: &L::Prepared) {
        law.draw(prepared, &mut self.rng, &mut self.proposal);
        let place = self.rng.random_range(0..=self.count);
        self.weigh_birth(law);
        if accepts(self.residuals.log_ratio(&self.moves), &mut self.rng) {
            self.insert(law, place);
        }
    }

    /// Proposes to remove a uniformly chosen record; the last record takes its index. Does nothing if there is none.
    fn death(&mut self, law: &L) {
        if self.count == 0 {
            return;
        }
        let place = self.rng.random_range(0..self.count);
        self.weigh_death(law, place);
        if accepts(self.residuals.log_ratio(&self.moves), &mut self.rng) {
            self.remove(law, place);
        }
    }

    /// Computes the proposed record's contribution to the sums.
    fn weigh_birth(&mut self, law: &L) {
        self.moves.clear();
        law.statistic(&self.proposal, &mut self.moves);
    }

    /// Computes the change of the sums when the record at this index is removed.
    fn weigh_death(&mut self, law: &L, place: usize) {
        let width = law.width();
        self.moves.clear();
        law.statistic(&self.values[place * width..][..width], &mut self.moves);
        self.moves.iter_mut().for_each(|step| step.delta = -step.delta);
    }

    fn insert(&mut self, law: &L, place: usize) {
        let width = law.width();
        self.residuals.apply(&self.moves);
        self.values.extend_from_slice(&self.proposal);
        self.swap(width, place, self.count);
        self.count += 1;
    }

    fn remove(&mut self, law: &L, place: usize) {
        let width = law.width();
        self.residuals.apply(&self.moves);
        self.swap(width, place, self.count - 1);
        self.count -= 1;
        self.values.truncate(self.count * width);
    }

    fn swap(&mut self, width: usize, one: usize, other: usize) {
        (0..width).for_each(|i| self.values.swap(one * width + i, other * width + i));
    }

    /// Returns the sufficient statistics of the records after the last sweep.
    pub(super) fn summary(&self) -> &[f64] {
        &self.summary
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the records' values, record after record.
    pub(super) fn values(&self) -> &[L::Value] {
        &self.values
    }

    /// Yields the records, of this number of values each.
    pub(super) fn records(&self, width: usize) -> impl Iterator<Item = &[L::Value]> {
        self.values.chunks_exact(width)
    }

    /// Returns the numbers of proposed and accepted replacements so far, without births and deaths.
    pub(super) fn decisions(&self) -> (u64, u64) {
        (self.proposed, self.accepted)
    }
}

/// Applies Metropolis's rule.
#[inline]
fn accepts(log_alpha: f64, rng: &mut ChaCha20Rng) -> bool {
    log_alpha >= 0.0 || rng.random::<f64>() < libm::exp(log_alpha)
}

#[cfg(test)]
#[path = "tests/records.rs"]
mod tests;
