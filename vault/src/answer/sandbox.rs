//! Runs the answer path over made-up records, with a ledger of its own, to measure the reply delay and for the audit.
//!
//! Charge, records, noise, release and reply are the daemon's, line for line. Only the source of the records differs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::Budget;
use conclave_privacy::pass::{ModelData, NoSum, Threads};
use conclave_privacy::secagg::{MaskSecret, Member, Roster, cover};
use conclave_proto::echo::Echo;
use conclave_proto::v1;
use sha2::{Digest, Sha256};

use super::active_job::{ActiveJob, NewJob};
use super::answerer::Answerer;
use super::masking::{Masking, RosterMasks};
use super::records::Records;
use crate::config::{Policy, ReplyDelay};
use crate::data::{BadRows, DataConfig, Format, Memory, Precision, Shard};
use crate::ledger::{JobEntry, Ledger};
use crate::noise::Noise;

/// The party and analyst of a sandbox.
pub const NOBODY: &str = "rehearsal";
/// The function that answers a message: [`Answerer::answer`], unless a test of the audit plants a fault.
pub(crate) type Respond = Box<dyn FnMut(&mut Answerer, v1::Query) -> v1::Answer>;

/// Returns the summed noise of a masked job's other parties, for a number of integers.
pub type NoiseOfOthers = Box<dyn FnMut(usize) -> Vec<i64>>;

/// An answerer in a folder of its own.
pub struct Sandbox {
    /// The answerer.
    pub answerer: Answerer,
    /// The budget of its ledger.
    pub budget: Budget,
    /// Answers a message.
    pub respond: Respond,
    /// Noise that is added to a masked answer when it is opened.
    pub others: NoiseOfOthers,
}

