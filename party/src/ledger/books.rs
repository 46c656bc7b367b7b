//! The books: what a ledger's entries add up to, checked entry by entry.
//!
//! The same code adds up a ledger at start, an export on an auditor's desk, and every entry that the party is about to
//! write: an entry that does not follow from those before it is refused in all three places.

use std::collections::HashMap;

use conclave_common::accounting::{self, Budget, PrivacyFilter, PrivacyUnit, Spent};
use conclave_common::mechanism::{NoiseScale, QueryKind, Sensitivity};

use super::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered, NO_HASH};
use super::events::{Data, Genesis, Reserve, Settle, Unlock};
use super::ids::{Id, Ids, Seqs};

mod job;

pub use job::{Block, JobBooks};
pub(super) use job::{minus, plus};

/// A ledger's sums up to some entry.
#[derive(Debug, Clone, Default)]
pub struct Books {
    seq: u64,
    hash: Hash,
    genesis: Option<Genesis>,
    unit: PrivacyUnit,
    spent: Spent,
    answers: u64,
    jobs: Vec<JobBooks>,
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
    /// The slack of the scale seen last.
    slack: (u64, u64),
}

/// Where an entry does not follow from those before it.
pub(super) type Wrong = String;

impl Books {
    /// The last entry's sequence number; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The last entry's hash.
    pub fn hash(&self) -> Hash {
        if self.seq == 0 { NO_HASH } else { self.hash }
    }

    /// The first entry, once it is there.
    pub fn genesis(&self) -> Option<&Genesis> {
        self.genesis.as_ref()
    }

    /// Charges and forfeits of all jobs.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// What blocks that are open hold beyond what their charges have used.
    pub fn held(&self) -> Spent {
        let rests = self.jobs.iter().filter_map(|job| job.block.as_ref().map(Block::rest));
        rests.fold(Spent::default(), |a, b| plus(a, b).unwrap_or(a))
    }

    /// Jobs in the order in which they were entered.
    pub fn jobs(&self) -> &[JobBooks] {
        &self.jobs
    }

    /// Numbers recorded.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The job of that id.
    pub fn job(&self, id: &str) -> Option<&JobBooks> {
        self.jobs.get(*self.places.get(id)?)
    }

    /// The job whose entry has that number.
    pub fn job_at(&self, seq: u64) -> Option<&JobBooks> {
        self.jobs.get(self.place_of(seq)?)
    }

    pub(super) fn unanswered(&self) -> &Seqs {
        &self.unanswered
    }

    /// Integers in the answer to a charge.
    pub(super) fn components(&self, charge: u64) -> u32 {
        self.components.get(&charge).copied().unwrap_or(1)
    }

    pub(super) fn columns(&self) -> &HashMap<String, String> {
        &self.columns
    }

    /// `seq` of the last refresh; 0 before the first.
    pub fn era(&self) -> u64 {
        self.era
    }

    /// Heads up to this number count no more: their owner has given them up.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Takes the next entry in and gives its hash.
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<Hash, Wrong> {
        self.follow(entry)?;
        match entry {
            Entry::Charge(charge) => self.charge(charge)?,
            Entry::Answer(answer) => self.answer(answer)?,
            Entry::Job(job) => self.enter(job)?,
            Entry::Event(event) => self.event(event)?,
        }
        self.hash = entry.hash(&self.hash());
        self.seq = entry.seq();
        Ok(self.hash)
    }

    /// Takes the next entry in if its hash is the one that was stored with it.
    pub fn check(&mut self, entry: &Entry<'_>, stored: &[u8]) -> Result<(), Wrong> {
        let hash = self.append(entry)?;
        if hash != stored {
            return Err("does not fit the hash that is stored with it".into());
        }
        Ok(())
    }

    fn follow(&mut self, entry: &Entry<'_>) -> Result<(), Wrong> {
        let first = matches!(entry, Entry::Event(event) if event.kind == Genesis::KIND);
        if first != (self.seq == 0) {
            return Err("is not where a ledger begins".into());
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
            return Err(format!("stands where entry {next} should be"));
        }
        Ok(())
    }

    fn place_of(&self, seq: u64) -> Option<usize> {
        match self.jobs.get(self.last_job) {
            Some(job) if job.seq == seq => Some(self.last_job),
            _ => self.jobs.binary_search_by_key(&seq, |job| job.seq).ok(),
        }
    }

    fn slack_of(&mut self, s: NoiseScale) -> u64 {
        if self.slack.0 != s.units() {
            self.slack = (s.units(), accounting::slack_units_of_draw(s));
        }
        self.slack.1
    }

