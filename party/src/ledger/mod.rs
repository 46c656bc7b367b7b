//! The ledger: what has left the building, and what may still leave.
//!
//! One ledger per data set, held by one process under an exclusive lock of the operating system. It does three things and
//! everything in this crate leans on them:
//!
//! * **Spend, then look.** [`Ledger::charge`] makes a charge durable before any record is read, and hands out the
//!   [`ChargeReceipt`] without which [`sample_noise`] can't be called. No receipt can be had elsewhere:
//!
//! ```compile_fail
//! # use {conclave_common::accounting::Priced, conclave_party::ledger::ChargeReceipt};
//! // A receipt can't be built: its fields are private.
//! fn forge(of_another: ChargeReceipt, priced: Priced) -> ChargeReceipt {
//!     ChargeReceipt { priced, ..of_another }
//! }
//! ```
//! ```compile_fail
//! # use conclave_party::ledger::ChargeReceipt;
//! // Nor copied, to be used twice.
//! fn twice(receipt: ChargeReceipt) -> (ChargeReceipt, ChargeReceipt) {
//!     (receipt.clone(), receipt)
//! }
//! ```
//!
//! * **Same question, same bytes.** A query is known by (job, iteration, chain) and by the SHA-256 of everything that
//!   determines its answer. [`Ledger::record`] makes an answer durable before it may be sent: only a
//!   [`Recorded`] value goes into a reply. Asked again, the same query gets the same integers at no charge; another
//!   query under the same id is refused.
//! * **Nothing is forgotten.** Every entry carries the hash of the one before it ([`entry`]); a start reads and hashes them
//!   all. The last synced entry's hash, under a key of the party's own, goes with every reply ([`Head`]): a ledger that does
//!   not reach a head that the party once gave away is locked until its owner unlocks it.
//!
//! The budget is a Gaussian-DP filter in integer units (Smith & Thakurta 2022), see
//! [`conclave_common::accounting::PrivacyFilter`]; an analyst's cap and a job's own lie inside the data's budget. There are
//! no refunds.
//!
//! [`Durability::Strict`] syncs every charge before its answer is computed and every answer before it is sent.
//! [`Durability::Reserve`] syncs a block of charge ahead and its answers later: after a crash the block counts as spent to
//! its last unit.
//!
//! A failed write or sync is final: the ledger is [halted](LedgerError::Halted) for the rest of the process, because
//! after a failed sync nobody can know what the disk holds. The tables are described in `party/docs/ledger-schema.md`.

mod backup;
mod behind;
mod block_opened;
mod charge;
mod components;
mod convert;
mod delta_reserve;
mod entry;
mod error;
pub mod events;
pub mod export;
mod feed;
mod format;
mod handle;
mod head;
mod ids;
mod index;
mod insert;
pub(crate) mod inspect;
mod job_history;
mod job_totals;
mod jobs;
mod listing;
mod lock;
mod masks;
mod open;
mod owner_actions;
mod place;
mod query;
mod receipt;
mod release;
mod releases_view;
pub(crate) mod report;
pub(crate) mod report_masked;
mod reserve;
mod reserve_act;
mod sampled;
mod schema;
mod secret;
mod settings;
mod state;
mod unwritten;
mod verify;
mod writer;
mod wrong;

pub(crate) use backup::backup;
pub use charge::{ChargeOutcome, Grant, Refusal};
pub(crate) use components::{are_masked, are_stored};
pub(crate) use delta_reserve::{reserve, reserve_units, written};
pub use error::LedgerError;
pub(crate) use events::RosterMember;
pub use handle::{DataStanding, Ledger};
pub use head::Head;
pub(crate) use inspect::{RECENTLY, inspect};
pub(crate) use job_history::{Charged, Entered, JobReader};
pub use jobs::JobEntry;
pub(crate) use listing::{Listed, Listing, list};
pub use query::{Digest, Masked, QueryContent, QueryKey};
pub use receipt::{ChargeReceipt, Recorded};
pub use release::{ChargedChoice, ChargedNoise, Release, prepare_choice, sample_noise};
pub(crate) use report::{Report, report, report_kept};
pub(crate) use report_masked::{IfAllCollude, MaskedJob, MaskedMember, ended_by_unlocks};
pub(crate) use secret::Pieces;
pub(crate) use secret::SECRET_FILE;
pub use secret::Secret;
pub use settings::{Durability, LedgerSettings, RESERVE_BLOCK};
pub use state::Masks;

#[cfg(any(test, feature = "test-util"))]
mod tests;
#[cfg(any(test, feature = "test-util"))]
pub use tests::to_former;
