//! The audited job, its simulated records, and a block of its queries sent through the party's own answer path.

use std::path::Path;

use conclave_common::job::{Algorithm, JobSpec};
use conclave_privacy::accounting::{Adjacency, Budget, gaussian_dp, mu_squared};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::{ModelData, Persons};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;

use super::settings::{Prepare, SampledAudit, SampledKind};
use crate::audit::world::World;
use conclave_vault::answer::sandbox::Sandbox;

/// Maximum contribution of a unit to a ratio, in log-likelihood units.
pub(super) const CLIP: f64 = 0.5;
/// Maximum contribution of a unit to a release, in noise standard deviations.
pub(super) const RELATIVE: f64 = 0.5;
/// Units besides the one in which the worlds differ.
pub(super) const OTHERS: u64 = 40;
/// Reserve of delta for blocks, in units of 2^-60: 1e-9.
const RESERVE_UNITS: u64 = 1_152_921_504;
pub(super) const DELTA: f64 = 1e-6;
/// Maximum mu² on one ledger.
const MU_SQUARED_PER_LEDGER: f64 = 800.0;
/// Maximum replicates on one ledger.
const REPLICATES_PER_LEDGER: u64 = 1000;
/// Parameters of a gradient.
pub(super) const PARAMETERS: usize = 2;
/// Frame of the gradient: two rows, neither parallel to an axis nor orthogonal, and no shift. Half the sum of its columns,
/// (0.6, 0.8), has the maximum length of a record's vector, up to the slack of its rounding; longer vectors are shortened.
pub(super) const FRAME: [f64; 6] = [1.5, -0.3, 0.4, 1.2, 0.0, 0.0];

/// One simulated record: its outcome and, for a gradient, both predictors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) outcome: f64,
    pub(super) predictors: [f64; 2],
}

/// The releases of a replicate, in noise standard deviations.
pub(super) struct Job {
    /// Component of each release along the direction in which the differing record moves it.
    pub(super) along: Vec<f64>,
    /// Component of a gradient orthogonal to that, which no record of the worlds moves; empty for ratios.
    pub(super) across: Vec<f64>,
}

/// The job, and the claim of one of its blocks.
pub(super) struct Design {
    pub(super) audit: SampledAudit,
    pub(super) spec: JobSpec,
    pub(super) kind: QueryKind,
    pub(super) noise: NoiseScale,
    pub(super) mu: f64,
    pub(super) epsilon: f64,
}

