//! Folds all entries: checks each against those before it, and adds it up.

use std::collections::HashMap;

use conclave_privacy::accounting;
use conclave_privacy::accounting::{
    AccountingError, BlockCosts, BlockTerms, Budget, Honest, Priced, PrivacyFilter, PrivacyUnit, SamplingProbability, Spent,
    SubsampledError,
};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};

use super::job::{Block, JobState, Masks};
use super::sampled_block::SampledBlock;
use crate::ledger::block_opened::BlockOpened;
use crate::ledger::delta_reserve::DeltaReserve;
use crate::ledger::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered, NO_HASH};
use crate::ledger::events::{AllCollude, Data, Genesis, JobReserve, MaskKey, Reserve, RosterEntered, Settle, Unlock};
use crate::ledger::ids::{Fences, Id, Ids, Inserted, Seqs};
use crate::ledger::wrong::Wrong;

/// Integers in an answer to a query of each kind.
#[derive(Debug, Clone, Copy)]
struct Lengths(fn(QueryKind) -> usize);

impl Default for Lengths {
    fn default() -> Self {
        Self(QueryKind::length)
    }
}

/// A ledger's sums up to some entry.
#[derive(Debug, Clone, Default)]
pub struct LedgerState {
    lengths: Lengths,
    /// True where jobs know their ids by fences, and an index knows the others.
    fenced: bool,
    seq: u64,
    hash: Hash,
    genesis: Option<Genesis>,
    unit: PrivacyUnit,
    spent: Spent,
    /// Charges as if each answer had been opened by itself.
    alone: Spent,
    /// Limit on them, where the owner sets one.
    all_collude: Option<(AllCollude, u64)>,
    answers: u64,
    jobs: Vec<JobState>,
    places: HashMap<String, usize>,
    last_job: usize,
    unanswered: Seqs,
    /// Integers in the answer to a charge of several.
    components: HashMap<u64, u32>,
    /// Fingerprints of the columns that the data have had since the last refresh.
    columns: HashMap<String, String>,
    /// `seq` of the last refresh.
    era: u64,
    /// The largest sequence number of a head that an unlock has given up for lost.
    given_up: u64,
    /// Costs of blocks whose terms have been met.
    block_costs: BlockCosts,
    /// The slack of the scale and the number of honest parties seen last.
    slack: ((u64, Honest), u64),
}

impl LedgerState {
    /// Makes the state before the first entry, of a ledger whose answers have these lengths: [`QueryKind::length`] wherever charges are
    /// real.
    pub(in crate::ledger) fn of_lengths(lengths: fn(QueryKind) -> usize) -> Self {
        Self { lengths: Lengths(lengths), ..Self::default() }
    }

    /// Makes the same state, which keeps few ids of charges: the caller that appends to it knows the others.
    pub(in crate::ledger) fn fenced(self) -> Self {
        Self { fenced: true, ..self }
    }

    /// Returns the last entry's sequence number; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the last entry's hash.
    pub fn hash(&self) -> Hash {
        if self.seq == 0 { NO_HASH } else { self.hash }
    }

    /// Returns the first entry, if any; its reserve includes the owner's later additions.
    pub fn genesis(&self) -> Option<&Genesis> {
        self.genesis.as_ref()
    }

    /// Returns charges and forfeits of all jobs.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns charges and forfeits of all jobs if all other parties collude: a masked release then counts as opened by itself.
    pub fn alone(&self) -> Spent {
        self.alone
    }

    /// Returns the owner's limit on that.
    pub fn all_collude(&self) -> Option<&AllCollude> {
        self.all_collude.as_ref().map(|(limit, _)| limit)
    }

    /// Returns the cost of a release.
    pub(in crate::ledger) fn cost(&self, priced: Priced) -> Result<Spent, AccountingError> {
        priced.cost(self.unit)
    }

    /// Returns the cost of a block of these terms.
    pub(in crate::ledger) fn block_cost(&mut self, terms: &BlockTerms) -> Result<Spent, SubsampledError> {
        self.block_costs.of(terms)
    }

    /// Returns the limit on the reserve of delta that all jobs' blocks may take together.
    fn reserve_limit(&self) -> u64 {
        self.budget().map_or(0, |budget| budget.grantable_reserve_units())
    }

    /// Returns the unused charge of open blocks.
    pub fn held(&self) -> Spent {
        let rests = self.jobs.iter().filter_map(|job| job.block.as_ref().map(Block::rest));
        rests.fold(Spent::default(), |a, b| a.plus(b).unwrap_or(a))
    }

    /// Returns the jobs in the order of their entries.
    pub fn jobs(&self) -> &[JobState] {
        &self.jobs
    }

