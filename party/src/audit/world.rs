//! Two neighbouring made-up shards, the questions that tell them apart best, and a whole budget spent on them.

use std::path::{Path, PathBuf};

use conclave_common::accounting::{Adjacency, Budget, PrivacyFilter, PrivacyUnit, gaussian_dp, mu_squared};
use conclave_common::job::JobSpec;
use conclave_common::mechanism::{NoiseScale, STEP, Sensitivity, sensitivity};
use conclave_common::model::{Model, ModelData, Persons};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;

use crate::answer::sandbox::Sandbox;

/// Records, or persons, beside the one that the worlds differ in.
const OTHERS: usize = 20;
/// Replicates whose charges one ledger takes, at most; each has a job of its own, capped at the audited budget.
const REPLICATES_PER_LEDGER: u64 = 1000;
/// mu² of a ledger's own budget, at most: beyond, an epsilon can't be accounted for.
const MU_SQUARED_PER_LEDGER: f64 = 900.0;
/// Delta of the ledgers' own, larger budgets.
const LEDGER_DELTA: f64 = 1e-6;

/// What is audited: public constants, the same in both worlds.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    pub(crate) spec: JobSpec,
    pub(crate) unit: PrivacyUnit,
    /// The step of every question; odd ones are asked in reverse.
    half_step: f64,
    pub(crate) questions: u32,
    pub(crate) k_t: Sensitivity,
    /// What the cap admits, as mu.
    pub(crate) mu_claimed: f64,
    /// What one replicate is charged, as mu.
    pub(crate) mu_charged: f64,
}

/// Which world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// The record lies at one end of its range, or is not there.
    Without,
    /// The record lies at the other end.
    With,
}

impl Design {
    /// Questions that spend `cap` as fully as whole charges can, `questions` of them, at noise of standard deviation `sd`.
    pub(crate) fn new(cap: Budget, questions: u32, sd: f64) -> Result<Self, String> {
        Self::priced(cap, questions, sd, |model| model)
    }

    /// As [`Design::new`], with prices by what `plant` makes of the model.
    pub(crate) fn priced(
        cap: Budget,
        questions: u32,
        sd: f64,
        plant: impl Fn(Box<dyn Model>) -> Box<dyn Model>,
    ) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let spec = JobSpec::parse(&job_toml(cap, questions, sd)).map_err(|e| text(&e))?;
        let (unit, s) = (cap.unit, spec.privacy.noise);
        let limit = PrivacyFilter::new(&cap).map_err(|e| text(&e))?.limit_units();
        let model = plant(spec.build_model());
        // Charges go with the square of the step; the last hundredths of a percent are found by stepping down.
        let mu_each = mu_squared(limit).sqrt() / f64::from(questions).sqrt();
        let mut half_step = 0.5 * mu_each * s.sd() / unit.factor() as f64 / model.bound(&[-0.5], &[0.5]) * 1.000_001;
        for _ in 0..10_000 {
            let per_record = sensitivity(model.bound(&[-half_step], &[half_step]), None).map_err(|e| text(&e))?;
            let k_t = unit.sensitivity(per_record).map_err(|e| text(&e))?;
            let charge = unit.charge_units(k_t, s).map_err(|e| text(&e))?;
            let total = charge.checked_mul(u64::from(questions)).ok_or("the charge is too large")?;
            if total <= limit {
                let (mu_claimed, mu_charged) = (mu_squared(limit).sqrt(), mu_squared(total).sqrt());
                return Ok(Self { spec, unit, half_step, questions, k_t, mu_claimed, mu_charged });
            }
            half_step *= 1.0 - 1e-7;
        }
        Err("no step fits this budget".into())
    }

    /// Noise scale of every question.
    pub(crate) fn noise(&self) -> NoiseScale {
        self.spec.privacy.noise
    }

    /// Records on the model's scale; persons have as many as they may.
    pub(crate) fn shard(&self, world: World) -> ModelData {
        let limit = self.unit.records_per_person().unwrap_or(1) as usize;
        let mut outcome: Vec<f64> = (0..OTHERS * limit).map(|i| (i % 7) as f64 / 3.0 - 1.0).collect();
        match (world, self.unit.adjacency) {
            (World::With, _) => outcome.extend(std::iter::repeat_n(1.0, limit)),
            (World::Without, Adjacency::Replace) => outcome.extend(std::iter::repeat_n(-1.0, limit)),
            (World::Without, Adjacency::AddRemove) => {}
        }
        let ends = (1..=outcome.len() / limit).map(|person| person * limit).collect();
        let persons = self.unit.records_per_person().and_then(|limit| Persons::new(ends, limit));
        ModelData { outcome, persons, ..ModelData::default() }
    }

    /// One message that spends the whole cap.
    pub(crate) fn message(&self, job: &str, iteration: u64) -> v1::Query {
        let proposals = (0..self.questions)
            .map(|chain| {
                let to = if chain % 2 == 0 { self.half_step } else { -self.half_step };
                v1::Proposal { chain, from: vec![-to], to: vec![to], noise_scale: self.noise().units(), kind: 0 }
            })
            .collect();
        v1::Query { job: job.to_owned(), iteration, proposals, attempt: 0 }
    }

    /// The log likelihood ratio of the two worlds up to a constant and a factor: all questions shift the sum by the same
    /// amount in the direction in which they are asked.
    pub(crate) fn statistic(&self, releases: &[i64]) -> f64 {
        let signed =
            |(chain, released): (usize, &i64)| if chain % 2 == 0 { i128::from(*released) } else { -i128::from(*released) };
        let total: i128 = releases.iter().enumerate().map(signed).sum();
        total as f64 * STEP / (self.noise().sd() * f64::from(self.questions).sqrt())
    }

    /// Beyond this no release lies but once in 10^32: what all records together can add, and twelve scales of noise.
    pub(crate) fn farthest(&self) -> i64 {
        let records = (OTHERS as u64 + 1).saturating_mul(self.k_t.units());
        i64::try_from(records.saturating_add(12 * self.noise().units())).unwrap_or(i64::MAX)
    }
}

