//! The audit of releases over hidden samples: a block's worth of them in both worlds, many times over, and the law of what is answered.
//!
//! A block claims that all of its releases together are covered, at every epsilon, by a Gaussian release of its `mu` and an event of its part
//! of the reserve. The best test of the two worlds bounds from below what was given, as for any audit. Beside it the answers' own law is
//! tried on records whose parts are known: a sample that is used in two releases, or whose size is told by a scale, shows there at once.

use std::path::Path;

use conclave_common::accounting::{Adjacency, Budget, PrivacyUnit, SamplingProbability, gaussian_dp, mu_squared};
use conclave_common::job::{Algorithm, BlockSpec, JobSpec};
use conclave_common::mechanism::{QueryKind, Sensitivity};
use conclave_common::model::{ModelData, Persons};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use serde::Serialize;

use super::run::Folder;
use super::statistics::Samples;
use super::world::World;
use crate::answer::sandbox::Sandbox;

/// A unit's part of a release at most, in log-likelihood units; the noise is twice that.
const CLIP: f64 = 0.5;
const RELATIVE: f64 = 0.5;
/// Units beside the one that the worlds differ in.
const OTHERS: u64 = 40;
/// The part of delta that blocks may take, in units of 2^-60: 1e-9.
const RESERVE_UNITS: u64 = 1_152_921_504;
const DELTA: f64 = 1e-6;
/// mu² that one ledger takes, and the most replicates.
const MU_SQUARED_PER_LEDGER: f64 = 800.0;
const REPLICATES_PER_LEDGER: u64 = 1000;
/// Messages over which the law of answers is tried.
const MESSAGES: u64 = 600;
/// Standard errors beyond which a figure of the law is a finding: by chance less than once in 10^8 audits.
const FAR: f64 = 6.0;

/// What to audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAudit {
    pub(crate) unit: PrivacyUnit,
    pub(crate) probability: SamplingProbability,
    /// Releases of a block, 1 to 64: all of one message.
    pub(crate) releases: u32,
    /// Replicates in each of the two worlds.
    pub(crate) replicates: u64,
}

/// What the audit found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SampledReport {
    /// Whether nothing speaks against the claim.
    pub(crate) holds: bool,
    pub(crate) probability: f64,
    pub(crate) releases: u32,
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

/// The job, and what a block of it claims.
struct Block<'a> {
    audit: &'a SampledAudit,
    spec: JobSpec,
    mu: f64,
    epsilon: f64,
}

impl SampledAudit {
    /// Runs the audit; `prepare` sees every sandbox before it answers.
    ///
    /// # Errors
    /// A sentence: what the operating system or the accounting did not allow.
    pub(crate) fn run(&self, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<SampledReport, String> {
        let block = self.block()?;
        let folder = Folder::new()?;
        let mut findings = block.law(folder.path(), prepare)?;
        findings.extend(block.wild(folder.path(), prepare)?);
        let play = |world, name: &str| block.play(world, &folder.path().join(name), prepare);
        let (without, with) = std::thread::scope(|scope| {
            let without = scope.spawn(|| play(World::Without, "without"));
            let with = play(World::With, "with");
            (without.join().unwrap_or_else(|_| Err("a replicate panicked".into())), with)
        });
        let bounds = Samples { without: without?, with: with? }.bounds(DELTA);
        if bounds.mu_lower_verdict > block.mu || bounds.epsilon_lower_verdict > block.epsilon {
            findings.push(format!(
                "the released numbers tell more than is claimed: mu is at least {:.4} and epsilon {:.4} with 99.9% confidence, claimed {:.4} \
                 and {:.4}",
                bounds.mu_lower_verdict, bounds.epsilon_lower_verdict, block.mu, block.epsilon
            ));
        }
        Ok(SampledReport {
            holds: findings.is_empty(),
            probability: self.probability.get(),
            releases: self.releases,
            replicates: self.replicates,
            mu_claimed: block.mu,
            mu_lower: bounds.mu_lower,
            mu_lower_999: bounds.mu_lower_verdict,
            delta: DELTA,
            epsilon_claimed: block.epsilon,
            epsilon_lower: bounds.epsilon_lower,
            findings,
        })
    }

    fn block(&self) -> Result<Block<'_>, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let limit = f64::from(self.unit.records_per_person().unwrap_or(1));
        let noise = CLIP * limit / RELATIVE;
        let job = format!(
            "name = \"audit\"\nalgorithm = \"penalty\"\nparties = [\"rehearsal\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"x\"\n\
             sd = 1.0\n[columns]\nx = {{ min = -1, max = 1 }}\n[prior]\ndefault = \"normal(0, 1)\"\n[sampler]\nchains = {}\n\
             draws = 10\nforce = true\n[privacy]\nepsilon = 8.0\ndelta = {DELTA:?}\nclip = {CLIP:?}\nnoise_sd = {noise:?}\n",
            self.releases
        );
        let mut spec = JobSpec::parse(&job).map_err(|e| text(&e))?;
        spec.algorithm = Algorithm::Barker;
        spec.sampler.batch = self.probability;
        // As many blocks as leave one the releases of a message.
        let blocks = (spec.planned_releases() / u64::from(self.releases)).max(1);
        let reserve_units = RESERVE_UNITS * blocks;
        spec.privacy.blocks = Some(BlockSpec { blocks, reserve_units });
        spec.privacy.budget = spec.privacy.budget.reserving(reserve_units);
        let charged = Sensitivity::from_units((CLIP * limit * 2.0_f64.powi(32)) as u64).map_err(|e| text(&e))?;
        let terms = spec.block_terms(QueryKind::SampledRatio, self.unit, (charged, spec.privacy.noise));
        let charge = terms.ok_or("a job without blocks")?.charge().map_err(|e| text(&e))?;
        let mu = mu_squared(charge.covering_units).sqrt();
        Ok(Block { audit: self, spec, mu, epsilon: gaussian_dp::epsilon(mu, DELTA - charge.reserve()) })
    }
}

