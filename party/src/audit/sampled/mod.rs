//! The audit of releases over hidden samples: a block's worth of them in both worlds, many times over, and the law of what is answered.
//!
//! A block claims that all of its releases together are covered, at every epsilon, by a Gaussian release of its `mu` and an event of its part
//! of the reserve. The best test of the two worlds bounds from below what was given, as for any audit. Beside it the answers' own law is
//! tried on records whose parts are known: a sample that is used in two releases, or whose size is told, shows there at once. And what one
//! record adds is measured to the last digit, under noise that is known: a length that is held to in floats alone shows there.

mod design;
mod exact;
mod law;
#[cfg(test)]
mod tests;

use std::path::Path;

use conclave_common::accounting::{PrivacyUnit, SamplingProbability};
use serde::Serialize;

use super::run::Folder;
use super::statistics::Samples;
use super::world::World;
use crate::answer::sandbox::Sandbox;
use design::{DELTA, Design};

/// Puts a fault into a sandbox, where a test plants one.
type Prepare = dyn Fn(&mut Sandbox) + Sync;

/// What is released over the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Log likelihood ratios of a step.
    Ratios,
    /// Gradients of two parameters, at a point.
    Gradients,
}

/// What to audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAudit {
    pub(crate) asked: Asked,
    pub(crate) unit: PrivacyUnit,
    pub(crate) probability: SamplingProbability,
    /// Releases of a block, 1 to 64: all of one job.
    pub(crate) releases: u32,
    /// Replicates in each of the two worlds.
    pub(crate) replicates: u64,
}

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

    /// Messages of a job: as near as can be to as many as each has releases, so that both what they have in common and what those of one
    /// have would show.
    fn messages(&self) -> u32 {
        let root = self.releases.isqrt().max(1);
        let each = (1..=root).rev().find(|each| self.releases.is_multiple_of(*each));
        self.releases / each.unwrap_or(1)
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
fn checks(design: &Design, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
    Ok([design.law(folder, prepare)?, design.wild(folder, prepare)?, design.exact(folder, prepare)?].concat())
}
