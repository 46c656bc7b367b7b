//! One party's latent records: imputed data sets that would have led to its release.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::law::RecordLaw;
use super::noise::{Move, NoiseLaw, Residuals};

/// How many records a party has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// This many: it is public.
    Known(usize),
    /// Unknown, flat a priori on 0, 1, 2, …, and seen through the release alone.
    Unknown {
        /// As many as the chain starts with. Public, as it is computed from the release; a tenth of it are tried to be added or
        /// removed in a sweep. A number of tries that followed the present count would not leave the posterior unchanged.
        start: usize,
    },
}

/// A party's latent records, and the release that they are held against.
pub(super) struct LatentRecords<L: RecordLaw, N: NoiseLaw> {
    /// Record after record.
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
    /// Records drawn from the law, whatever was released; `residuals` are of no record.
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

    /// Updates every record once, after births and deaths where the count is unknown, and sums up the records.
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
            law.add(&self.values[at * width..][..width], &mut self.summary);
        }
    }

    /// Proposes another record in the place of this one, drawn from the law; its own likelihood cancels against the proposal's.
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

    /// Proposes one more record, at a uniform place of the list: the record there makes way to the end.
    ///
    /// The chance of drawing it cancels against its likelihood, that of its place (one of n + 1) against that of a death which
    /// picks it, and the flat law of the count has no part in the ratio.
    fn birth(&mut self, law: &L, prepared: &L::Prepared) {
        law.draw(prepared, &mut self.rng, &mut self.proposal);
        let place = self.rng.random_range(0..=self.count);
        self.weigh_birth(law);
        if accepts(self.residuals.log_ratio(&self.moves), &mut self.rng) {
            self.insert(law, place);
        }
    }

    /// Proposes to remove a uniformly chosen record, whose place the last one takes; of none it is refused.
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

    /// What the proposed record adds to the sums.
    fn weigh_birth(&mut self, law: &L) {
        self.moves.clear();
        law.statistic(&self.proposal, &mut self.moves);
    }

    /// What the sums lose with the record at this place.
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

    /// Sufficient statistics of the records after the last sweep.
    pub(super) fn summary(&self) -> &[f64] {
        &self.summary
    }

    /// Number of records.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Records proposed so far, births and deaths aside, and how many were accepted.
    pub(super) fn decisions(&self) -> (u64, u64) {
        (self.proposed, self.accepted)
    }
}

/// Metropolis's rule.
#[inline]
fn accepts(log_alpha: f64, rng: &mut ChaCha20Rng) -> bool {
    log_alpha >= 0.0 || rng.random::<f64>() < libm::exp(log_alpha)
}

#[cfg(test)]
#[path = "tests/records.rs"]
mod tests;
