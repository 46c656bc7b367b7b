//! Measures the delay of a job's replies: made-up records, the queries whose answers take longest, and their times in a sandbox.

mod measure;
mod rehearsal;
mod worst_case_step;

use std::path::Path;

use conclave_vault::ports::{DelayMeter, JobDelay, MeteredJob, Unmeasured};

/// Measures answers on made-up records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxMeter;

impl DelayMeter for SandboxMeter {
    fn measure(&self, job: &MeteredJob<'_>, folder: &Path) -> Result<JobDelay, Unmeasured> {
        measure::measure(&rehearsal::Rehearsal(job), folder)
    }
}
