//! Stores answers of several integers and charges of masked releases: tables and columns that a ledger has from the first of them on, and a
//! view that shows them.
//!
//! Nearly every answer is one integer and is stored whole in `answers`. A longer one has its first integer there and the others here, with
//! the charge's number of components. A ledger without such answers has neither table, and is read by software that does not know them.

use conclave_privacy::mechanism::Components;
use rusqlite::Connection;

/// The tables.
pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS charge_components (
  charge     INTEGER PRIMARY KEY,
  components INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS answer_components (
  charge    INTEGER NOT NULL,
  component INTEGER NOT NULL,
  released  INTEGER NOT NULL,
  PRIMARY KEY (charge, component)
) STRICT;
";

/// Columns of a charge of a masked release: the number of parties whose noise protects it, and its cost alone. Other charges have neither.
/// They are in the row itself, as a second table is a second page of the log at every answer.
pub(super) const MASKED: &str = "
ALTER TABLE charges ADD COLUMN honest INTEGER;
ALTER TABLE charges ADD COLUMN alone INTEGER;
";

/// The text of a view of releases: its kinds below vectors, its further units of noise, its columns of prices, and its further tables.
macro_rules! view {
    ($kinds:literal, $units:literal, $prices:literal, $tables:literal) => {
        concat!(
            "
DROP VIEW releases;
CREATE VIEW releases AS
  SELECT c.seq, strftime('%Y-%m-%dT%H:%M:%fZ', c.time_ms / 1000.0, 'unixepoch') AS time, j.job, j.analyst, c.iteration,
         c.chain, c.attempt, hex(c.digest) AS digest, hex(c.theta) AS theta, hex(c.theta_next) AS theta_next,
         CASE WHEN c.kind = 0 THEN 'ratio' WHEN c.kind = 1 THEN 'clip count'
",
            $kinds,
            "              WHEN c.kind % 4 = 0 THEN 'moments of ' || ((c.kind - 1073741824) / 4) || ' columns'
              WHEN c.kind % 4 = 1 THEN 'gradient of ' || ((c.kind - 1073741824) / 4) || ' parameters'
              WHEN c.kind % 4 = 2 THEN 'curvature of ' || ((c.kind - 1073741824) / 4) || ' parameters'
              ELSE 'table of ' || ((c.kind - 1073741824) / 4) || ' cells' END AS kind,
         coalesce(n.components, 1) AS integers, c.k_t, c.s,
         CASE WHEN c.kind = 1 OR (c.kind >= 1073741824 AND c.kind % 4 = 3) THEN c.s / 1048576.0
              WHEN c.kind >= 1073741824 AND c.kind % 4 = 1 THEN c.s / 268435456.0
",
            $units,
            "              ELSE c.s / 4294967296.0 END AS noise_sd,
         ",
            $prices,
            "
  FROM charges c JOIN jobs j ON j.seq = c.job LEFT JOIN answers a ON a.charge = c.seq
  LEFT JOIN charge_components n ON n.charge = c.seq",
            $tables,
            ";
"
        )
    };
}
pub(super) use view;

/// The view of releases in a ledger that has the tables, in place of the one for single integers: the kinds in the words of [`QueryKind`],
/// the noise in the kind's own unit.
///
/// [`QueryKind`]: conclave_privacy::mechanism::QueryKind
pub(super) const VIEW: &str = view!(
    "              WHEN c.kind < 1073741824 THEN 'statistic ' || (c.kind - 2)
",
    "",
    "c.charge, c.running_total, c.running_total / 281474976710656.0 AS mu_squared, a.released",
    ""
);

/// The view in a ledger with charges of masked releases, whose `released` is the masked integer.
pub(super) const MASKED_VIEW: &str = view!(
    "              WHEN c.kind < 536870912 THEN 'statistic ' || (c.kind - 2)
              WHEN c.kind < 1073741824 THEN 'remainder of ' || (c.kind - 536870912) || ' parameters'
",
    "",
    "coalesce(c.honest, 1) AS honest, c.charge, coalesce(c.alone, c.charge) AS alone, c.running_total,
         c.running_total / 281474976710656.0 AS mu_squared, a.released",
    ""
);

/// The components of charges that have several, in the order of their numbers.
pub(super) const CHARGES: &str = "SELECT charge, components FROM charge_components ORDER BY charge";
/// The integers of answers after their first, in the order of their charges.
pub(super) const ANSWERS: &str = "SELECT charge, released FROM answer_components ORDER BY charge, component";

/// Returns true where the ledger has the tables of several integers.
pub fn are_stored(connection: &Connection) -> rusqlite::Result<bool> {
    // Looked up with every charge of several integers.
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'charge_components'")?.exists([])
}

/// Returns true where the ledger has the columns of masked releases.
pub fn are_masked(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM pragma_table_info('charges') WHERE name = 'honest'")?.exists([])
}

/// Stores the number of components of a charge that has several.
pub(super) fn insert_charge(connection: &Connection, charge: u64, components: u32) -> rusqlite::Result<()> {
    if !are_stored(connection)? {
        connection.execute_batch(TABLES)?;
        connection.execute_batch(VIEW)?;
    }
    let mut insert = connection.prepare_cached("INSERT INTO charge_components (charge, components) VALUES (?1, ?2)")?;
    insert.execute((charge, components)).map(drop)
}

/// Stores the integers of an answer after its first.
pub(super) fn insert_answer(connection: &Connection, charge: u64, others: &[i64]) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO answer_components (charge, component, released) VALUES (?1, ?2, ?3)")?;
    (1_u64..).zip(others).try_for_each(|(component, released)| insert.execute((charge, component, released)).map(drop))
}

/// Reads all integers of an answer whose first one is known, in a ledger that has the tables.
pub fn of_answer(connection: &Connection, charge: u64, first: i64) -> rusqlite::Result<Components> {
    let mut select = connection.prepare_cached("SELECT released FROM answer_components WHERE charge = ?1 ORDER BY component")?;
    let mut integers = vec![first];
    for other in select.query_map([charge], |row| row.get(0))? {
        integers.push(other?);
    }
    Ok(Components::new(&integers).unwrap_or(Components::One(first)))
}