impl Block<'_> {
    /// Others at a value whose ratio is this part of the clip, and the unit in which the worlds differ.
    fn shard(&self, others: f64, own: Option<f64>) -> ModelData {
        let each = self.audit.unit.records_per_person().unwrap_or(1) as usize;
        let units: Vec<f64> = std::iter::repeat_n(others, OTHERS as usize).chain(own).collect();
        let outcome: Vec<f64> = units.iter().flat_map(|value| std::iter::repeat_n(*value, each)).collect();
        let ends = (1..=units.len()).map(|person| person * each).collect();
        let persons = self.audit.unit.records_per_person().and_then(|limit| Persons::new(ends, limit));
        ModelData { outcome, persons, ..ModelData::default() }
    }

    /// Others add exactly nothing to either world.
    fn of_world(&self, world: World) -> ModelData {
        let own = match (world, self.audit.unit.adjacency) {
            (World::With, _) => Some(1.0),
            (World::Without, Adjacency::Replace) => Some(-1.0),
            (World::Without, Adjacency::AddRemove) => None,
        };
        self.shard(0.0, own)
    }

    /// A message of a block's releases, each of a step along which a record at 1 adds the clip, one at -1 takes it off, and one at 0 adds nothing.
    fn message(&self, job: &str, iteration: u64) -> v1::Query {
        let proposal = |chain| v1::Proposal {
            chain,
            from: vec![-CLIP],
            to: vec![CLIP],
            noise_scale: self.spec.privacy.noise.units(),
            kind: QueryKind::SampledRatio.code(),
        };
        let proposals = (0..self.audit.releases).map(proposal).collect();
        v1::Query { job: job.to_owned(), iteration, proposals, attempt: 0 }
    }

    fn sandbox(&self, folder: &Path, messages: u64) -> Result<Sandbox, String> {
        std::fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mu = self.mu * (1.1 * messages as f64 + 1.0).sqrt();
        let budget = Budget::new(gaussian_dp::epsilon(mu, DELTA), DELTA).map_err(|e| e.to_string())?;
        Sandbox::new(folder, budget.of(self.audit.unit).reserving(1 << 50))
    }

    fn per_ledger(&self) -> u64 {
        ((MU_SQUARED_PER_LEDGER / (self.mu * self.mu)) as u64).clamp(1, REPLICATES_PER_LEDGER)
    }

    /// What many messages, each of a job of its own, release over these records; in noise standard deviations.
    fn released(
        &self,
        (data, messages): (&ModelData, u64),
        folder: &Path,
        prepare: &(dyn Fn(&mut Sandbox) + Sync),
    ) -> Result<Vec<Vec<f64>>, String> {
        std::fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let (per_ledger, noise) = (self.per_ledger(), self.spec.privacy.noise.units() as f64);
        let mut released = Vec::new();
        for first in (0..messages).step_by(per_ledger as usize) {
            let ledger = folder.join(first.to_string());
            let mut sandbox = self.sandbox(&ledger, per_ledger)?;
            sandbox.keep_noise(&self.spec);
            for number in first..messages.min(first + per_ledger) {
                let job = format!("replicate-{number}");
                sandbox.put_on(&job, &self.spec, data.clone())?;
                prepare(&mut sandbox);
                let answer = sandbox.answer(self.message(&job, 0));
                if answer.status != Some(AnswerStatus::Released.to_wire()) {
                    return Err(format!("a release of a block was refused with status {:?}", answer.status));
                }
                sandbox.take_off(&job);
                released.push(answer.releases.iter().map(|integer| *integer as f64 / noise).collect());
            }
            drop(sandbox);
            let _ = std::fs::remove_dir_all(&ledger);
        }
        Ok(released)
    }

    /// The log likelihood ratio of the two worlds for each replicate.
    fn play(&self, world: World, folder: &Path, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Vec<f64>, String> {
        let q = self.audit.probability.get();
        let other = if self.audit.unit.adjacency == Adjacency::Replace { -RELATIVE } else { 0.0 };
        // Over the density of noise alone.
        let beside = |x: f64, shift: f64| 1.0 - q + q * (shift * (x - 0.5 * shift)).exp();
        let ratio = |x: &f64| (beside(*x, RELATIVE) / beside(*x, other)).ln();
        let released = self.released((&self.of_world(world), self.audit.replicates), folder, prepare)?;
        Ok(released.iter().map(|block| block.iter().map(ratio).sum()).collect())
    }

    /// Whether answers over units that each add the clip, or what is left of it at half, have a Poisson sample's mean and variance, and whether those
    /// of one message have nothing in common.
    fn law(&self, folder: &Path, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Vec<String>, String> {
        let released = self.released((&self.shard(1.0, None), MESSAGES), &folder.join("law"), prepare)?;
        let (q, n, each) = (self.audit.probability.get(), OTHERS as f64, f64::from(self.audit.releases));
        let (mean, variance) = (q * n * RELATIVE, 1.0 + q * (1.0 - q) * n * RELATIVE * RELATIVE);
        let all: Vec<f64> = released.iter().flatten().map(|x| x - mean).collect();
        let sums: Vec<f64> = released.iter().map(|block| block.iter().map(|x| x - mean).sum()).collect();
        let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let square_of = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        let mut findings = Vec::new();
        let mut hold = |what: &str, found: f64, expected: f64, error: f64| {
            if (found - expected).abs() > FAR * error {
                findings.push(format!("over known records {what} is {found:.4} in place of {expected:.4}"));
            }
        };
        let count = all.len() as f64;
        hold("the mean of answers, less what it should be,", mean_of(&all), 0.0, (variance / count).sqrt());
        // A fourth moment is at most a little above the normal one's, of all as of each message's sum.
        hold("the variance of answers", square_of(&all), variance, variance * (4.0 / count).sqrt());
        let messages = sums.len() as f64;
        hold("the variance of a message's sum", square_of(&sums), each * variance, each * variance * (4.0 / messages).sqrt());
        Ok(findings)
    }

    /// Whether a record that may hold anything moves an answer beyond what clamped records and noise add up to.
    fn wild(&self, folder: &Path, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Vec<String>, String> {
        let mut findings = Vec::new();
        // In a sample of some release but once in 10^9 times.
        let out = (1.0 - self.audit.probability.get()).ln() * f64::from(self.audit.releases);
        let messages = (-21.0 / out).ceil().max(1.0) as u64;
        let far = (OTHERS + 1) as f64 * RELATIVE + 12.0;
        for (at, wild) in [f64::NAN, f64::INFINITY, -1e300, 1e300].into_iter().enumerate() {
            let released =
                self.released((&self.shard(0.0, Some(wild)), messages), &folder.join(format!("wild-{at}")), prepare)?;
            if released.iter().flatten().any(|x| x.abs() > far) {
                findings.push(format!(
                    "with a record of {wild}, a released number is beyond what clamped records and noise can add up to"
                ));
            }
        }
        Ok(findings)
    }
}
