//! Runs an audit of subsampled releases: the checks of single answers, and the replicates of both worlds.

use std::path::Path;

use serde::Serialize;

use super::design::{DELTA, Design};
use super::settings::{Prepare, SampledAudit};
use crate::audit::run::Folder;
use crate::audit::statistics::Samples;
use crate::audit::world::World;

/// The audit's results.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SampledReport {
    /// True if there are no findings.
    pub(crate) holds: bool,
    /// Kind of query, as named in a ledger.
    pub(crate) kind: String,
    pub(crate) probability: f64,
    pub(crate) releases: u32,
    /// Messages in which a job sends its queries.
    pub(crate) messages: u32,
    pub(crate) replicates: u64,
    /// The mu of the Gaussian release that covers a block.
    pub(crate) mu_claimed: f64,
    /// Lower bound on mu at 95% confidence.
    pub(crate) mu_lower: f64,
    /// Lower bound at 99.9% confidence; above the claim it is a finding.
    pub(crate) mu_lower_999: f64,
    pub(crate) delta: f64,
    /// Epsilon at that delta less the block's share of the reserve.
    pub(crate) epsilon_claimed: f64,
    /// Lower bound on epsilon from the error rates only, at 95% confidence.
    pub(crate) epsilon_lower: f64,
    /// Findings, in sentences.
    pub(crate) findings: Vec<String>,
}

impl SampledAudit {
    /// Runs the audit; `prepare` modifies every sandbox before it answers.
    ///
    /// # Errors
    /// Returns a sentence if the operating system or the accounting does not allow the audit.
    pub(crate) fn run(&self, prepare: &Prepare) -> Result<SampledReport, String> {
        let design = Design::new(*self)?;
        let folder = Folder::new()?;
        let mut findings = checks(&design, folder.path(), prepare)?;
        let bounds = self.samples(&design, folder.path(), prepare)?.bounds(DELTA);
        if bounds.mu_lower_verdict > design.mu || bounds.epsilon_lower_verdict > design.epsilon {
            findings.push(format!(
                "the released numbers reveal more than claimed: mu is at least {:.4} and epsilon {:.4} with 99.9% confidence, \
                 claimed {:.4} and {:.4}",
                bounds.mu_lower_verdict, bounds.epsilon_lower_verdict, design.mu, design.epsilon
            ));
        }
        Ok(SampledReport {
            holds: findings.is_empty(),
            kind: design.kind.to_string(),
            probability: self.probability.get(),
            releases: self.releases,
            messages: self.messages(),
            replicates: self.replicates,
            mu_claimed: design.mu,
            mu_lower: bounds.mu_lower,
            mu_lower_999: bounds.mu_lower_verdict,
            delta: DELTA,
            epsilon_claimed: design.epsilon,
            epsilon_lower: bounds.epsilon_lower,
            findings,
        })
    }

    /// Returns the statistic in the replicates of both worlds, each on its own processor.
    fn samples(&self, design: &Design, folder: &Path, prepare: &Prepare) -> Result<Samples, String> {
        let simulate = |world, name: &str| design.simulate(world, &folder.join(name), prepare);
        let (without, with) = std::thread::scope(|scope| {
            let without = scope.spawn(|| simulate(World::Without, "without"));
            let with = simulate(World::With, "with");
            (without.join().unwrap_or_else(|_| Err("a replicate panicked".into())), with)
        });
        Ok(Samples { without: without?, with: with? })
    }
}

/// Runs the checks for faults that replicates would not find, or only in large numbers.
pub(super) fn checks(design: &Design, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
    Ok([design.law(folder, prepare)?, design.wild(folder, prepare)?, design.exact(folder, prepare)?].concat())
}
