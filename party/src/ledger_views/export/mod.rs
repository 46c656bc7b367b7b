//! The ledger as JSON lines for an auditor without access to the party's machine, and the checker of such a file.
//!
//! The first line is the header, the last carries the party's signature over everything before it. Between them stand all
//! entries in order, one per line, each with its hash; [`check`] verifies them with the code that the ledger itself uses.

mod line;
mod permits;

use std::io::{BufRead, Write};

use conclave_common::text;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::line::Line;
pub use self::permits::{Late, Permits};
use conclave_vault::clock::now_ms;
use conclave_vault::ledger::entry::Hash;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::unhex;
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
    /// The owner's permits, with the charges after their last day.
    pub permits: Permits,
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
    let (mut hash, mut permits) = (Sha256::new(), Permits::default());
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
            entry.note(&mut permits);
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
    Ok(Checked { header, state, permits, seal, signed: signed_bytes(&hash.finalize().into()) })
}
