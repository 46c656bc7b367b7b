//! Columns that came after the first stores of this schema.

use rusqlite::Connection;

/// Columns that a store of this schema lacks if an earlier build created it. Such a build still reads and writes the file.
const ADDED: [(&str, &str); 3] = [("jobs", "protocol"), ("jobs", "ended_ms"), ("job_parties", "waiting_since_ms")];

pub(super) fn add(connection: &Connection) -> rusqlite::Result<()> {
    for (table, column) in ADDED {
        if !has_column(connection, table, column)? {
            connection.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} INTEGER"))?;
        }
    }
    Ok(())
}

fn has_column(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    let known = "SELECT count(*) > 0 FROM pragma_table_info(?1) WHERE name = ?2";
    connection.query_row(known, [table, column], |row| row.get(0))
}

/// Returns a column of [`ADDED`] as an SQL expression: `NULL` where the store is read before a coordinator of this build has opened it.
pub(super) fn column_or_null<'a>(connection: &Connection, table: &str, column: &'a str) -> rusqlite::Result<&'a str> {
    Ok(if has_column(connection, table, column)? { column } else { "NULL" })
}
