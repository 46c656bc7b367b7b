//! Runs an audit: simulates a budget's worth of queries in both worlds, many times over, and bounds the actual mu.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conclave_privacy::accounting::{Budget, gaussian_dp};
use conclave_privacy::mechanism::Sensitivity;

use super::report::Report;
use super::statistics::{Bounds, Samples};
use super::world::{Design, NoiseParties, ReplicateRunner, World};
use super::{checks, kinds};
use conclave_vault::answer::sandbox::Sandbox;

/// Settings of an audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Audit {
    /// The budget that each replicate spends, with its unit of privacy.
    pub(crate) budget: Budget,
    /// Replicates in each of the two worlds, at least [`LEAST`].
    pub(crate) replicates: u64,
    /// Queries per replicate.
    pub(crate) queries: u32,
    /// Noise standard deviation of each query, in log-likelihood units.
    pub(crate) noise_sd: f64,
    /// The parties whose noise protects and sets the price.
    pub(crate) noise_parties: NoiseParties,
}

/// Minimum number of replicates for a meaningful bound.
pub(crate) const LEAST: u64 = 1000;

impl Audit {
    /// Runs the audit.
    ///
    /// # Errors
    /// Returns a sentence if the budget, the disk or the operating system does not allow the audit.
    pub(crate) fn run(&self) -> Result<Report, String> {
        self.run_prepared(Design::new(self.budget, (self.queries, self.noise_sd), self.noise_parties)?, &|_| {})
    }

    /// Runs the audit; `prepare` modifies every sandbox before it answers.
    pub(super) fn run_prepared(&self, design: Design, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Report, String> {
        let began = Instant::now();
        let folder = Folder::new()?;
        let mut findings = checks::run(&design, &folder.0, prepare)?;
        findings.extend(kinds::check(design.unit, Sensitivity::units)?.1);
        let samples = self.sample(&design, &folder.0, prepare, &mut findings)?;
        let bounds = samples.bounds(self.budget.delta);
        if bounds.mu_lower_verdict > design.mu_claimed {
            findings.push(format!(
                "the released numbers reveal more than claimed: mu is at least {:.4} with 99.9% confidence, claimed {:.4}",
                bounds.mu_lower_verdict, design.mu_claimed
            ));
        }
        Ok(self.report(&design, &bounds, samples, findings, began.elapsed().as_secs_f64()))
    }

    fn report(&self, design: &Design, bounds: &Bounds, samples: Samples, findings: Vec<String>, seconds: f64) -> Report {
        let Budget { epsilon, delta, .. } = self.budget;
        let epsilon = if self.noise_parties.all_collude { gaussian_dp::epsilon(design.mu_claimed, delta) } else { epsilon };
        Report {
            holds: findings.is_empty(),
            mu_claimed: design.mu_claimed,
            mu_charged: design.mu_charged,
            mu_lower: bounds.mu_lower,
            mu_lower_999: bounds.mu_lower_verdict,
            mu_estimate: bounds.mu_estimate,
            epsilon_claimed: epsilon,
            delta,
            epsilon_lower: bounds.epsilon_lower,
            epsilon_at_mu_lower: if bounds.mu_lower > 0.0 { gaussian_dp::epsilon(bounds.mu_lower, delta) } else { 0.0 },
            honest: self.noise_parties.priced.get(),
            all_collude: self.noise_parties.all_collude,
            replicates: self.replicates,
            queries: design.queries,
            false_positives: bounds.errors.false_positives,
            false_negatives: bounds.errors.false_negatives,
            findings,
            seconds,
            samples: Some(samples.into()),
            threshold: bounds.errors.threshold,
        }
    }

    /// Runs the replicates of both worlds on all processors.
    fn sample(
        &self,
        design: &Design,
        folder: &Path,
        prepare: &(dyn Fn(&mut Sandbox) + Sync),
        findings: &mut Vec<String>,
    ) -> Result<Samples, String> {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64).min(self.replicates);
        let wrong = AtomicU64::new(0);
        let worker = |thread: u64| -> Result<(Samples, Option<&'static str>), String> {
            let share = self.replicates / threads + u64::from(thread < self.replicates % threads);
            let mut first = None;
            let mut simulate = |world: World, name: &str| -> Result<Vec<f64>, String> {
                let folder = folder.join(format!("{name}-{thread}"));
                std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
                let mut runner = ReplicateRunner::new(design, design.shard(world), &folder, prepare);
                (0..share)
                    .map(|number| {
                        let replicate = runner.replicate(number)?;
                        if let Some(finding) = replicate.finding {
                            wrong.fetch_add(1, Ordering::Relaxed);
                            first.get_or_insert(finding);
                        }
                        Ok(replicate.statistic)
                    })
                    .collect()
            };
            let samples = Samples { without: simulate(World::Without, "without")?, with: simulate(World::With, "with")? };
            Ok((samples, first))
        };
        let parts = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
            workers.into_iter().map(|w| w.join().map_err(|_| "a replicate panicked".to_owned())?).collect::<Result<Vec<_>, _>>()
        })?;
        let mut samples = Samples { without: Vec::new(), with: Vec::new() };
        let mut first = None;
        for (part, finding) in parts {
            samples.without.extend(part.without);
            samples.with.extend(part.with);
            first = first.or(finding);
        }
        if let Some(finding) = first {
            findings.push(format!("{finding} ({} of {} replicates)", wrong.into_inner(), 2 * self.replicates));
        }
        Ok(samples)
    }
}

/// A folder for the ledgers, in memory if possible; removed after the audit.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, String> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        static AUDITS: AtomicU64 = AtomicU64::new(0);
        let number = AUDITS.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("conclave-audit-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It holds simulated records only: a remainder is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
