//! The ledger as JSON lines for an auditor without access to the party's machine, and the checker of such a file.
//!
//! The first line is the header, the last carries the party's signature over everything before it. Between them stand all
//! entries in order, one per line, each with its hash; [`check`] verifies them with the code that the ledger itself uses.

use std::io::{BufRead, Write};

use conclave_common::text;
use conclave_privacy::mechanism::Components;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use conclave_vault::clock::now_ms;
use conclave_vault::ledger::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::{hex, unhex};
use conclave_vault::ledger::settings::LedgerSettings;
use conclave_vault::ledger::state::LedgerState;
use conclave_vault::ledger::{schema, verify};

/// Version of the export format.
const EXPORT: u32 = 2;
/// First signed bytes; SHA-256 of all lines before the last follows.
pub const SIGNED: &str = "conclave ledger export 2";

/// The file's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the export.
    pub conclave_ledger_export: u32,
    /// Name of the party.
    pub party: String,
    /// Time of the export, Unix time in milliseconds.
    pub exported_ms: i64,
}

/// The file's last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The signature over [`signed_bytes`], in hexadecimal.
    pub signature: String,
    /// Signature scheme, as named by TLS.
    pub scheme: String,
    /// Certificate of the signing key, PEM.
    pub certificate: String,
}

impl Seal {
    /// Returns the signature's bytes; `None` if they are not hexadecimal.
    pub fn signature_bytes(&self) -> Option<Vec<u8>> {
        let (pairs, rest) = self.signature.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        pairs.iter().map(|pair| Some(unhex::<1>(std::str::from_utf8(pair).ok()?)?[0])).collect()
    }
}

/// The line of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
enum Line {
    Charge {
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
    },
    Answer {
        seq: u64,
        charge: u64,
        /// One number, or a list of several.
        released: Components,
        hash: String,
    },
    Job {
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
    },
    Event {
        seq: u64,
        time_ms: i64,
        kind: String,
        job: u64,
        body: String,
        hash: String,
    },
}

impl Line {
    fn of(entry: &Entry<'_>, hash: &Hash) -> Self {
        let hash = hex(hash);
        match *entry {
            Entry::Charge(e) => Self::Charge {
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
            },
            Entry::Answer(AnswerEntry { seq, charge, released }) => {
                // An entry has at least one integer, as the state guarantees.
                let released = Components::new(released).unwrap_or(Components::One(0));
                Self::Answer { seq, charge, released, hash }
            }
            Entry::Job(e) => Self::Job {
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
            },
            Entry::Event(EventEntry { seq, time_ms, kind, job, body }) => {
                Self::Event { seq, time_ms, kind: kind.to_owned(), job, body: body.to_owned(), hash }
            }
        }
    }

    /// Checks the entry and adds it to the state.
    fn check(&self, state: &mut LedgerState) -> Result<(), String> {
        match self {
            Self::Charge { digest, theta, theta_next, hash, .. } => {
                let halves = (unhex(theta).ok_or(NOT_HEX)?, unhex(theta_next).ok_or(NOT_HEX)?);
                let entry = self.charge(unhex(digest).ok_or(NOT_HEX)?, halves).ok_or(NOT_HEX)?;
                Ok(state.check(&Entry::Charge(entry), &stored(hash)?)?)
            }
            Self::Answer { seq, charge, released, hash } => {
                let entry = AnswerEntry { seq: *seq, charge: *charge, released: released.as_slice() };
                Ok(state.check(&Entry::Answer(entry), &stored(hash)?)?)
            }
            Self::Job {
                seq,
                time_ms,
                job,
                analyst,
                spec_digest,
                spec_toml,
                cap_epsilon,
                cap_delta,
                records,
                fingerprint,
                hash,
            } => {
                let spec_digest = stored(spec_digest)?;
                if Hash::from(Sha256::digest(spec_toml.as_bytes())) != spec_digest {
                    return Err("contains a job whose digest does not match its text".into());
                }
                let fingerprint = if fingerprint.is_empty() { Vec::new() } else { stored(fingerprint)?.to_vec() };
                let entry = JobEntered {
                    seq: *seq,
                    time_ms: *time_ms,
                    job,
                    analyst,
                    spec_digest: &spec_digest,
                    spec_toml,
                    cap_epsilon,
                    cap_delta,
                    records: *records,
                    fingerprint: &fingerprint,
                };
                Ok(state.check(&Entry::Job(entry), &stored(hash)?)?)
            }
            Self::Event { seq, time_ms, kind, job, body, hash } => {
                let entry = EventEntry { seq: *seq, time_ms: *time_ms, kind, job: *job, body };
                Ok(state.check(&Entry::Event(entry), &stored(hash)?)?)
            }
        }
    }

