//! An audit of releases over samples: what is tried of single answers, and the replicates of both worlds.

use std::path::Path;

use serde::Serialize;

use super::asked::{Prepare, SampledAudit};
use super::design::{DELTA, Design};
use crate::audit::run::Folder;
use crate::audit::statistics::Samples;
use crate::audit::world::World;

/// What the audit found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SampledReport {
    /// Whether nothing speaks against the claim.
    pub(crate) holds: bool,
    /// In the words of a ledger.
    pub(crate) kind: String,
    pub(crate) probability: f64,
    pub(crate) releases: u32,
    /// In which a job asks them.
    pub(crate) messages: u32,
    pub(crate) replicates: u64,
    /// Of the Gaussian release that covers a block.
    pub(crate) mu_claimed: f64,
    /// Lower bound at 95% confidence.
    pub(crate) mu_lower: f64,
    /// The same at 99.9%: above the claim, it is a finding.
    pub(crate) mu_lower_999: f64,
    pub(crate) delta: f64,
    /// At that delta, the block's part of the reserve taken off it.
    pub(crate) epsilon_claimed: f64,
    /// Lower bound from the error rates alone, at 95% confidence.
    pub(crate) epsilon_lower: f64,
    /// What is wrong, in sentences.
    pub(crate) findings: Vec<String>,
}

impl SampledAudit {
    /// Runs the audit; `prepare` sees every sandbox before it answers.
    ///
    /// # Errors
    /// A sentence: what the operating system or the accounting did not allow.
    pub(crate) fn run(&self, prepare: &Prepare) -> Result<SampledReport, String> {
        let design = Design::new(*self)?;
        let folder = Folder::new()?;
        let mut findings = checks(&design, folder.path(), prepare)?;
        let bounds = self.samples(&design, folder.path(), prepare)?.bounds(DELTA);
        if bounds.mu_lower_verdict > design.mu || bounds.epsilon_lower_verdict > design.epsilon {
            findings.push(format!(
                "the released numbers tell more than is claimed: mu is at least {:.4} and epsilon {:.4} with 99.9% confidence, claimed {:.4} \
                 and {:.4}",
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

    /// The statistic in the replicates of both worlds, each on a processor of its own.
    fn samples(&self, design: &Design, folder: &Path, prepare: &Prepare) -> Result<Samples, String> {
        let play = |world, name: &str| design.play(world, &folder.join(name), prepare);
        let (without, with) = std::thread::scope(|scope| {
            let without = scope.spawn(|| play(World::Without, "without"));
            let with = play(World::With, "with");
            (without.join().unwrap_or_else(|_| Err("a replicate panicked".into())), with)
        });
        Ok(Samples { without: without?, with: with? })
    }
}

/// What no number of replicates would find, or many would be needed for.
pub(super) fn checks(design: &Design, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
    Ok([design.law(folder, prepare)?, design.wild(folder, prepare)?, design.exact(folder, prepare)?].concat())
}