impl Design {
    pub(super) fn new(audit: SampledAudit) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let limit = u64::from(audit.unit.records_per_person().unwrap_or(1));
        let (kind, record) = match audit.kind {
            SampledKind::Ratios => (QueryKind::SampledRatio, (CLIP * 2.0_f64.powi(32)) as u64),
            SampledKind::Gradients => (QueryKind::SampledGradient { parameters: PARAMETERS as u32 }, GRADIENT_UNITS),
        };
        let charged = Sensitivity::from_units(record * limit).map_err(|e| text(&e))?;
        let noise = NoiseScale::from_units((charged.units() as f64 / RELATIVE) as u64).map_err(|e| text(&e))?;
        let mut spec = JobSpec::parse(&job_toml(audit, noise)).map_err(|e| text(&e))?;
        (spec.sampler.batch, spec.privacy.noise) = (audit.probability, noise);
        if audit.kind == SampledKind::Ratios {
            // An algorithm whose own limits on noise apply to chains only, and no chain is run.
            spec.algorithm = Algorithm::Barker;
        }
        // The number of blocks at which one block has the releases of a job.
        let blocks = (spec.planned_releases() / u64::from(audit.releases)).max(1);
        let reserve_units = RESERVE_UNITS * blocks;
        spec.privacy.blocks = Some(blocks);
        spec.privacy.budget = spec.privacy.budget.reserving(reserve_units);
        let terms = spec.block_terms(kind, audit.unit, (charged, noise)).ok_or("a job without blocks")?;
        let charge = terms.charge().map_err(|e| text(&e))?;
        let mu = mu_squared(charge.covering_units).sqrt();
        Ok(Self { audit, spec, kind, noise, mu, epsilon: gaussian_dp::epsilon(mu, DELTA - charge.reserve()) })
    }

    /// Returns the records of these units, each with its maximum number of equal records.
    pub(super) fn data(&self, units: &[Record]) -> ModelData {
        let each = self.audit.unit.records_per_person().unwrap_or(1) as usize;
        let records: Vec<Record> = units.iter().flat_map(|unit| std::iter::repeat_n(*unit, each)).collect();
        let ends = (1..=units.len()).map(|person| person * each).collect();
        let persons = self.audit.unit.records_per_person().and_then(|limit| Persons::new(ends, limit));
        let predictors = match self.audit.kind {
            SampledKind::Ratios => Vec::new(),
            SampledKind::Gradients => {
                (0..PARAMETERS).map(|j| records.iter().map(|record| record.predictors[j]).collect()).collect()
            }
        };
        ModelData { outcome: records.iter().map(|record| record.outcome).collect(), predictors, persons, ..ModelData::default() }
    }

    /// Returns a record that contributes this share of the maximum along the observed step or direction: 1, 0 or -1.
    pub(super) fn at(&self, part: f64) -> Record {
        match self.audit.kind {
            SampledKind::Ratios => Record { outcome: part, predictors: [0.0; PARAMETERS] },
            SampledKind::Gradients => Record { outcome: 1.0, predictors: [part; PARAMETERS] },
        }
    }

    /// Returns the shard of the other units and, if given, the unit in which the worlds differ.
    pub(super) fn shard(&self, others: Record, own: Option<Record>) -> ModelData {
        let units: Vec<Record> = std::iter::repeat_n(others, OTHERS as usize).chain(own).collect();
        self.data(&units)
    }

    /// Returns a world's shard; the other units contribute exactly zero.
    fn of_world(&self, world: World) -> ModelData {
        let own = match (world, self.audit.unit.adjacency) {
            (World::With, _) => Some(self.at(1.0)),
            (World::Without, Adjacency::Replace) => Some(self.at(-1.0)),
            (World::Without, Adjacency::AddRemove) => None,
        };
        self.shard(self.at(0.0), own)
    }

    /// Returns the points of a query. For ratios, a step along which records at 1, -1 and 0 contribute the clip, its negative and
    /// zero. For gradients, the origin, where a record's gradient is half of its predictors, and the frame.
    pub(super) fn points(&self) -> (Vec<f64>, Vec<f64>) {
        match self.audit.kind {
            SampledKind::Ratios => (vec![-CLIP], vec![CLIP]),
            SampledKind::Gradients => (vec![0.0; PARAMETERS], FRAME.to_vec()),
        }
    }

    /// Returns one message of a job's queries.
    fn message(&self, job: &str, iteration: u64) -> v1::Query {
        let (from, to) = self.points();
        let proposal = |chain| v1::Proposal {
            chain,
            from: from.clone(),
            to: to.clone(),
            noise_scale: self.noise.units(),
            kind: self.kind.code(),
        };
        v1::Query { job: job.to_owned(), iteration, proposals: (0..self.per_message()).map(proposal).collect(), attempt: 0 }
    }

    /// Returns the number of releases per message.
    pub(super) fn per_message(&self) -> u32 {
        self.audit.releases / self.audit.messages()
    }

    pub(super) fn sandbox(&self, folder: &Path, jobs: u64) -> Result<Sandbox, String> {
        std::fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mu = self.mu * (1.1 * jobs as f64 + 1.0).sqrt();
        let budget = Budget::new(gaussian_dp::epsilon(mu, DELTA), DELTA).map_err(|e| e.to_string())?;
        Sandbox::new(folder, budget.of(self.audit.unit).reserving(1 << 50))
    }

    fn per_ledger(&self) -> u64 {
        ((MU_SQUARED_PER_LEDGER / (self.mu * self.mu)) as u64).clamp(1, REPLICATES_PER_LEDGER)
    }

    /// Runs `jobs` jobs of one block each on these records and returns their releases.
    pub(super) fn released(&self, (data, jobs): (&ModelData, u64), folder: &Path, prepare: &Prepare) -> Result<Vec<Job>, String> {
        std::fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let per_ledger = self.per_ledger();
        let mut released = Vec::new();
        for first in (0..jobs).step_by(per_ledger as usize) {
            let ledger = folder.join(first.to_string());
            let mut sandbox = self.sandbox(&ledger, per_ledger)?;
            sandbox.keep_noise(&self.spec);
            for number in first..jobs.min(first + per_ledger) {
                let job = format!("replicate-{number}");
                sandbox.put_on(&job, &self.spec, data.clone())?;
                prepare(&mut sandbox);
                released.push(self.ask(&mut sandbox, &job)?);
                sandbox.take_off(&job);
            }
            drop(sandbox);
            let _ = std::fs::remove_dir_all(&ledger);
        }
        Ok(released)
    }

    fn ask(&self, sandbox: &mut Sandbox, job: &str) -> Result<Job, String> {
        let mut released = Job { along: Vec::new(), across: Vec::new() };
        for message in 0..u64::from(self.audit.messages()) {
            let answer = sandbox.answer(self.message(job, message));
            if answer.status != Some(AnswerStatus::Released.to_wire()) {
                return Err(format!("a release of a block was refused with status {:?}", answer.status));
            }
            let integers = self.per_message() as usize * self.kind.length();
            if answer.releases.len() != integers {
                return Err(format!("an answer has {} integers instead of {integers}", answer.releases.len()));
            }
            answer.releases.chunks(self.kind.length()).for_each(|release| self.take(release, &mut released));
        }
        Ok(released)
    }

    /// Adds a release in noise standard deviations, split along the direction of the differing record and orthogonal to it.
    fn take(&self, release: &[i64], job: &mut Job) {
        let sd = self.noise.units() as f64;
        match *release {
            [one] => job.along.push(one as f64 / sd),
            [one, other] => {
                let (one, other) = (one as f64 / sd, other as f64 / sd);
                // The frame's image of equal predictors.
                let (x, y) = (FRAME[0] + FRAME[1], FRAME[2] + FRAME[3]);
                let length = libm::hypot(x, y);
                job.along.push((x * one + y * other) / length);
                job.across.push((x * other - y * one) / length);
            }
            _ => {}
        }
    }

    /// Returns the log likelihood ratio of the two worlds for each replicate. For a vector, the component along the record's
    /// direction is sufficient: noise is isotropic, and no record moves the orthogonal component.
    pub(super) fn simulate(&self, world: World, folder: &Path, prepare: &Prepare) -> Result<Vec<f64>, String> {
        let q = self.audit.probability.get();
        let other = if self.audit.unit.adjacency == Adjacency::Replace { -RELATIVE } else { 0.0 };
        // Relative to the density of noise alone.
        let beside = |x: f64, shift: f64| 1.0 - q + q * libm::exp(shift * (x - 0.5 * shift));
        let ratio = |x: &f64| libm::log(beside(*x, RELATIVE) / beside(*x, other));
        let released = self.released((&self.of_world(world), self.audit.replicates), folder, prepare)?;
        Ok(released.iter().map(|job| job.along.iter().map(ratio).sum()).collect())
    }
}