    fn charge(&mut self, e: &ChargeEntry) -> Result<(), Wrong> {
        let place = self.place_of(e.job).ok_or("charges a job that is not entered")?;
        self.last_job = place;
        let (k_t, s) = (Sensitivity::from_units(e.k_t), NoiseScale::from_units(e.s));
        let (Ok(k_t), Ok(s)) = (k_t, s) else { return Err("has no usable sensitivity or noise".into()) };
        let kind = QueryKind::from_code(e.kind).ok_or("is of a kind that there is not")?;
        if e.components == 0 {
            return Err("pays for no integer".into());
        }
        if self.unit.charge_of_release(kind, e.components, k_t, s).ok() != Some(e.charge) {
            return Err("has a charge that its kind, sensitivity and noise don't give".into());
        }
        if Some(e.slack) != self.slack_of(s).checked_mul(u64::from(e.components)) {
            return Err("has a slack that its noise doesn't give".into());
        }
        let cost = Spent { units: e.charge, slack_units: e.slack, draws: u64::from(e.components) };
        self.spent = plus(self.spent, cost).ok_or("makes the total too large")?;
        if e.running_total != self.spent.units {
            return Err("has a running total that is not the sum of the charges".into());
        }
        let job = &mut self.jobs[place];
        if !job.open {
            return Err(format!("charges job {}, which is closed", job.id));
        }
        if e.block != 0 {
            let block = job.block.as_mut().filter(|block| block.seq == e.block).ok_or("names a block that is not open")?;
            block.used = plus(block.used, cost).ok_or("makes the total too large")?;
            let (used, held) = (block.used, block.held);
            if used.units > held.units || used.slack_units > held.slack_units || used.draws > held.draws {
                return Err("takes more than its block holds".into());
            }
        }
        let id = Id { iteration: e.iteration, chain: e.chain, charge: e.seq };
        if !job.ids.insert(id) {
            return Err(format!("charges chain {} of round {} of job {} a second time", e.chain, e.iteration, job.id));
        }
        job.spent = plus(job.spent, cost).ok_or("makes the total too large")?;
        job.queries += 1;
        job.idle = 0;
        job.last_charge = e.seq;
        self.unanswered.insert(e.seq);
        if e.components > 1 {
            self.components.insert(e.seq, e.components);
        }
        Ok(())
    }

    fn answer(&mut self, e: &AnswerEntry<'_>) -> Result<(), Wrong> {
        if !self.unanswered.remove(&e.charge) {
            return Err(format!("answers entry {}, which is no charge or is answered already", e.charge));
        }
        let (paid, given) = (self.components(e.charge), e.released.len());
        if given != paid as usize {
            return Err(format!("answers entry {}, which pays for {paid} integers, with {given}", e.charge));
        }
        self.answers += 1;
        Ok(())
    }

    fn enter(&mut self, e: &JobEntered<'_>) -> Result<(), Wrong> {
        if self.places.insert(e.job.to_owned(), self.jobs.len()).is_some() {
            return Err(format!("enters job {} a second time", e.job));
        }
        self.jobs.push(JobBooks {
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
            lost: Vec::new(),
            ids: Ids::default(),
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
            Data::KIND => {
                self.columns.extend(Data::parse(e.body)?.columns);
                return Ok(());
            }
            _ if e.job == 0 => return Ok(()),
            _ => {}
        }
        let place = self.place_of(e.job).ok_or("is about a job that is not entered")?;
        let job = &mut self.jobs[place];
        match e.kind {
            "open" => {
                job.open = true;
                job.idle = job.idle.saturating_add(1);
            }
            "close" => job.open = false,
            Reserve::KIND => job.reserve(e.seq, &Reserve::parse(e.body)?)?,
            Settle::KIND => {
                let settle = Settle::parse(e.body)?;
                job.settle(&settle)?;
                self.spent = plus(self.spent, settle.spent()).ok_or("makes the total too large")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What is checked once all entries are in.
    pub fn finish(&self) -> Result<(), Wrong> {
        let genesis = self.genesis.as_ref().ok_or("the ledger has no first entry")?;
        let filter = PrivacyFilter::new(&genesis.budget()?).map_err(|e| e.to_string())?;
        let all = plus(self.spent, self.held()).ok_or("the total is too large")?;
        let limit = filter.limit();
        if all.units > limit.units {
            return Err(format!("more is spent than the budget holds: {} units of {}", all.units, limit.units));
        }
        if all.slack_units > limit.slack_units || all.draws > limit.draws {
            return Err(format!("more noise is drawn than the budget holds: {} draws of {}", all.draws, limit.draws));
        }
        Ok(())
    }

    /// The budget and unit of privacy that the first entry names.
    pub fn budget(&self) -> Option<Budget> {
        self.genesis.as_ref()?.budget().ok()
    }
}
