//! The list of releases for `conclave-party ledger`.

use std::collections::HashMap;

use conclave_privacy::accounting;
use conclave_privacy::mechanism::{Components, NoiseScale, QueryKind, STEP};
use serde::Serialize;

use super::job_history::checked;
use super::moment::to_milliseconds;
use conclave_vault::ledger::components;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::hex;
use conclave_vault::ledger::settings::LedgerSettings;

/// Selection of releases.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Only releases of this job: its id, or a prefix of it.
    pub job: Option<String>,
    /// Only this number of latest releases.
    pub last: Option<u64>,
}

/// One release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listed {
    /// Number of its charge in the ledger.
    pub seq: u64,
    /// Time of the charge, UTC.
    pub time: String,
    pub job: String,
    pub analyst: String,
    pub iteration: u64,
    pub chain: u32,
    /// Above 0 if a crash in reserve mode may have lost an earlier answer.
    pub attempt: u32,
    /// First half of theta's SHA-256.
    pub theta: String,
    /// First half of the SHA-256 of theta'.
    pub theta_next: String,
    /// Kind of release, as named by [`QueryKind`]: `ratio`, `statistic 3`, `gradient of 5 parameters`.
    pub kind: String,
    /// Number of its integers, each with its own noise.
    pub integers: usize,
    /// Largest contribution of one unit of privacy for a ratio, largest change of the sum for other kinds; lattice units.
    pub k_t: u64,
    /// Noise standard deviation of each integer, in the kind's unit; see [`QueryKind::noise_sd`].
    pub sigma: f64,
    /// For a subsampled release: number of the entry that opened its block, which carries the charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Index in the block, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// The cost, in units of 2^-48 of mu².
    pub charge: u64,
    /// The cost as mu².
    pub mu_squared: f64,
    /// mu² spent up to and including this release.
    pub running_total: f64,
    /// The released integers, in lattice units; `None` if there are none.
    pub released: Option<Components>,
}

impl Listed {
    /// Formats the `first` of the released integers and the number of the others; `-` if there are none.
    pub(crate) fn shown(&self, first: usize) -> String {
        match self.released.as_ref().map(Components::as_slice) {
            None => "-".to_owned(),
            Some(integers) => {
                let more = integers.len().saturating_sub(first);
                let named: Vec<String> = integers.iter().take(first).map(i64::to_string).collect();
                if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
            }
        }
    }
}

/// Reads releases in the order of their charges; takes no lock and writes nothing.
///
/// # Errors
/// [`LedgerError`], and the errors of `each`.
pub(crate) fn list<E: From<LedgerError>>(
    settings: &LedgerSettings,
    listing: &Listing,
    mut each: impl FnMut(Listed) -> Result<(), E>,
) -> Result<(), E> {
    let database = |e: rusqlite::Error| E::from(LedgerError::from(e));
    let mut connection = checked(settings)?;
    let connection = connection.transaction().map_err(database)?;
    let vectors = components::are_stored(&connection).map_err(database)?;
    let mut select = connection
        .prepare(
            "SELECT * FROM (
               SELECT c.seq, c.time_ms, j.job, j.analyst, c.iteration, c.chain, c.attempt, c.theta, c.theta_next, c.k_t, c.s,
                      c.charge, c.running_total, a.released, c.kind, c.block
               FROM charges c JOIN jobs j ON j.seq = c.job LEFT JOIN answers a ON a.charge = c.seq
               WHERE substr(j.job, 1, length(?1)) = ?1 ORDER BY c.seq DESC LIMIT ?2
             ) ORDER BY seq",
        )
        .map_err(database)?;
    let last = listing.last.map_or(-1, |n| i64::try_from(n).unwrap_or(-1));
    let mut rows = select.query((listing.job.as_deref().unwrap_or(""), last)).map_err(database)?;
    let mut places = Places { connection: &connection, taken: HashMap::new() };
    while let Some(row) = rows.next().map_err(database)? {
        let mut listed = listed(row, vectors.then_some(&connection)).map_err(database)?;
        if let Some(block) = listed.block {
            listed.place = Some(places.next(block, listed.seq).map_err(database)?);
        }
        each(listed)?;
    }
    Ok(())
}

/// Indices of releases in their blocks, counted in the order of the list.
struct Places<'c> {
    connection: &'c rusqlite::Connection,
    taken: HashMap<u64, u64>,
}

impl Places<'_> {
    /// Returns the index of a release; the releases before it in its block are either all listed or none.
    fn next(&mut self, block: u64, seq: u64) -> rusqlite::Result<u64> {
        let place = match self.taken.get(&block) {
            Some(taken) => *taken,
            None => {
                // The charges of a block follow it.
                let before = "SELECT count(*) FROM charges WHERE seq > ?1 AND seq < ?2 AND block = ?1";
                self.connection.prepare_cached(before)?.query_row((block, seq), |row| row.get(0))?
            }
        };
        self.taken.insert(block, place + 1);
        Ok(place)
    }
}

/// Reads a row, with the further integers of its answer if the ledger stores any.
fn listed(row: &rusqlite::Row<'_>, vectors: Option<&rusqlite::Connection>) -> rusqlite::Result<Listed> {
    let whole = |first: i64| match vectors {
        Some(connection) => components::of_answer(connection, row.get(0)?, first),
        None => Ok(Components::One(first)),
    };
    let (s, charge): (u64, u64) = (row.get(10)?, row.get(11)?);
    let kind = QueryKind::from_code(row.get(14)?);
    let sigma = kind.zip(NoiseScale::from_units(s).ok()).map_or(s as f64 * STEP, |(kind, s)| kind.noise_sd(s));
    Ok(Listed {
        seq: row.get(0)?,
        time: to_milliseconds(row.get(1)?),
        job: row.get(2)?,
        analyst: row.get(3)?,
        iteration: row.get(4)?,
        chain: row.get(5)?,
        attempt: row.get(6)?,
        theta: hex(row.get_ref(7)?.as_blob()?),
        theta_next: hex(row.get_ref(8)?.as_blob()?),
        kind: kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string()),
        integers: kind.map_or(1, QueryKind::length),
        k_t: row.get(9)?,
        sigma,
        block: if kind.is_some_and(QueryKind::is_sampled) { row.get(15)? } else { None },
        place: None,
        charge,
        mu_squared: accounting::mu_squared(charge),
        running_total: accounting::mu_squared(row.get(12)?),
        released: row.get::<_, Option<i64>>(13)?.map(whole).transpose()?,
    })
}