/// Returns the job without sampling, which the design adds: the limits on noise and budget of sampling apply to chains.
fn job_toml(audit: SampledAudit, noise: NoiseScale) -> String {
    let (algorithm, model, columns) = match audit.kind {
        SampledKind::Ratios => ("penalty", "kind = \"gaussian_mean\"\noutcome = \"x\"\nsd = 1.0", "x = { min = -1, max = 1 }"),
        SampledKind::Gradients => (
            "sgld",
            "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"b\"]\nintercept = false",
            "y = { binary = true }\na = { min = -1, max = 1 }\nb = { min = -1, max = 1 }",
        ),
    };
    let noise = match audit.kind {
        SampledKind::Ratios => format!("clip = {CLIP:?}\nnoise_sd = {:?}\n", noise.sd()),
        SampledKind::Gradients => String::new(),
    };
    format!(
        "name = \"audit\"\nalgorithm = \"{algorithm}\"\nparties = [\"rehearsal\"]\n[model]\n{model}\n[columns]\n{columns}\n[prior]\n\
         default = \"normal(0, 1)\"\n[sampler]\nchains = {}\ndraws = 10\nforce = true\n[privacy]\nepsilon = 8.0\ndelta = {DELTA:?}\n{noise}",
        audit.releases
    )
}