    /// Returns the number of recorded queries.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the job of that id.
    pub fn job(&self, id: &str) -> Option<&JobState> {
        self.jobs.get(*self.places.get(id)?)
    }

    /// Returns the job whose entry has that number.
    pub fn job_at(&self, seq: u64) -> Option<&JobState> {
        self.jobs.get(self.place_of(seq)?)
    }

    pub(in crate::ledger) fn unanswered(&self) -> &Seqs {
        &self.unanswered
    }

    /// Returns the number of integers in the answer to a charge.
    pub(in crate::ledger) fn components(&self, charge: u64) -> u32 {
        self.components.get(&charge).copied().unwrap_or(1)
    }

    pub(in crate::ledger) fn columns(&self) -> &HashMap<String, String> {
        &self.columns
    }

    /// Returns the `seq` of the last refresh; 0 before the first.
    pub fn era(&self) -> u64 {
        self.era
    }

    /// Returns the number up to which heads count no more: their owner has given them up.
    pub(in crate::ledger) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Appends the next entry and returns its hash.
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<Hash, Wrong> {
        self.append_knowing(entry, None)
    }

    /// Appends the next entry to a state with fences; `charged` states of an id that comes late whether it was charged before. Without it a
    /// late id is refused.
    pub(in crate::ledger) fn append_knowing(&mut self, entry: &Entry<'_>, charged: Option<bool>) -> Result<Hash, Wrong> {
        self.follow(entry)?;
        match entry {
            Entry::Charge(charge) => self.charge(charge, charged)?,
            Entry::Answer(answer) => self.answer(answer)?,
            Entry::Job(job) => self.enter(job)?,
            Entry::Event(event) => self.event(event)?,
        }
        self.hash = entry.hash(&self.hash());
        self.seq = entry.seq();
        Ok(self.hash)
    }

    /// Appends the next entry if its hash is the stored one.
    pub fn check(&mut self, entry: &Entry<'_>, stored: &[u8]) -> Result<(), Wrong> {
        let hash = self.append(entry)?;
        if hash != stored {
            return Err(Wrong::Hash);
        }
        Ok(())
    }

    fn follow(&mut self, entry: &Entry<'_>) -> Result<(), Wrong> {
        let first = matches!(entry, Entry::Event(event) if event.kind == Genesis::KIND);
        if first != (self.seq == 0) {
            return Err(Wrong::Beginning);
        }
        let mut next = self.seq + 1;
        if let Entry::Event(event) = entry
            && event.kind == Unlock::KIND
        {
            // Above every number of the lost entries.
            let lost = Unlock::parse(event.body)?.lost.seq;
            self.given_up = self.given_up.max(lost);
            next = next.max(lost.saturating_add(1));
        }
        if entry.seq() != next {
            return Err(Wrong::Place(next));
        }
        Ok(())
    }

    fn place_of(&self, seq: u64) -> Option<usize> {
        match self.jobs.get(self.last_job) {
            Some(job) if job.seq == seq => Some(self.last_job),
            _ => self.jobs.binary_search_by_key(&seq, |job| job.seq).ok(),
        }
    }

    fn slack_of(&mut self, s: NoiseScale, honest: Honest) -> u64 {
        if self.slack.0 != (s.units(), honest) {
            self.slack = ((s.units(), honest), accounting::slack_units_of_draw(s, honest));
        }
        self.slack.1
    }