impl Sandbox {
    /// Makes the ledger in `folder`, which must exist.
    ///
    /// # Errors
    /// A sentence: the folder, the budget or the operating system did not allow it.
    pub fn new(folder: &Path, budget: Budget) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let rows = folder.join("rows.csv");
        // The jobs bring their own records; the answerer needs a shard nevertheless.
        std::fs::write(&rows, "who,none\nnobody,0\n").map_err(|e| text(&e))?;
        let config = DataConfig {
            path: rows,
            format: Format::default(),
            bad_rows: BadRows::Stop,
            text: Vec::new(),
            person: budget.unit.records_per_person().map(|_| "who".to_owned()),
            unit: budget.unit,
            memory: Memory::default(),
            snapshot: folder.to_owned(),
        };
        let shard = Shard::load(&config, Some(&["none".to_owned()])).map_err(|e| text(&e))?;
        let path = folder.join("ledger.sqlite");
        Ledger::init(&path, NOBODY, &budget).map_err(|e| text(&e))?;
        let ledger = Ledger::open(&path, NOBODY, &budget).map_err(|e| text(&e))?;
        let noise = Noise::from_os().map_err(|e| text(&e))?;
        let policy = Policy { reply_delay: ReplyDelay::Off, ..Policy::default() };
        let answerer = Answerer::new(NOBODY.into(), policy, budget, shard, ledger, noise);
        Ok(Self { answerer, budget, respond: Box::new(Answerer::answer), others: Box::new(|integers| vec![0; integers]) })
    }

    /// Sums on these threads, over records held in this precision.
    #[must_use]
    pub fn on(mut self, threads: &Arc<Threads>, precision: Precision) -> Self {
        (self.answerer.threads, self.answerer.precision) = (Arc::clone(threads), precision);
        self
    }

    /// Answers a message.
    pub fn answer(&mut self, request: v1::Query) -> v1::Answer {
        (self.respond)(&mut self.answerer, request)
    }

    /// Opens an answer. A masked one is summed with the other parties' answers, who hold no records here and add noise only; their masks
    /// are the negation of this party's.
    pub fn opened(&mut self, job: &str, answer: &v1::Answer) -> Vec<i64> {
        let masking = self.answerer.jobs.get(job).map(|job| &job.masking);
        let (Some(Masking::Under(masks)), Ok(Some(echo))) = (masking, Echo::read(answer)) else {
            return answer.releases.clone();
        };
        let masks = masks.under(&echo.digest, answer.releases.len());
        let others = (self.others)(answer.releases.len());
        let summed = answer.releases.iter().zip(masks).zip(others);
        summed.map(|((covered, mask), noise)| cover(*covered, mask.wrapping_neg()).wrapping_add(noise)).collect()
    }

    /// Opens a job over made-up records, which are on the model's scale.
    ///
    /// # Errors
    /// A sentence: the ledger refuses the job.
    pub fn put_on(&mut self, job: &str, spec: &JobSpec, data: ModelData) -> Result<(), String> {
        self.put_on_under(job, spec, data, spec.privacy.budget)
    }

    /// Applies [`Sandbox::put_on`] under a separate cap.
    ///
    /// # Errors
    /// As there.
    pub fn put_on_under(&mut self, job: &str, spec: &JobSpec, data: ModelData, cap: Budget) -> Result<(), String> {
        let (records, cap) = (Records::new(data, self.answerer.precision), cap.of(self.answerer.budget.unit));
        // No one sent this job: its name stands for its text.
        let digest: [u8; 32] = Sha256::digest(spec.name.as_bytes()).into();
        let entry = JobEntry {
            job,
            analyst: NOBODY,
            spec_digest: &digest,
            spec_toml: &spec.name,
            cap,
            records: records.blocks().records().max(1),
            room: None,
            honest: spec.honest(),
            approval: None,
        };
        self.answerer.ledger.open_job(&entry).map_err(|e| e.to_string())?;
        let masking = self.masking(job, spec, digest)?;
        let unread = |e: NoSum| e.to_string();
        let (spec, trusted) = (spec.clone(), spec.honest());
        let parts = NewJob { spec, digest, records, delay: None, masking, trusted, idle: Duration::ZERO };
        let active = ActiveJob::new(parts, self.budget.unit, &self.answerer.threads).map_err(unread)?;
        // A rehearsal asks any number of rounds.
        let active = ActiveJob { most_rounds: None, ..active };
        self.answerer.jobs.insert(job.to_owned(), active);
        Ok(())
    }

    /// Makes the masks of a roster with one member per party of the job, all others made up.
    fn masking(&mut self, job: &str, spec: &JobSpec, digest: [u8; 32]) -> Result<Masking, String> {
        let Some(secure) = spec.aggregation.secure() else { return Ok(Masking::Local) };
        let secret = |place: usize| {
            let seed: [u8; 32] = Sha256::digest(place.to_le_bytes()).into();
            MaskSecret::from_bytes(seed.into())
        };
        let member = |place: usize| Member {
            name: if place == 0 { NOBODY.to_owned() } else { format!("other-{place}") },
            identity: Sha256::digest(format!("made up {place}")).into(),
            public: secret(place).public(),
        };
        let members = (0..spec.parties.len()).map(member).collect();
        let roster = Roster::new(job, digest, secure.colluders, members).map_err(|e| e.to_string())?;
        let known = vec![(true, String::new()); spec.parties.len()];
        let ledger = &mut self.answerer.ledger;
        let entered = ledger.enter_mask_key(job, &secret(0).public()).and_then(|()| ledger.enter_roster(job, &roster, &known));
        entered.map_err(|e| e.to_string())?;
        let masks = RosterMasks::agree(&roster, NOBODY, &secret(0)).map_err(|e| e.to_string())?;
        Ok(Masking::Under(Box::new(masks)))
    }

    /// Returns the model of an open job.
    #[must_use]
    pub fn model_of(&self, job: &str) -> Option<&dyn Model> {
        self.answerer.jobs.get(job).map(|job| job.model.as_ref())
    }

    /// Gives the job's subsampled releases samples of the largest size.
    pub fn sample_at_largest(&mut self, job: &str) {
        if let Some(active) = self.answerer.jobs.get_mut(job) {
            active.sampling = active.sampling.take().map(|sampling| sampling.at_largest_size());
        }
    }

    /// Keeps the noise of this job's scale in stock.
    pub fn keep_noise(&mut self, spec: &JobSpec) {
        self.answerer.noise.keep([spec.privacy.noise]);
    }

    /// Closes a job and returns its records.
    pub fn take_off(&mut self, job: &str) -> Option<ModelData> {
        self.answerer.jobs.remove(job).and_then(|job| job.records.into_held())
    }
}
