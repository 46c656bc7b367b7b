//! The view of releases with every kind in words, and with the places of subsampled releases.
//!
//! A ledger has it from the first release on of a kind that its tables did not begin with: remainders, choices, second moments of ratios,
//! subsampled ratios and gradients. A ledger without it is read by software that does not know these kinds.

use conclave_privacy::mechanism::QueryKind;
use rusqlite::Connection;

use super::components::{self, view};

/// The text of the view with these columns of prices.
macro_rules! with_places {
    ($prices:literal) => {
        view!(
            "              WHEN c.kind = 67108864 THEN 'second moment of ratios'
              WHEN c.kind < 134217728 THEN 'statistic ' || (c.kind - 2)
              WHEN c.kind < 268435456 THEN 'choice of ' || (c.kind - 134217728) || ' candidates'
              WHEN c.kind = 268435456 THEN 'ratio over a sample'
              WHEN c.kind < 536870912 THEN 'gradient of ' || (c.kind - 268435456) || ' parameters over a sample'
              WHEN c.kind < 1073741824 THEN 'remainder of ' || (c.kind - 536870912) || ' parameters'
",
            "              WHEN c.kind > 268435456 AND c.kind < 536870912 THEN c.s / 268435456.0
              WHEN c.kind = 67108864 THEN c.s / 1073741824.0
",
            $prices,
            "
  LEFT JOIN (SELECT seq, block, row_number() OVER (PARTITION BY block ORDER BY seq) - 1 AS place FROM charges
             WHERE kind >= 268435456 AND kind < 536870912) p ON p.seq = c.seq"
        )
    };
}

/// The view.
const VIEW: &str =
    with_places!("c.charge, c.running_total, c.running_total / 281474976710656.0 AS mu_squared, p.block, p.place, a.released");
/// The view in a ledger with charges of masked releases.
const MASKED_VIEW: &str = with_places!(
    "coalesce(c.honest, 1) AS honest, c.charge, coalesce(c.alone, c.charge) AS alone, c.running_total, c.running_total / 281474976710656.0 AS mu_squared, p.block, p.place, a.released"
);

/// Returns true where the ledger's view is this one.
pub(super) fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    // Looked up with every charge of such a kind.
    let mut select =
        connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'releases' AND instr(sql, 'AS place') > 0")?;
    select.exists([])
}

/// Replaces the ledger's view by this one; the ledger has the tables of several integers.
pub(super) fn put(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(if components::are_masked(connection)? { MASKED_VIEW } else { VIEW })
}

/// Makes the view where a charge of this kind is in the ledger.
pub(super) fn see_to(connection: &Connection, kind: u32) -> rusqlite::Result<()> {
    if QueryKind::from_code(kind).is_none_or(QueryKind::is_of_first_ledgers) || is_there(connection)? {
        return Ok(());
    }
    connection.execute_batch(components::TABLES)?;
    put(connection)
}
