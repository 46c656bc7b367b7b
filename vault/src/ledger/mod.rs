//! Keeps the ledger: every release of a data set, and the remaining budget.
//!
//! One ledger per data set, held by one process under an exclusive lock of the operating system. It guarantees three properties on which
//! everything in this crate rests:
//!
//! * **Spend, then look.** [`Ledger::charge`] makes a charge durable before any record is read, and returns the
//!   [`ChargeReceipt`] that [`sample_noise`] requires. No other function makes a receipt:
//!
//! ```compile_fail
//! # use {conclave_privacy::accounting::Cover, conclave_vault::ledger::ChargeReceipt};
//! // A receipt can't be built: its fields are private.
//! fn forge(of_another: ChargeReceipt, cover: Cover) -> ChargeReceipt {
//!     ChargeReceipt { cover, ..of_another }
//! }
//! ```
//! ```compile_fail
//! # use conclave_vault::ledger::ChargeReceipt;
//! // Nor copied, to be used twice.
//! fn twice(receipt: ChargeReceipt) -> (ChargeReceipt, ChargeReceipt) {
//!     (receipt.clone(), receipt)
//! }
//! ```
//!
//! * **Same query, same bytes.** A query is identified by (job, iteration, chain) and by the SHA-256 of everything that
//!   determines its answer. [`Ledger::record`] makes an answer durable before it may be sent: only a
//!   [`Recorded`] value goes into a reply. A repeated query gets the same integers at no charge; another
//!   query under the same id is refused.
//! * **Nothing is forgotten.** Every entry carries the hash of the one before it ([`entry`]); a start reads and hashes
//!   all entries. The last synced entry's hash, under the party's MAC key, goes with every reply ([`Head`]): a ledger that does
//!   not reach a head that the party has published is locked until its owner unlocks it.
//!
//! The budget is a Gaussian-DP filter in integer units (Smith & Thakurta 2022), see
//! [`conclave_privacy::accounting::PrivacyFilter`]; an analyst's cap and a job's own lie inside the data's budget. There are
//! no refunds.
//!
//! [`Durability::Strict`] syncs every charge before its answer is computed and every answer before it is sent.
//! [`Durability::Reserve`] syncs a block of charge ahead and its answers later: after a crash the block counts as spent to
//! its last unit.
//!
//! A failed write or sync is final: the ledger is [halted](LedgerError::Halted) for the rest of the process, because after a failed sync
//! the contents of the disk are unknown. The tables are described in `docs/reference/ledger-schema.md`.

pub mod behind;
pub mod block_opened;
mod charge;
pub mod components;
mod convert;
pub mod delta_reserve;
pub mod entry;
pub mod error;
pub mod events;
mod feed;
mod filters;
mod format;
mod handle;
pub mod head;
mod ids;
mod index;
mod insert;
mod jobs;
mod lock;
mod masks;
mod open;
mod owner_actions;
mod query;
mod receipt;
mod release;
mod releases_view;
mod reserve;
mod reserve_act;
mod room;
mod sampled;
pub mod schema;
pub mod secret;
pub mod settings;
pub mod state;
mod unwritten;
pub mod verify;
mod writer;
mod wrong;

pub use charge::{ChargeOutcome, Grant};
pub use components::{are_masked, are_stored};
pub use delta_reserve::{reserve, reserve_units, written};
pub use error::LedgerError;
pub use events::RosterMember;
pub use filters::Refusal;
pub use handle::{DataStanding, Ledger};
pub use head::Head;
pub use jobs::{JobEntry, ReserveLeft};
pub use query::{Digest, Masked, QueryContent, QueryKey};
pub use receipt::{ChargeReceipt, Recorded};
#[cfg(any(test, feature = "test-util"))]
pub use release::release;
pub use release::{ChargedChoice, ChargedNoise, Release, prepare_choice, sample_noise};
pub use room::Room;
pub use secret::Pieces;
pub use secret::SECRET_FILE;
pub use secret::Secret;
pub use settings::{Durability, LedgerSettings, RESERVE_BLOCK};
pub use state::Masks;
pub use writer::LONG_LOG;

#[cfg(any(test, feature = "test-util"))]
mod tests;
#[cfg(any(test, feature = "test-util"))]
pub use tests::{lengths, to_former, write_a_million_releases};