    fn charge(&mut self, e: &ChargeEntry, charged: Option<bool>) -> Result<(), Wrong> {
        let place = self.place_of(e.job).ok_or(Wrong::ChargedJob)?;
        self.last_job = place;
        let (k_t, s) = (Sensitivity::from_units(e.k_t), NoiseScale::from_units(e.s));
        let (Ok(k_t), Ok(s)) = (k_t, s) else { return Err(Wrong::Scales) };
        let kind = QueryKind::from_code(e.kind).ok_or(Wrong::Kind)?;
        if e.components == 0 {
            return Err(Wrong::NoInteger);
        }
        let length = (self.lengths.0)(kind);
        if usize::try_from(e.components) != Ok(length) {
            return Err(Wrong::Components { paid: e.components, length });
        }
        let honest = Honest::new(e.honest).filter(|honest| self.jobs[place].honest() == Some(*honest)).ok_or(Wrong::Honest)?;
        let cost = if kind.is_sampled() { Spent::default() } else { self.price(e, kind, k_t, (s, honest))? };
        if (e.charge, e.slack) != (cost.units, cost.slack_units) || (kind.is_sampled() && e.alone != 0) {
            return Err(Wrong::Charge);
        }
        self.spent = self.spent.plus(cost).ok_or(Wrong::Overflow)?;
        self.charge_alone(e, (s, honest), cost)?;
        if e.running_total != self.spent.units {
            return Err(Wrong::RunningTotal);
        }
        let job = &mut self.jobs[place];
        if !job.open {
            return Err(Wrong::Closed(job.id.clone()));
        }
        if kind.is_sampled() {
            job.take_place(e.block, &Priced::new(kind, k_t, s, honest), self.unit)?;
        } else if e.block != 0 {
            let block = job.block.as_mut().filter(|block| block.seq == e.block).ok_or(Wrong::NamedBlock)?;
            block.used = block.used.plus(cost).ok_or(Wrong::Overflow)?;
            let (used, held) = (block.used, block.held);
            if used.units > held.units || used.slack_units > held.slack_units || used.draws > held.draws {
                return Err(Wrong::BeyondBlock);
            }
        }
        let id = Id { iteration: e.iteration, chain: e.chain, charge: e.seq };
        let twice = match job.ids.insert(id) {
            Inserted::New => false,
            Inserted::Twice => true,
            Inserted::Late => charged.unwrap_or(true),
        };
        if twice {
            return Err(Wrong::ChargedTwice { chain: e.chain, iteration: e.iteration, job: job.id.clone() });
        }
        job.spent = job.spent.plus(cost).ok_or(Wrong::Overflow)?;
        job.queries += 1;
        job.idle = 0;
        job.last_charge = e.seq;
        self.unanswered.insert(e.seq);
        if e.components > 1 {
            self.components.insert(e.seq, e.components);
        }
        Ok(())
    }

    /// Returns the cost of a release that pays for itself.
    fn price(
        &mut self,
        e: &ChargeEntry,
        kind: QueryKind,
        k_t: Sensitivity,
        (s, honest): (NoiseScale, Honest),
    ) -> Result<Spent, Wrong> {
        // The charge of a choice is computed with elementary functions, and may have been rounded differently when it was recorded.
        let price = |honest: Honest, recorded: u64| {
            let units = self.unit.charge_of_release(kind, e.components, k_t, (s, honest)).ok()?;
            let margin = kind.candidates().map_or(0, |_| accounting::rounding(units));
            (recorded.abs_diff(units) <= margin).then_some(recorded)
        };
        let Some(units) = price(Honest::ALONE, e.alone).and(price(honest, e.charge)) else { return Err(Wrong::Charge) };
        let slack_units = self.slack_of(s, honest).checked_mul(u64::from(e.components)).ok_or(Wrong::Slack)?;
        if slack_units != e.slack {
            return Err(Wrong::Slack);
        }
        Ok(Spent { units, slack_units, draws: u64::from(e.components), reserve_units: 0 })
    }

    /// Checks a masked release against the owner's limit in case all others collude, too.
    fn charge_alone(&mut self, e: &ChargeEntry, (s, honest): (NoiseScale, Honest), cost: Spent) -> Result<(), Wrong> {
        if honest == Honest::ALONE {
            self.alone = self.alone.plus(cost).ok_or(Wrong::Overflow)?;
            return Ok(());
        }
        let slack_units = accounting::slack_units_of_draw(s, Honest::ALONE).checked_mul(u64::from(e.components));
        let alone = Spent { units: e.alone, slack_units: slack_units.ok_or(Wrong::Overflow)?, ..cost };
        self.alone = self.alone.plus(alone).ok_or(Wrong::Overflow)?;
        let Some((_, limit)) = &self.all_collude else { return Ok(()) };
        let all = self.alone.plus(self.held()).ok_or(Wrong::Overflow)?;
        if all.units > limit + accounting::rounding(*limit) {
            return Err(Wrong::AllCollude { units: all.units, limit: *limit });
        }
        Ok(())
    }

    fn answer(&mut self, e: &AnswerEntry<'_>) -> Result<(), Wrong> {
        if !self.unanswered.remove(&e.charge) {
            return Err(Wrong::Answered(e.charge));
        }
        let (paid, given) = (self.components(e.charge), e.released.len());
        if given != paid as usize {
            return Err(Wrong::Length { charge: e.charge, paid, given });
        }
        self.answers += 1;
        Ok(())
    }

    fn enter(&mut self, e: &JobEntered<'_>) -> Result<(), Wrong> {
        if self.places.insert(e.job.to_owned(), self.jobs.len()).is_some() {
            return Err(Wrong::EnteredTwice(e.job.to_owned()));
        }
        self.jobs.push(JobState {
            seq: e.seq,
            id: e.job.to_owned(),
            analyst: e.analyst.to_owned(),
            spec_digest: *e.spec_digest,
            cap: (e.cap_epsilon.to_owned(), e.cap_delta.to_owned()),
            records: e.records,
            fingerprint: e.fingerprint.to_vec(),
            era: self.era,
            open: true,
            idle: 0,
            spent: Spent::default(),
            queries: 0,
            last_charge: 0,
            block: None,
            reserve_cap: 0,
            sampled: Vec::new(),
            masks: Masks::None,
            lost: Vec::new(),
            ids: if self.fenced { Ids::Fenced(Fences::default()) } else { Ids::default() },
        });
        Ok(())
    }