    fn charge(&self, digest: Hash, (theta, theta_next): ([u8; 16], [u8; 16])) -> Option<ChargeEntry> {
        let Self::Charge {
            seq,
            time_ms,
            job,
            iteration,
            chain,
            attempt,
            block,
            kind,
            k_t,
            s,
            charge,
            running_total,
            slack,
            components,
            honest,
            alone,
            ..
        } = *self
        else {
            return None;
        };
        Some(ChargeEntry {
            seq,
            time_ms,
            job,
            iteration,
            chain,
            attempt,
            block,
            digest,
            theta,
            theta_next,
            kind,
            k_t,
            s,
            charge,
            running_total,
            slack,
            components,
            honest,
            alone: alone.unwrap_or(charge),
        })
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

const NOT_HEX: &str = "contains a digest that is not hexadecimal";

fn stored(hash: &str) -> Result<Hash, String> {
    unhex(hash).ok_or_else(|| NOT_HEX.to_owned())
}

/// A writer that hashes the bytes it passes on.
struct Hashing<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Returns the bytes to be signed.
pub fn signed_bytes(lines: &Hash) -> Vec<u8> {
    [SIGNED.as_bytes(), lines].concat()
}

/// Writes the ledger's entries to `to`, verifying them, and returns the bytes to be signed: the caller appends the
/// [`Seal`] as the last line. Takes no lock; concurrent writes are left out.
///
/// # Errors
/// [`LedgerError`] if the ledger is damaged or `to` can't be written.
pub fn write(settings: &LedgerSettings, to: impl Write) -> Result<(Vec<u8>, LedgerState), LedgerError> {
    write_as(settings, &verify::Layout::PRESENT, to)
}

/// Writes an export as [`write`] does, for a ledger of a given layout.
pub(super) fn write_as(
    settings: &LedgerSettings,
    layout: &verify::Layout,
    to: impl Write,
) -> Result<(Vec<u8>, LedgerState), LedgerError> {
    let output = |e: std::io::Error| LedgerError::Wrong(format!("the export can't be written: {e}"));
    let mut to = Hashing { to, hash: Sha256::new() };
    let mut connection = schema::connect_read_only(&settings.ledger)?;
    let connection = connection.transaction()?;
    let header = Header { conclave_ledger_export: EXPORT, party: settings.party.clone(), exported_ms: now_ms() };
    write_line(&mut to, &header).map_err(output)?;
    let state = verify::read(&connection, &settings.ledger, layout, |entry, hash| {
        write_line(&mut to, &Line::of(entry, hash)).map_err(output)
    })?;
    settings.check_genesis(&settings.ledger, state.genesis())?;
    to.flush().map_err(output)?;
    Ok((signed_bytes(&to.hash.finalize().into()), state))
}

/// Writes one line of JSON; control characters in its strings are escaped, so that none acts on a terminal.
///
/// # Errors
/// Fails if `to` can't be written.
pub fn write_line(to: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    let line = serde_json::to_string(line)?;
    to.write_all(text::json(&line).as_bytes())?;
    to.write_all(b"\n")
}

/// An export with a valid chain and valid totals. Its signature has not been checked yet.
#[derive(Debug)]
pub struct Checked {
    /// The first line.
    pub header: Header,
    /// The state after all entries.
    pub state: LedgerState,
    /// The last line.
    pub seal: Seal,
    /// The bytes that the signature must cover.
    pub signed: Vec<u8>,
}

/// Reads an export and checks every entry: order, chain, charges, running totals, answers, caps of blocks, the budget.
///
/// # Errors
/// Returns the line and its error.
pub fn check(from: impl BufRead) -> Result<Checked, String> {
    check_onto(LedgerState::default(), from)
}

/// Checks an export as [`check`] does, starting from a given state.
pub(super) fn check_onto(mut state: LedgerState, from: impl BufRead) -> Result<Checked, String> {
    let mut lines = from.lines();
    let mut hash = Sha256::new();
    let mut next = |at: u64| match lines.next() {
        Some(Ok(line)) => Ok(Some(line)),
        Some(Err(e)) => Err(format!("line {at} can't be read: {e}")),
        None => Ok(None),
    };
    let first = next(1)?.ok_or("the file is empty")?;
    let header: Header = serde_json::from_str(&first).map_err(|e| format!("line 1 is not the header of a ledger export: {e}"))?;
    if header.conclave_ledger_export != EXPORT {
        return Err(format!(
            "the export has version {}, but this program reads version {EXPORT}: use the program that wrote it",
            header.conclave_ledger_export
        ));
    }
    let (mut line, mut at) = (first, 1);
    while let Some(following) = next(at + 1)? {
        if at > 1 {
            let entry: Line = serde_json::from_str(&line).map_err(|e| format!("line {at} is not an entry: {e}"))?;
            entry.check(&mut state).map_err(|why| format!("line {at}: the entry {why}"))?;
        }
        hash.update(line.as_bytes());
        hash.update(b"\n");
        (line, at) = (following, at + 1);
    }
    let seal: Seal =
        serde_json::from_str(&line).map_err(|_| "the last line is not a signature: the file is truncated".to_owned())?;
    state.finish()?;
    if state.genesis().is_none_or(|genesis| genesis.party != header.party) {
        return Err("the party in line 1 differs from that of the ledger".into());
    }
    Ok(Checked { header, state, seal, signed: signed_bytes(&hash.finalize().into()) })
}
