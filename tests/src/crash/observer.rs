//! An observer that records everything a party releases and compares it with its ledger, read without the party's code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conclave_proto::v1;
use serde_json::Value;

use super::jobs;
use super::ledger_copy::{Ledger, job_events, open_copy};
use super::places::{self, Place};
use super::query::{Id, price};
use super::{IDENTITY, Mode};

/// Everything released so far.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    queried: BTreeSet<(usize, u64)>,
    /// The latest attempt and value received for each query.
    heard: BTreeMap<Id, (u32, i64)>,
    /// Price of all distinct releases, several under one id included. Subsampled releases cost nothing here: their blocks are
    /// charged.
    cost: u64,
    /// Place of each subsampled release: the block's number, and how many of its places were taken earlier.
    places: BTreeMap<Id, Place>,
    /// Number of distinct releases.
    pub numbers: u64,
    /// Number of releases under an id that already had another value; possible in reserve mode only.
    pub reissued: u64,
    /// Masks of zero, by job and round.
    zero_masks: BTreeMap<(usize, u64), u64>,
    /// The key announced for each masked job, and its roster's digest and confirmation.
    keys: BTreeMap<usize, Vec<u8>>,
    rosters: BTreeMap<usize, (Vec<u8>, Vec<u64>)>,
    /// Masked jobs that the party was asked to close, and whether it is known to have closed them.
    closed: BTreeMap<usize, bool>,
}

/// Returns true where a job's answers are synced before they are sent, whatever the mode.
fn is_always_strict(job: usize) -> bool {
    jobs::is_masked(job) || job == jobs::SAMPLED
}

/// Returns the names of the key files of masked jobs.
pub fn keys(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder.join(IDENTITY).join("mask-keys")).into_iter().flatten();
    files.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect()
}

impl Observer {
    /// Records that a round is about to be queried.
    pub fn record_query(&mut self, job: usize, iteration: u64) {
        self.queried.insert((job, iteration));
    }

    /// Returns true if a round has been answered.
    pub fn has_answer(&self, job: usize, iteration: u64) -> bool {
        self.heard.contains_key(&Id { job, iteration, chain: 0 })
    }

    /// Returns the rounds that were queried.
    pub fn rounds(&self) -> impl Iterator<Item = (usize, u64)> {
        self.queried.iter().copied()
    }

    /// Records a round's answer: one release per chain and, in a masked job, the mask of zero.
    pub fn record_answer(&mut self, job: usize, answer: &v1::Answer, attempt: u32, mode: Mode) {
        let iteration = answer.iteration;
        if jobs::is_masked(job) {
            assert_eq!(attempt, 0, "a masked round has one attempt");
            let nothing = answer.check.expect("a mask of nothing");
            assert_eq!(*self.zero_masks.entry((job, iteration)).or_insert(nothing), nothing, "two masks of {job}, {iteration}");
        }
        for (chain, value) in (0..).zip(&answer.releases) {
            self.record_release(Id { job, iteration, chain }, attempt, *value, mode);
        }
    }

    /// Records the announced key of a masked job.
    pub fn record_key(&mut self, job: usize, key: &[u8]) {
        assert_eq!(self.keys.entry(job).or_insert_with(|| key.to_vec()), key, "a second key for job {job}");
    }

    /// Checks the entries about masked jobs in a ledger on disk, which are final. Entered keys and rosters are the only ones ever
    /// announced, and a closed job stays closed. An unlock closes all earlier masked jobs, since their later entries count as
    /// lost. Every announced key and confirmed roster must be on the disk.
    pub fn check_masked_entries(&mut self, folder: &Path) {
        let (mut shown, mut confirmed) = (self.keys.clone(), self.rosters.clone());
        let Some((_copy, connection)) = open_copy(folder) else { return };
        for (kind, job, body) in job_events(&connection) {
            match (kind.as_str(), job.as_deref().and_then(jobs::number).filter(|job| jobs::is_masked(*job))) {
                ("mask-key", Some(job)) => {
                    shown.remove(&job);
                    self.record_key(job, &unhex(&body["public"]));
                }
                ("roster", Some(job)) => {
                    let other = confirmed.remove(&job).filter(|(digest, _)| *digest != unhex(&body["digest"]));
                    assert_eq!(other, None, "the entered roster of job {job} differs from the confirmed one");
                }
                ("close", Some(job)) => self.record_closed(job),
                ("unlock", _) => {
                    (0..jobs::JOBS).filter(|job| jobs::is_masked(*job)).for_each(|job| self.record_closed(job));
                    return;
                }
                _ => {}
            }
        }
        assert!(shown.is_empty() && confirmed.is_empty(), "announced but not on the disk: keys {shown:?}, rosters {confirmed:?}");
    }

    /// Returns true if the ledger on disk was unlocked.
    pub fn is_unlocked(&self, folder: &Path) -> bool {
        let (_copy, connection) = open_copy(folder).expect("a ledger");
        job_events(&connection).iter().any(|(kind, ..)| kind == "unlock")
    }

    /// Returns the delta reserve of the ledger on disk, including additions, in units of 2^-60.
    pub fn reserve(&self, folder: &Path) -> u64 {
        let (_copy, connection) = open_copy(folder).expect("a ledger");
        places::reserve(&connection)
    }