    fn event(&mut self, e: &EventEntry<'_>) -> Result<(), Wrong> {
        match e.kind {
            Genesis::KIND => {
                let genesis = Genesis::parse(e.body)?;
                self.unit = genesis.unit()?;
                self.genesis = Some(genesis);
                return Ok(());
            }
            "refresh" => {
                self.era = e.seq;
                self.columns.clear();
                return Ok(());
            }
            DeltaReserve::KIND => {
                let more = DeltaReserve::parse(e.body)?;
                return self.genesis.as_mut().ok_or(Wrong::Beginning)?.add_reserve(&more);
            }
            AllCollude::KIND => {
                let limit = AllCollude::parse(e.body)?;
                let units = PrivacyFilter::new(&limit.budget(self.unit)?)?.limit_units();
                self.all_collude = Some((limit, units));
                return Ok(());
            }
            Data::KIND => {
                self.columns.extend(Data::parse(e.body)?.columns);
                return Ok(());
            }
            _ if e.job == 0 => return Ok(()),
            _ => {}
        }
        let place = self.place_of(e.job).ok_or(Wrong::Job)?;
        let job = &mut self.jobs[place];
        match e.kind {
            // Its masks are gone with their key.
            "open" if job.masks != Masks::None => return Err(Wrong::Reopened(job.id.clone())),
            "open" => {
                job.open = true;
                job.idle = job.idle.saturating_add(1);
            }
            "close" => job.open = false,
            JobReserve::KIND => job.reserve_for_blocks(e.seq, JobReserve::parse(e.body)?)?,
            MaskKey::KIND => job.mask_key(&MaskKey::parse(e.body)?)?,
            RosterEntered::KIND => job.enter_roster(RosterEntered::parse(e.body)?)?,
            Reserve::KIND => job.reserve(e.seq, &Reserve::parse(e.body)?)?,
            Settle::KIND => {
                let settle = Settle::parse(e.body)?;
                job.settle(&settle)?;
                self.spent = self.spent.plus(settle.spent()).ok_or(Wrong::Overflow)?;
                self.alone = self.alone.plus(settle.spent()).ok_or(Wrong::Overflow)?;
            }
            BlockOpened::KIND => return self.open_block(e.seq, place, &BlockOpened::parse(e.body)?),
            _ => {}
        }
        Ok(())
    }

    /// Charges a block of subsampled releases by its terms, in full.
    fn open_block(&mut self, seq: u64, place: usize, opened: &BlockOpened) -> Result<(), Wrong> {
        let (kind, terms) = opened.terms(self.unit)?;
        if terms.release.probability == SamplingProbability::ONE || opened.components as usize != (self.lengths.0)(kind) {
            return Err(Wrong::BlockTerms);
        }
        let cost = self.block_cost(&terms).map_err(|_| Wrong::BlockTerms)?;
        if opened.cost() != cost {
            return Err(Wrong::BlockCharge);
        }
        let spent = self.spent.plus(cost).ok_or(Wrong::Overflow)?;
        let limit = self.reserve_limit();
        if spent.reserve_units > limit {
            return Err(Wrong::OverReserved { units: spent.reserve_units, limit });
        }
        self.jobs[place].open_block(SampledBlock { seq, kind, terms, cost, taken: 0 })?;
        self.spent = spent;
        self.alone = self.alone.plus(cost).ok_or(Wrong::Overflow)?;
        Ok(())
    }

    /// Checks the state once all entries are appended.
    pub fn finish(&self) -> Result<(), Wrong> {
        let genesis = self.genesis.as_ref().ok_or(Wrong::Empty)?;
        let filter = PrivacyFilter::new(&genesis.budget()?)?;
        let all = self.spent.plus(self.held()).ok_or(Wrong::Total)?;
        let limit = filter.limit();
        if all.units > limit.units + accounting::rounding(limit.units) {
            return Err(Wrong::Overspent { units: all.units, limit: limit.units });
        }
        if all.slack_units > limit.slack_units || all.draws > limit.draws {
            return Err(Wrong::Overdrawn { draws: all.draws, limit: limit.draws });
        }
        Ok(())
    }

    /// Returns the budget and unit of privacy that the first entry names, with the owner's later additions to its reserve.
    pub fn budget(&self) -> Option<Budget> {
        self.genesis.as_ref()?.budget().ok()
    }
}
