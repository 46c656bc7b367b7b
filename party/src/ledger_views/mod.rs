//! Views of a ledger for its owner: reports, listings, exports and backups. Nothing here changes a ledger.

mod approvals;
mod backup;
mod blocks;
pub mod export;
mod given_up;
pub mod inspect;
mod job_history;
mod job_totals;
mod known_data;
mod listing;
mod moment;
pub(crate) mod permit;
pub mod report;
mod report_masked;

pub(crate) use approvals::{Approval, approvals, differences};
pub(crate) use backup::backup;
pub(crate) use given_up::GivenUp;
pub(crate) use inspect::{RECENTLY, inspect};
pub(crate) use job_history::{Charged, Entered, JobReader};
pub(crate) use job_totals::{JobRow, job_rows};
pub(crate) use listing::{Listed, Listing, list};
pub(crate) use moment::{CLOCK, settled_ms};
pub(crate) use report::{Report, Units, report, report_kept};
pub(crate) use report_masked::{IfAllCollude, MaskedJob, MaskedMember};

#[cfg(test)]
mod tests;
