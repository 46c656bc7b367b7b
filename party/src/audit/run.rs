//! An audit plays a budget's worth of queries in both worlds, many times over, and bounds the mu that was
//! given.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conclave_privacy::accounting::{Budget, gaussian_dp};

use super::checks;
use super::report::Report;
use super::statistics::{Bounds, Samples};
use super::world::{Company, Design, Theatre, World};
use conclave_vault::answer::sandbox::Sandbox;

/// What to audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Audit {
    /// The budget that each replicate spends, and what it protects.
    pub(crate) budget: Budget,
    /// Replicates in each of the two worlds, at least [`LEAST`].
    pub(crate) replicates: u64,
    /// Questions of a replicate.
    pub(crate) questions: u32,
    /// Noise standard deviation of each, in log-likelihood units.
    pub(crate) noise_sd: f64,
    /// Whose noise protects, and by whose it is priced.
    pub(crate) company: Company,
}

/// Fewer replicates give no bound worth the name.
pub(crate) const LEAST: u64 = 1000;

impl Audit {
    /// Runs the audit.
    ///
    /// # Errors
    /// A sentence: what the budget, the disk or the operating system did not allow.
    pub(crate) fn run(&self) -> Result<Report, String> {
        self.run_prepared(Design::new(self.budget, (self.questions, self.noise_sd), self.company)?, &|_| {})
    }

    /// As [`Audit::run`]; `prepare` sees every sandbox before it answers.
    pub(super) fn run_prepared(&self, design: Design, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Report, String> {
        let began = Instant::now();
        let folder = Folder::new()?;
        let mut findings = checks::run(&design, &folder.0, prepare)?;
        let samples = self.sample(&design, &folder.0, prepare, &mut findings)?;
        let bounds = samples.bounds(self.budget.delta);
        if bounds.mu_lower_verdict > design.mu_claimed {
            findings.push(format!(
                "the released numbers tell more than is claimed: mu is at least {:.4} with 99.9% confidence, claimed {:.4}",
                bounds.mu_lower_verdict, design.mu_claimed
            ));
        }
        Ok(self.report(&design, &bounds, samples, findings, began.elapsed().as_secs_f64()))
    }

    fn report(&self, design: &Design, bounds: &Bounds, samples: Samples, findings: Vec<String>, seconds: f64) -> Report {
        let Budget { epsilon, delta, .. } = self.budget;
        let epsilon = if self.company.all_collude { gaussian_dp::epsilon(design.mu_claimed, delta) } else { epsilon };
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
            honest: self.company.priced.get(),
            all_collude: self.company.all_collude,
            replicates: self.replicates,
            queries: design.questions,
            false_positives: bounds.errors.false_positives,
            false_negatives: bounds.errors.false_negatives,
            findings,
            seconds,
            samples: Some(samples.into()),
            threshold: bounds.errors.threshold,
        }
    }

    /// Replicates of both worlds, spread over the processors.
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
            let mut play = |world: World, name: &str| -> Result<Vec<f64>, String> {
                let folder = folder.join(format!("{name}-{thread}"));
                std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
                let mut theatre = Theatre::new(design, design.shard(world), &folder, prepare);
                (0..share)
                    .map(|number| {
                        let replicate = theatre.replicate(number)?;
                        if let Some(finding) = replicate.finding {
                            wrong.fetch_add(1, Ordering::Relaxed);
                            first.get_or_insert(finding);
                        }
                        Ok(replicate.statistic)
                    })
                    .collect()
            };
            let samples = Samples { without: play(World::Without, "without")?, with: play(World::With, "with")? };
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

/// A folder for the ledgers, in memory where the system has a place for that; gone when the audit is done.
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
        // Made-up records only; nothing is lost or told by what remains.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
