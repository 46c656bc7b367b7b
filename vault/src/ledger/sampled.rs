//! Charges blocks of subsampled releases ahead, and gives queries places in them.
//!
//! **Theorem A.** A *block* is a number `T_b` of Poisson-subsampled releases with the same public sampling probability, noise, sensitivity, length
//! and unit of privacy. Opening it takes `mu_b²` of the budget and `δ'_b` of the reserve of delta, such that all its releases together are covered,
//! at every ε and in both orders of the neighbours, by an event of probability `δ'_b` and one Gaussian release of `mu_b`. Where a ledger grants
//! only while `Σ mu² ≤ M` and `Σ δ' ≤ D`, all its releases together are `(ε, D + δ(ε; √M))` differentially private for every ε, however
//! queries are chosen and blocks interleaved. Proof: docs/explanation/proofs.md, section 3. It rests on these, which the ledger keeps:
//!
//! * `M` and `D` are two limits, each fixed before the first charge that counts on it. One limit on the sum `δ(ε; √Σmu²) + Σδ'` would not
//!   do: a coordinator may spend `δ'` where a likelihood ratio makes Gaussian noise worthless, and `mu²` elsewhere.
//! * A block's terms are fixed when it is opened, and it is never made longer: charging `mu²(2T) − mu²(T)` to double it is not covered. The
//!   next block is a separate one.
//! * A release takes one place, once, durably, before any record is read. Its sample and noise are drawn for it alone, and each place has
//!   one answer for ever: a repeated query gets the same bytes; only a query that a crash left unanswered, of which nothing had left, is
//!   answered again.
//! * Nothing is refunded. Unused places stay paid for.
//!
//! A price takes up to a second to compute, and a job that opens no block pays for none. So few are computed per job: all of its blocks are
//! of one kind and under one noise scale, which no regular chain changes, and before the first of them at most [`MOST_PRICED`] different
//! terms are priced. The price is public, and so is every refusal: this spares the time of the thread that answers all jobs.
//!
//! Places are taken one by one in synced commits, in reserve mode too ([`super::Durability::Reserve`]): a place that was taken and not
//! recorded would be taken again after a crash, by a second answer with another sample. So a crash loses no place either.

use conclave_privacy::accounting::BlockTerms;
use conclave_privacy::mechanism::QueryKind;

use super::block_opened::BlockOpened;
use super::error::LedgerError;
use super::filters::{Filters, MOST_PRICED, Refusal};
use super::handle::Ledger;
use super::query::QueryKey;
use super::state::fits;
use super::writer::EntryWriter;

/// Free places of a job's blocks while a message is priced: in open blocks, and in those that the message would open.
pub(super) struct Places {
    free: Vec<(QueryKind, BlockTerms, u64)>,
}

impl Ledger {
    /// Checks that queries that name a block are subsampled, and that the block is one for them.
    pub(super) fn check_blocks(&self, queries: &[QueryKey]) -> Result<(), Refusal> {
        let fit = |key: &QueryKey| match &key.block {
            None => !key.priced.kind().is_sampled(),
            Some(terms) => fits(&key.priced, terms, self.budget.unit),
        };
        if queries.iter().all(fit) { Ok(()) } else { Err(Refusal::Block) }
    }

    pub(super) fn places(&self, job: &str) -> Places {
        let blocks = self.state.job(job).map(|job| job.sampled.as_slice()).unwrap_or_default();
        Places { free: blocks.iter().map(|block| (block.kind, block.terms, block.terms.releases - block.taken)).collect() }
    }

    /// Takes a place for a subsampled query, or charges the block that it opens.
    pub(super) fn charge_place(
        &mut self,
        job: &str,
        filters: &mut Filters,
        places: &mut Places,
        key: &QueryKey,
    ) -> Result<(), Refusal> {
        let (Some(terms), kind) = (&key.block, key.priced.kind()) else { return Err(Refusal::Block) };
        if places.take(kind, terms) {
            return Ok(());
        }
        match places.free.first() {
            Some((of, under, _)) if (*of, under) != (kind, terms) => return Err(Refusal::OtherBlock),
            Some(_) => {}
            None => self.admit_pricing(job, terms)?,
        }
        let cost = self.state.block_cost(terms).map_err(|why| {
            tracing::warn!("a block can't be opened: {why}");
            Refusal::Block
        })?;
        filters.try_spend(cost)?;
        places.free.push((kind, *terms, terms.releases - 1));
        Ok(())
    }

    /// Returns true where a job without a block may have another one's price computed.
    fn admit_pricing(&mut self, job: &str, terms: &BlockTerms) -> Result<(), Refusal> {
        let priced = self.priced.entry(job.to_owned()).or_default();
        if !priced.contains(terms) {
            if priced.len() >= MOST_PRICED {
                return Err(Refusal::Priced);
            }
            priced.push(*terms);
        }
        Ok(())
    }
}

impl Places {
    fn take(&mut self, kind: QueryKind, terms: &BlockTerms) -> bool {
        let free = self.free.iter_mut().rev().find(|(of, under, left)| *left > 0 && (*of, under) == (kind, terms));
        free.map(|(_, _, left)| *left -= 1).is_some()
    }
}

impl EntryWriter<'_> {
    /// Returns the block in which a subsampled query takes its place: an open one, or a new one, which is written here.
    pub(super) fn block_of(&mut self, job: u64, kind: QueryKind, terms: &BlockTerms) -> Result<u64, LedgerError> {
        if let Some(block) = self.state().job_at(job).and_then(|job| job.free_block(kind, terms)) {
            return Ok(block.seq);
        }
        let seq = self.next();
        let cost = self.block_cost(terms).map_err(|why| LedgerError::Wrong(why.to_string()))?;
        self.event(BlockOpened::KIND, job, &BlockOpened::of(kind, terms, cost).body())?;
        Ok(seq)
    }
}
