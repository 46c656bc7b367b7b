//! A job's history in the ledger, charge by charge: compared with a replay of the coordinator's log.

use conclave_privacy::mechanism::Components;
use rusqlite::{Connection, OptionalExtension, Row};

use super::given_up::{GivenUp, given_up};
use super::known_data::{KnownData, known_data};
use conclave_vault::ledger::components;
use conclave_vault::ledger::entry::Hash;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::{Reserve, RosterEntered, Settle};
use conclave_vault::ledger::schema;
use conclave_vault::ledger::schema::genesis;
use conclave_vault::ledger::settings::LedgerSettings;

/// A job entered in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entered {
    seq: u64,
    /// Time of entry, Unix time in milliseconds.
    pub(crate) time_ms: i64,
    pub(crate) analyst: String,
    pub(crate) spec_digest: Hash,
    /// Public number of units of privacy; 0 if it is not public.
    pub(crate) records: u64,
    /// Rounds whose answers may have been sent and lost in a crash: first round, and the one after the last.
    pub(crate) lost: Vec<(u64, u64)>,
    /// The roster of a masked job, if any.
    pub(crate) roster: Option<RosterEntered>,
}

/// Opens the ledger of these settings for reading.
///
/// # Errors
/// [`LedgerError::Missing`], a ledger of another party or budget; a failure of the database.
pub(super) fn checked(settings: &LedgerSettings) -> Result<Connection, LedgerError> {
    let connection = schema::connect_read_only(&settings.ledger)?;
    let (_, made_for) = genesis(&connection, &settings.ledger)?;
    settings.check_genesis(&settings.ledger, Some(&made_for))?;
    Ok(connection)
}

/// One charged query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charged {
    pub(crate) iteration: u64,
    pub(crate) chain: u32,
    pub(crate) digest: Hash,
    /// The released integers; `None` if there are none yet.
    pub(crate) released: Option<Components>,
}

/// Reads the ledger's entries of a job; takes no lock and writes nothing.
#[derive(Debug)]
pub(crate) struct JobReader {
    connection: Connection,
    entered: Option<Entered>,
}

impl JobReader {
    /// Opens the ledger and reads the job's entry.
    ///
    /// # Errors
    /// [`LedgerError::Missing`], a ledger of another party or budget; a failure of the database.
    pub(crate) fn open(settings: &LedgerSettings, job: &str) -> Result<Self, LedgerError> {
        let connection = checked(settings)?;
        let entered = connection
            .query_row("SELECT seq, time_ms, analyst, spec_digest, records FROM jobs WHERE job = ?1", [job], |row| {
                Ok(Entered {
                    seq: row.get(0)?,
                    time_ms: row.get(1)?,
                    analyst: row.get(2)?,
                    spec_digest: row.get(3)?,
                    records: row.get(4)?,
                    lost: Vec::new(),
                    roster: None,
                })
            })
            .optional()?;
        let entered = match entered {
            Some(entered) => {
                let (lost, roster) = (lost(&connection, entered.seq)?, roster(&connection, entered.seq)?);
                Some(Entered { lost, roster, ..entered })
            }
            None => None,
        };
        Ok(Self { connection, entered })
    }

    /// Returns the job's entry, if it was ever opened.
    pub(crate) fn entered(&self) -> Option<&Entered> {
        self.entered.as_ref()
    }

    /// Returns the stretches of rounds whose entries the owner has given up, of a job that was first `asked` of this party at a time.
    ///
    /// # Errors
    /// A failure of the database.
    pub(crate) fn given_up(&self, asked: &str) -> Result<Vec<GivenUp>, LedgerError> {
        given_up(&self.connection, self.entered.as_ref().map(|entered| entered.seq), asked)
    }

    /// Returns the data that the ledger knows since the job was entered; `None` if it never was.
    ///
    /// # Errors
    /// A failure of the database.
    pub(crate) fn data(&self) -> Result<Option<KnownData>, LedgerError> {
        self.entered.as_ref().map(|entered| known_data(&self.connection, entered.seq)).transpose()
    }

    /// Returns the current charges from a round on, by round and chain.
    ///
    /// # Errors
    /// A failure of the database.
    pub(crate) fn charges(&self, from: u64) -> Result<Vec<Charged>, LedgerError> {
        let Some(entered) = &self.entered else { return Ok(Vec::new()) };
        // One snapshot: a running party may enter its first vector between two statements.
        let snapshot = self.connection.unchecked_transaction()?;
        let mut select = snapshot.prepare_cached(
            "SELECT c.iteration, c.chain, c.digest, a.released, c.seq FROM charges c LEFT JOIN answers a ON a.charge = c.seq
             WHERE c.job = ?1 AND c.iteration >= ?2 ORDER BY c.iteration, c.chain",
        )?;
        // A ledger's rounds never exceed its signed integers.
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let vectors = components::are_stored(&snapshot)?;
        let charged = |row: &Row<'_>| charged(row, vectors.then_some(&*snapshot));
        Ok(select.query_map((entered.seq, from), charged)?.collect::<Result<_, _>>()?)
    }
}

/// Reads a row, with the further integers of its answer if the ledger stores any.
fn charged(row: &Row<'_>, vectors: Option<&Connection>) -> rusqlite::Result<Charged> {
    let whole = |first: i64| match vectors {
        Some(connection) => components::of_answer(connection, row.get(4)?, first),
        None => Ok(Components::One(first)),
    };
    let released = row.get::<_, Option<i64>>(3)?.map(whole).transpose()?;
    Ok(Charged { iteration: row.get(0)?, chain: row.get(1)?, digest: row.get(2)?, released })
}

