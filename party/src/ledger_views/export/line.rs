//! The lines of an export's entries.

use conclave_privacy::mechanism::Components;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::permits::Permits;

use conclave_vault::ledger::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use conclave_vault::ledger::events::{hex, unhex};
use conclave_vault::ledger::state::LedgerState;

/// The line of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Line {
    Charge(ChargeLine),
    Answer {
        seq: u64,
        charge: u64,
        /// One number, or a list of several.
        released: Components,
        hash: String,
    },
    Job(JobLine),
    Event {
        seq: u64,
        time_ms: i64,
        kind: String,
        job: u64,
        body: String,
        hash: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChargeLine {
    seq: u64,
    time_ms: i64,
    job: u64,
    iteration: u64,
    chain: u32,
    attempt: u32,
    block: u64,
    digest: String,
    theta: String,
    theta_next: String,
    kind: u32,
    k_t: u64,
    s: u64,
    charge: u64,
    running_total: u64,
    slack: u64,
    /// Omitted if it is 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    components: u32,
    /// Present for masked releases only, with `alone`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    honest: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alone: Option<u64>,
    hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobLine {
    seq: u64,
    time_ms: i64,
    job: String,
    analyst: String,
    spec_digest: String,
    spec_toml: String,
    cap_epsilon: String,
    cap_delta: String,
    records: u64,
    fingerprint: String,
    hash: String,
}

impl Line {
    pub(super) fn of(entry: &Entry<'_>, hash: &Hash) -> Self {
        let hash = hex(hash);
        match *entry {
            Entry::Charge(e) => Self::Charge(ChargeLine {
                seq: e.seq,
                time_ms: e.time_ms,
                job: e.job,
                iteration: e.iteration,
                chain: e.chain,
                attempt: e.attempt,
                block: e.block,
                digest: hex(&e.digest),
                theta: hex(&e.theta),
                theta_next: hex(&e.theta_next),
                kind: e.kind,
                k_t: e.k_t,
                s: e.s,
                charge: e.charge,
                running_total: e.running_total,
                slack: e.slack,
                components: e.components,
                honest: e.honest,
                alone: (e.honest != 1).then_some(e.alone),
                hash,
            }),
            Entry::Answer(AnswerEntry { seq, charge, released }) => {
                // An entry has at least one integer, as the state guarantees.
                let released = Components::new(released).unwrap_or(Components::One(0));
                Self::Answer { seq, charge, released, hash }
            }
            Entry::Job(e) => Self::Job(JobLine {
                seq: e.seq,
                time_ms: e.time_ms,
                job: e.job.to_owned(),
                analyst: e.analyst.to_owned(),
                spec_digest: hex(e.spec_digest),
                spec_toml: e.spec_toml.to_owned(),
                cap_epsilon: e.cap_epsilon.to_owned(),
                cap_delta: e.cap_delta.to_owned(),
                records: e.records,
                fingerprint: hex(e.fingerprint),
                hash,
            }),
            Entry::Event(EventEntry { seq, time_ms, kind, job, body }) => {
                Self::Event { seq, time_ms, kind: kind.to_owned(), job, body: body.to_owned(), hash }
            }
        }
    }

    /// Notes an approval, and the time of a charge.
    pub(super) fn note(&self, permits: &mut Permits) {
        match self {
            Self::Charge(line) => permits.charge(line.job, line.time_ms),
            Self::Event { kind, job, body, .. } if kind == "approve" => permits.approve(*job, body),
            _ => {}
        }
    }

    /// Checks the entry and adds it to the state.
    pub(super) fn check(&self, state: &mut LedgerState) -> Result<(), String> {
        match self {
            Self::Charge(line) => Ok(state.check(&Entry::Charge(line.entry()?), &stored::<32>(&line.hash)?)?),
            Self::Answer { seq, charge, released, hash } => {
                let entry = AnswerEntry { seq: *seq, charge: *charge, released: released.as_slice() };
                Ok(state.check(&Entry::Answer(entry), &stored::<32>(hash)?)?)
            }
            Self::Job(line) => line.check(state),
            Self::Event { seq, time_ms, kind, job, body, hash } => {
                let entry = EventEntry { seq: *seq, time_ms: *time_ms, kind, job: *job, body };
                Ok(state.check(&Entry::Event(entry), &stored::<32>(hash)?)?)
            }
        }
    }
}

impl ChargeLine {
    fn entry(&self) -> Result<ChargeEntry, String> {
        Ok(ChargeEntry {
            seq: self.seq,
            time_ms: self.time_ms,
            job: self.job,
            iteration: self.iteration,
            chain: self.chain,
            attempt: self.attempt,
            block: self.block,
            digest: stored(&self.digest)?,
            theta: stored(&self.theta)?,
            theta_next: stored(&self.theta_next)?,
            kind: self.kind,
            k_t: self.k_t,
            s: self.s,
            charge: self.charge,
            running_total: self.running_total,
            slack: self.slack,
            components: self.components,
            honest: self.honest,
            alone: self.alone.unwrap_or(self.charge),
        })
    }
}

impl JobLine {
    fn check(&self, state: &mut LedgerState) -> Result<(), String> {
        let spec_digest: Hash = stored(&self.spec_digest)?;
        if Hash::from(Sha256::digest(self.spec_toml.as_bytes())) != spec_digest {
            return Err("contains a job whose digest does not match its text".into());
        }
        let fingerprint = if self.fingerprint.is_empty() { Vec::new() } else { stored::<32>(&self.fingerprint)?.to_vec() };
        let entry = JobEntered {
            seq: self.seq,
            time_ms: self.time_ms,
            job: &self.job,
            analyst: &self.analyst,
            spec_digest: &spec_digest,
            spec_toml: &self.spec_toml,
            cap_epsilon: &self.cap_epsilon,
            cap_delta: &self.cap_delta,
            records: self.records,
            fingerprint: &fingerprint,
        };
        Ok(state.check(&Entry::Job(entry), &stored::<32>(&self.hash)?)?)
    }
}

fn one() -> u32 {
    1
}

/// Has the signature that `skip_serializing_if` requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(number: &u32) -> bool {
    *number == 1
}

fn stored<const N: usize>(digest: &str) -> Result<[u8; N], String> {
    unhex(digest).ok_or_else(|| "contains a digest that is not hexadecimal".to_owned())
}
