//! Two neighbouring made-up shards, the questions that tell them apart best, and a whole budget spent on them.

use std::path::{Path, PathBuf};

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::{Adjacency, Budget, Honest, Priced, PrivacyFilter, PrivacyUnit, gaussian_dp, mu_squared};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP, Sensitivity, sensitivity};
use conclave_privacy::pass::{ModelData, Persons};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;

use super::others;
use conclave_vault::answer::sandbox::Sandbox;

/// Records, or persons, beside the one that the worlds differ in.
const OTHERS: usize = 20;
/// Replicates whose charges one ledger takes, at most; each has a job of its own, capped at the audited budget.
const REPLICATES_PER_LEDGER: u64 = 1000;
/// mu² of a ledger's own budget, at most: beyond, an epsilon can't be accounted for.
const MU_SQUARED_PER_LEDGER: f64 = 900.0;
/// Delta of the ledgers' own, larger budgets.
const LEDGER_DELTA: f64 = 1e-6;

/// How many parties' noise a release is priced by, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Company {
    /// By the noise of how many parties, its own among them, the audited party is charged; 1 where its answers are opened by themselves.
    pub(crate) priced: Honest,
    /// How many parties' noise an adversary can't take off what is opened.
    pub(crate) played: u32,
    /// Whether the claim is what the ledger says it is if all others collude, and not what is charged.
    pub(crate) all_collude: bool,
}

impl Company {
    /// As many honest parties as the price says.
    pub(crate) fn honest(priced: Honest) -> Self {
        Self { priced, played: priced.get(), all_collude: false }
    }

    /// All others work together, and the claim is what the ledger says of that case.
    pub(crate) fn all_collude(priced: Honest) -> Self {
        Self { priced, played: 1, all_collude: true }
    }

    /// Messages of a replicate: masked noise could be used again in a second one alone.
    fn rounds(self, questions: u32) -> u32 {
        if self.priced > Honest::ALONE && questions.is_multiple_of(2) { 2 } else { 1 }
    }
}

