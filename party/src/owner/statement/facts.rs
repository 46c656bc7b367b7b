//! Inputs of a statement.

use crate::ledger_views::Report;
use crate::owner::papers::Papers;
use crate::owner::totals::Releases;
use crate::owner::worst_case::WorstCase;

/// Inputs of a statement besides the job itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) report: &'a Report,
    /// The job's worst case, if it can be computed.
    pub(crate) worst: Option<&'a WorstCase>,
    pub(crate) releases: Option<&'a Releases>,
    /// The particulars of the party, if they are stated.
    pub(crate) papers: Option<&'a Papers>,
}