fn roster(connection: &Connection, job: u64) -> Result<Option<RosterEntered>, LedgerError> {
    let mut select = connection.prepare("SELECT body FROM events WHERE job = ?1 AND kind = ?2")?;
    let body: Option<String> = select.query_row((job, RosterEntered::KIND), |row| row.get(0)).optional()?;
    // Validated by every start.
    Ok(body.and_then(|body| RosterEntered::parse(&body).ok()))
}

/// Returns rounds paid by blocks that a crash forfeited: their answers may have been sent without a durable row.
fn lost(connection: &Connection, job: u64) -> Result<Vec<(u64, u64)>, LedgerError> {
    let mut select = connection.prepare("SELECT seq, kind, body FROM events WHERE job = ?1 AND kind IN (?2, ?3) ORDER BY seq")?;
    let mut events = select.query((job, Reserve::KIND, Settle::KIND))?;
    let (mut block, mut lost) = (None, Vec::new());
    while let Some(event) = events.next()? {
        let body = event.get_ref(2)?.as_str().unwrap_or_default();
        if event.get_ref(1)?.as_str() == Ok(Reserve::KIND) {
            block = Reserve::parse(body).ok();
        } else if let (Ok(settle), Some(block)) = (Settle::parse(body), block.take())
            && settle.why == Settle::CRASH
        {
            lost.push((block.iteration, block.iteration.saturating_add(block.draws)));
        }
    }
    Ok(lost)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::ledger::events::{ChainPosition, Unlock};
    use conclave_vault::ledger::{ChargeOutcome, Ledger};
    use conclave_vault::testing::{JOB, budget, entry, key};

    #[test]
    fn a_job_that_was_never_opened_has_no_charges() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        assert!(matches!(JobReader::open(&settings, JOB), Err(LedgerError::Missing(_))));
        settings.init().unwrap();
        let reader = JobReader::open(&settings, JOB).unwrap();
        assert_eq!((reader.entered(), reader.charges(0).unwrap()), (None, Vec::new()));
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        let reader = JobReader::open(&settings, JOB).unwrap();
        assert_eq!(reader.entered().map(|e| (e.analyst.as_str(), e.lost.len())), Some(("alice", 0)));
        assert_eq!(reader.charges(0).unwrap(), Vec::new());
    }

    /// Rounds 0 to 2 were answered and round 3 was charged when the ledger was copied, which was then restored and unlocked.
    #[test]
    fn an_unlock_names_the_rounds_whose_entries_are_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        settings.init().unwrap();
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        let mut answer = |round: u64| {
            let ChargeOutcome::Granted(grants) = ledger.charge(JOB, round, &[key(0, round as u8, 1 << 20)]).unwrap() else {
                panic!("within the budget")
            };
            assert_eq!(grants.len(), 1);
        };
        (0..4).for_each(&mut answer);
        drop(ledger);
        let connection = Connection::open(&settings.ledger).unwrap();
        // The last charge has no answer: it may have left.
        let answers = "INSERT INTO answers SELECT seq, seq + 1000, 7 FROM charges WHERE iteration < 3";
        assert_eq!(connection.execute(answers, []).unwrap(), 3);
        let from: u64 = connection.query_row("SELECT max(seq) FROM charges", [], |row| row.get(0)).unwrap();
        let place = |seq| ChainPosition { seq, hash: "00".repeat(32) };
        let unlock = Unlock { reason: "the disk died".into(), lost: place(from + 4), from: place(from) };
        // 2020-01-01, in milliseconds.
        let row = (from + 5, 1_577_836_800_000_i64, Unlock::KIND, unlock.body());
        connection.execute("INSERT INTO events VALUES (?1, ?2, ?3, 0, ?4, x'')", row).unwrap();
        let reader = |job: &str| JobReader::open(&settings, job).unwrap();
        let all = reader(JOB).given_up("2019-12-31T00:00:00Z").unwrap();
        let expected =
            GivenUp { rounds: (3, u64::MAX), most: 4, time: "2020-01-01T00:00:00Z".into(), reason: "the disk died".into() };
        assert_eq!(all, [expected]);
        // A job that the ledger does not know: only if it was asked before the unlock.
        assert_eq!(reader("another").given_up("2019-12-31T00:00:00Z").unwrap()[0].rounds, (0, u64::MAX));
        assert_eq!(reader("another").given_up("2020-01-02T00:00:00Z").unwrap(), []);
    }

    #[test]
    fn rounds_of_a_block_forfeited_in_a_crash_may_be_lost() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        settings.init().unwrap();
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        drop(ledger);
        let job = JobReader::open(&settings, JOB).unwrap().entered().unwrap().seq;
        let connection = Connection::open(&settings.ledger).unwrap();
        let mut seq = 1000;
        let mut event = |kind: &str, body: &str| {
            seq += 1;
            let row = (seq, kind, job, body);
            connection.execute("INSERT INTO events VALUES (?1, 0, ?2, ?3, ?4, x'')", row).unwrap();
            seq
        };
        for (iteration, why) in [(3, "full"), (7, Settle::CRASH), (20, "closed")] {
            let block = event(Reserve::KIND, &Reserve { iteration, units: 9, slack: 1, draws: 6 }.body());
            event(Settle::KIND, &Settle { block, units: 1, slack: 0, draws: 1, why: why.into() }.body());
        }
        assert_eq!(JobReader::open(&settings, JOB).unwrap().entered().unwrap().lost, [(7, 13)]);
    }
}