/// Replicates of one world, one after the other.
pub(crate) struct Theatre<'a> {
    design: &'a Design,
    folder: PathBuf,
    sandbox: Option<(Sandbox, u64)>,
    shard: Option<ModelData>,
    ledgers: u64,
    per_ledger: u64,
    /// Put on every sandbox that is made; for tests that plant a fault.
    prepare: &'a (dyn Fn(&mut Sandbox) + Sync),
}

/// One replicate: its statistic, and what was wrong with it.
pub(crate) struct Replicate {
    pub(crate) statistic: f64,
    pub(crate) finding: Option<&'static str>,
}

impl<'a> Theatre<'a> {
    /// `folder` must be there and be this theatre's own.
    pub(crate) fn new(design: &'a Design, shard: ModelData, folder: &Path, prepare: &'a (dyn Fn(&mut Sandbox) + Sync)) -> Self {
        let fit = (MU_SQUARED_PER_LEDGER / (design.mu_claimed * design.mu_claimed)) as u64;
        let per_ledger = fit.clamp(1, REPLICATES_PER_LEDGER);
        Self { design, folder: folder.to_owned(), sandbox: None, shard: Some(shard), ledgers: 0, per_ledger, prepare }
    }

    /// Opens a job, spends its cap, and asks once more.
    pub(crate) fn replicate(&mut self, number: u64) -> Result<Replicate, String> {
        let (mut sandbox, played) = self.sandbox()?;
        let job = format!("replicate-{number}");
        let shard = self.shard.take().ok_or("a replicate's records are lost")?;
        sandbox.put_on(&job, &self.design.spec, shard)?;
        (self.prepare)(&mut sandbox);
        let answer = sandbox.answer(self.design.message(&job, 0));
        let more = sandbox.answer(self.design.message(&job, 1));
        self.shard = sandbox.take_off(&job);
        self.sandbox = Some((sandbox, played + 1));
        let far = self.design.farthest();
        let finding = if answer.status != Some(AnswerStatus::Released.to_wire()) {
            Some("a query within the budget was refused")
        } else if more.status != Some(AnswerStatus::Budget.to_wire()) {
            Some("a query beyond the budget was not refused for it")
        } else if answer.releases.iter().any(|a| !(-far..=far).contains(a)) {
            Some("a released number is beyond what the clamped records and the noise can add up to")
        } else {
            None
        };
        Ok(Replicate { statistic: self.design.statistic(&answer.releases), finding })
    }

    fn sandbox(&mut self) -> Result<(Sandbox, u64), String> {
        match self.sandbox.take() {
            Some((sandbox, played)) if played < self.per_ledger => return Ok((sandbox, played)),
            _ => {}
        }
        self.ledgers += 1;
        let folder = self.folder.join(self.ledgers.to_string());
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        // A little more than the replicates' caps add up to, so that it is the cap that ends each of them.
        let mu = self.design.mu_claimed * (1.01 * self.per_ledger as f64).sqrt();
        let budget = Budget::new(gaussian_dp::epsilon(mu, LEDGER_DELTA), LEDGER_DELTA).map_err(|e| e.to_string())?;
        let mut sandbox = Sandbox::new(&folder, budget.of(self.design.unit))?;
        sandbox.keep_noise(&self.design.spec);
        if self.ledgers > 1 {
            // The one before is closed.
            let _ = std::fs::remove_dir_all(self.folder.join((self.ledgers - 1).to_string()));
        }
        Ok((sandbox, 0))
    }
}

fn job_toml(cap: Budget, questions: u32, sd: f64) -> String {
    format!(
        "name = \"audit\"\nalgorithm = \"penalty\"\nparties = [\"rehearsal\"]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"x\"\nsd = 1.0\n[columns]\nx = {{ min = -1, max = 1 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = {questions}\ndraws = 10\nforce = true\n[privacy]\nepsilon = {:?}\ndelta = {:?}\nnoise_sd = {sd:?}\n",
        cap.epsilon, cap.delta
    )
}