/// What is audited: public constants, the same in both worlds.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    pub(crate) spec: JobSpec,
    pub(crate) unit: PrivacyUnit,
    /// The step of every question; odd ones are asked in reverse.
    half_step: f64,
    pub(crate) questions: u32,
    pub(crate) k_t: Sensitivity,
    pub(crate) company: Company,
    /// What the cap admits, as mu.
    pub(crate) mu_limit: f64,
    /// What is claimed of a replicate: the same, or what it comes to if all others collude.
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
    pub(crate) fn new(cap: Budget, (questions, sd): (u32, f64), company: Company) -> Result<Self, String> {
        Self::priced(cap, (questions, sd), company, |model| model)
    }

    /// As [`Design::new`], with prices by what `plant` makes of the model.
    pub(crate) fn priced(
        cap: Budget,
        (questions, sd): (u32, f64),
        company: Company,
        plant: impl Fn(Box<dyn Model>) -> Box<dyn Model>,
    ) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let spec = JobSpec::parse(&job_toml(cap, (questions, sd), company.priced)).map_err(|e| text(&e))?;
        let (unit, s) = (cap.unit, spec.privacy.noise);
        let limit = PrivacyFilter::new(&cap).map_err(|e| text(&e))?.limit_units();
        let model = plant(spec.build_model());
        // Charges go with the square of the step; the last hundredths of a percent are found by stepping down.
        let mu_each = mu_squared(limit).sqrt() / f64::from(questions).sqrt();
        let honest = f64::from(company.priced.get()).sqrt();
        let mut half_step = 0.5 * mu_each * honest * s.sd() / unit.factor() as f64 / model.bound(&[-0.5], &[0.5]) * 1.000_001;
        for _ in 0..10_000 {
            let per_record = sensitivity(model.bound(&[-half_step], &[half_step]), None).map_err(|e| text(&e))?;
            let k_t = unit.sensitivity(per_record).map_err(|e| text(&e))?;
            let priced = Priced::new(QueryKind::Ratio, k_t, s, company.priced);
            let mu = |total: u64| mu_squared(total).sqrt();
            let total = |priced: Priced| {
                let charge = priced.cost(unit).map_err(|e| text(&e))?.units;
                charge.checked_mul(u64::from(questions)).ok_or("the charge is too large".to_owned())
            };
            let (charged, alone) = (total(priced)?, total(priced.alone())?);
            if charged <= limit {
                let (mu_limit, mu_charged) = (mu(limit), mu(charged));
                let mu_claimed = if company.all_collude { mu(alone) } else { mu_limit };
                return Ok(Self { spec, unit, half_step, questions, k_t, company, mu_limit, mu_claimed, mu_charged });
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

    /// Messages that spend the whole cap together.
    pub(crate) fn rounds(&self) -> u32 {
        self.company.rounds(self.questions)
    }

    /// Questions of a message.
    pub(crate) fn per_round(&self) -> u32 {
        self.questions / self.rounds()
    }

    /// One message. Every second question is asked in reverse, and so is every second round of one.
    pub(crate) fn message(&self, job: &str, iteration: u64) -> v1::Query {
        let proposals = (0..self.per_round())
            .map(|chain| {
                let to = if reversed(u64::from(chain) + iteration) { -self.half_step } else { self.half_step };
                v1::Proposal { chain, from: vec![-to], to: vec![to], noise_scale: self.noise().units(), kind: 0 }
            })
            .collect();
        v1::Query { job: job.to_owned(), iteration, proposals, attempt: 0 }
    }

    /// The log likelihood ratio of the two worlds up to a constant and a factor, from what each round opened: all questions shift the sum by
    /// the same amount in the direction in which they are asked.
    pub(crate) fn statistic(&self, rounds: &[Vec<i64>]) -> f64 {
        let signed = |(place, opened): (u64, &i64)| if reversed(place) { -i128::from(*opened) } else { i128::from(*opened) };
        let of_round = |(iteration, opened): (u64, &Vec<i64>)| (iteration..).zip(opened).map(signed).sum::<i128>();
        let total: i128 = (0..).zip(rounds).map(of_round).sum();
        let noise = self.noise().sd() * f64::from(self.company.played).sqrt();
        total as f64 * STEP / (noise * f64::from(self.questions).sqrt())
    }

    /// Beyond this nothing lies that is opened, but once in 10^32: what all records together can add, and twelve scales of noise.
    pub(crate) fn farthest(&self) -> i64 {
        let records = (OTHERS as u64 + 1).saturating_mul(self.k_t.units());
        let parties = u64::from(self.company.played);
        let scales = 12 * (parties.isqrt() + u64::from(parties.isqrt().pow(2) < parties));
        i64::try_from(records.saturating_add(scales * self.noise().units())).unwrap_or(i64::MAX)
    }
}

/// Whether the question at this place is asked in reverse.
fn reversed(place: u64) -> bool {
    place % 2 == 1
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
        let fit = (MU_SQUARED_PER_LEDGER / (design.mu_limit * design.mu_limit)) as u64;
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
        let rounds = u64::from(self.design.rounds());
        let answers: Vec<v1::Answer> = (0..rounds).map(|round| sandbox.answer(self.design.message(&job, round))).collect();
        let more = sandbox.answer(self.design.message(&job, rounds));
        let opened: Vec<Vec<i64>> = answers.iter().map(|answer| sandbox.opened(&job, answer)).collect();
        self.shard = sandbox.take_off(&job);
        self.sandbox = Some((sandbox, played + 1));
        let far = self.design.farthest();
        let finding = if answers.iter().any(|answer| answer.status != Some(AnswerStatus::Released.to_wire())) {
            Some("a query within the budget was refused")
        } else if more.status != Some(AnswerStatus::Budget.to_wire()) {
            Some("a query beyond the budget was not refused for it")
        } else if opened.iter().flatten().any(|a| !(-far..=far).contains(a)) {
            Some("a released number is beyond what the clamped records and the noise can add up to")
        } else {
            None
        };
        Ok(Replicate { statistic: self.design.statistic(&opened), finding })
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
        let mu = self.design.mu_limit * (1.01 * self.per_ledger as f64).sqrt();
        let budget = Budget::new(gaussian_dp::epsilon(mu, LEDGER_DELTA), LEDGER_DELTA).map_err(|e| e.to_string())?;
        let mut sandbox = Sandbox::new(&folder, budget.of(self.design.unit))?;
        sandbox.keep_noise(&self.design.spec);
        sandbox.others = others::honest(self.design.company.played - 1, self.design.noise())?;
        if self.ledgers > 1 {
            // The one before is closed.
            let _ = std::fs::remove_dir_all(self.folder.join((self.ledgers - 1).to_string()));
        }
        Ok((sandbox, 0))
    }
}

/// The audit's job; of as many parties as leave `honest` with one that colludes, where answers are priced by more than their own noise.
fn job_toml(cap: Budget, (questions, sd): (u32, f64), honest: Honest) -> String {
    let masked = honest > Honest::ALONE;
    let others: String =
        if masked { (1..=honest.get()).map(|other| format!(", \"other-{other}\"")).collect() } else { String::new() };
    let aggregation = if masked { "[aggregation]\nmode = \"secure\"\ncolluders = 1\n" } else { "" };
    format!(
        "name = \"audit\"\nalgorithm = \"penalty\"\nparties = [\"rehearsal\"{others}]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"x\"\nsd = 1.0\n[columns]\nx = {{ min = -1, max = 1 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = {questions}\ndraws = 10\nforce = true\n[privacy]\nepsilon = {:?}\ndelta = {:?}\nnoise_sd = {sd:?}\n{aggregation}",
        cap.epsilon, cap.delta
    )
}