    /// Returns the number of charged queries in the ledger on disk.
    pub fn charges(&self, folder: &Path) -> usize {
        Ledger::read(folder).map_or(0, |ledger| ledger.rows.len())
    }

    /// Records a confirmed roster.
    pub fn record_roster(&mut self, job: usize, confirmed: (Vec<u8>, Vec<u64>)) {
        assert_eq!(*self.rosters.entry(job).or_insert_with(|| confirmed.clone()), confirmed, "a second roster of job {job}");
    }

    /// Records that the party is about to be asked to close a job.
    pub fn record_close_request(&mut self, job: usize) {
        if jobs::is_masked(job) {
            self.closed.entry(job).or_insert(false);
        }
    }

    /// Returns true if a masked job may have been closed.
    pub fn may_be_closed(&self, job: usize) -> bool {
        self.closed.contains_key(&job)
    }

    /// Records that the party has closed a job.
    pub fn record_closed(&mut self, job: usize) {
        self.closed.insert(job, true);
    }

    /// Returns true if a job is known to have been closed.
    pub fn has_closed(&self, job: usize) -> bool {
        self.closed.get(&job) == Some(&true)
    }

    /// Records a release.
    pub fn record_release(&mut self, id: Id, attempt: u32, value: i64, mode: Mode) {
        match self.heard.get(&id) {
            Some((_, known)) if *known == value => return,
            Some((last, known)) => {
                assert!(mode != Mode::Strict && !is_always_strict(id.job), "{id:?} has two answers, {known} and {value}");
                assert!(attempt > *last, "{id:?} has a new answer without another attempt");
                self.reissued += 1;
            }
            None => {}
        }
        self.heard.insert(id, (attempt, value));
        self.cost += price(id);
        self.numbers += 1;
    }

    /// Returns the minimum cost of all releases; places cost the blocks that they fill.
    fn cost(&self) -> u64 {
        let (terms, block) = jobs::block();
        let places = self.heard.keys().filter(|id| id.job == jobs::SAMPLED).count() as u64;
        self.cost + places.div_ceil(terms.releases) * block.units
    }

    /// Checks that each subsampled release has a place of its own, and that the place has never changed.
    fn check_places(&mut self, ledger: &Ledger) {
        for id in self.heard.keys().filter(|id| id.job == jobs::SAMPLED) {
            let place = ledger.places.get(id).unwrap_or_else(|| panic!("{id:?} left without a place"));
            assert_eq!(self.places.entry(*id).or_insert(*place), place, "{id:?} has changed its place");
        }
        let taken: BTreeSet<Place> = self.places.values().copied().collect();
        assert_eq!(taken.len(), self.places.len(), "a place belongs to two releases: {:?}", self.places);
    }

    /// Checks a dead party's files before it restarts: every release is paid for. With `whole`, the files hold every write: each
    /// release has its own charge and its recorded value.
    pub fn check_dead(&mut self, folder: &Path, mode: Mode, whole: bool) {
        let Some(ledger) = Ledger::read(folder) else {
            assert_eq!(self.numbers, 0, "there are releases but no ledger");
            return;
        };
        assert!(ledger.committed >= self.cost(), "{} is charged, but releases cost {}", ledger.committed, self.cost());
        if mode == Mode::Strict || whole {
            self.assert_recorded(&ledger, |_| true);
        }
        self.assert_recorded(&ledger, |id| is_always_strict(id.job));
        self.check_places(&ledger);
    }

    fn assert_recorded(&self, ledger: &Ledger, of: impl Fn(&Id) -> bool) {
        for (id, (attempt, value)) in self.heard.iter().filter(|(id, _)| of(id)) {
            let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left without a charge"));
            row.is(*attempt, *value, *id);
        }
    }

    /// Checks the ledger after a party has restarted, answered every query again, and ended cleanly.
    pub fn check_ended(&mut self, folder: &Path, mode: Mode) {
        let ledger = Ledger::read(folder).expect("a ledger");
        self.assert_recorded(&ledger, |_| true);
        self.check_places(&ledger);
        for (id, row) in &ledger.rows {
            assert!(self.queried.contains(&(id.job, id.iteration)), "{id:?} is charged without a query");
            assert_eq!(row.charge, price(*id), "{id:?}");
            assert!(row.released.is_some(), "{id:?} has no answer");
        }
        assert_eq!(ledger.rows.len(), self.heard.len());
        assert_eq!(ledger.held, 0, "a block is open after a clean end");
        assert!(ledger.committed >= self.cost());
        // A place is never lost in any mode: the open blocks are exactly those that all places fill.
        let (terms, _) = jobs::block();
        assert_eq!(ledger.blocks, (ledger.places.len() as u64).div_ceil(terms.releases));
        if mode == Mode::Strict {
            assert_eq!((ledger.committed, ledger.forfeited), (self.cost(), 0));
        }
        // Closed masked jobs have no key left, and each open one has its own.
        let open = self.keys.keys().filter(|job| !self.has_closed(**job)).map(|job| jobs::id(*job).to_owned());
        assert_eq!(keys(folder), open.collect());
    }
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("hexadecimal");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte")).collect()
}
