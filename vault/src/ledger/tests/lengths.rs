//! Vectors of any length, which no kind of query has: statistics as if they were answered by several integers.
#![allow(clippy::unwrap_used)]

use conclave_privacy::accounting::{Honest, Priced};
use conclave_privacy::mechanism::QueryKind;

use crate::ledger::error::LedgerError;
use crate::ledger::state::LedgerState;
use crate::ledger::verify::Layout;
use crate::ledger::{Ledger, LedgerSettings, QueryKey};
use crate::testing::key;

/// Returns the length of an answer: of a statistic one more than its component.
pub fn length(kind: QueryKind) -> usize {
    match kind {
        QueryKind::Statistic { component } => component as usize + 1,
        other => other.length(),
    }
}

/// Returns the tables of a ledger whose answers have these lengths.
pub fn layout() -> Layout {
    Layout::PRESENT.of_lengths(length)
}

/// Returns the state of a ledger of these lengths before its first entry.
pub fn state() -> LedgerState {
    LedgerState::of_lengths(length)
}

/// Opens a ledger of these lengths.
///
/// # Errors
/// As [`Ledger::open_kept`].
pub fn open(settings: &LedgerSettings) -> Result<Ledger, LedgerError> {
    Ledger::open_as(settings, &layout())
}

/// Prices a query whose answer has this many integers.
///
/// # Panics
/// When there are none.
pub fn vector(chain: u32, content: u8, components: u32) -> QueryKey {
    let (key, kind) = (key(chain, content, 1000), QueryKind::Statistic { component: components - 1 });
    assert_eq!(length(kind), components as usize);
    let priced =
        Priced::new(kind, key.priced.sensitivity(), key.priced.noise(), Honest::ALONE).of_components_for_test(components);
    QueryKey { priced, ..key }
}
