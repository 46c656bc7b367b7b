//! Two neighbouring simulated shards, the queries that distinguish them best, and a whole budget spent on them.

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

/// Records or persons besides the one in which the worlds differ.
const OTHERS: usize = 20;
/// Maximum replicates charged to one ledger; each has its own job, capped at the audited budget.
const REPLICATES_PER_LEDGER: u64 = 1000;
/// Maximum mu² of a ledger's own budget: above it an epsilon can't be computed.
const MU_SQUARED_PER_LEDGER: f64 = 900.0;
/// Delta of the ledgers' own, larger budgets.
const LEDGER_DELTA: f64 = 1e-6;

/// Parties whose noise prices a release, and parties whose noise is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoiseParties {
    /// Number of parties, the audited one included, whose noise sets the price; 1 if its answers are opened separately.
    pub(crate) priced: Honest,
    /// Number of parties whose noise an adversary can't subtract from the opened sum.
    pub(crate) simulated: u32,
    /// The claim is the ledger's figure for full collusion, not the charge.
    pub(crate) all_collude: bool,
}

impl NoiseParties {
    /// Simulates as many honest parties as the price assumes.
    pub(crate) fn honest(priced: Honest) -> Self {
        Self { priced, simulated: priced.get(), all_collude: false }
    }

    /// Simulates full collusion; the claim is the ledger's figure for that case.
    pub(crate) fn all_collude(priced: Honest) -> Self {
        Self { priced, simulated: 1, all_collude: true }
    }

    /// Returns the messages per replicate: masked noise can only be reused in a second one.
    fn rounds(self, queries: u32) -> u32 {
        if self.priced > Honest::ALONE && queries.is_multiple_of(2) { 2 } else { 1 }
    }
}

/// The audited job: public constants, equal in both worlds.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    pub(crate) spec: JobSpec,
    pub(crate) unit: PrivacyUnit,
    /// Half the step of every query; odd queries go in reverse.
    half_step: f64,
    pub(crate) queries: u32,
    pub(crate) k_t: Sensitivity,
    pub(crate) noise_parties: NoiseParties,
    /// The mu that the cap admits.
    pub(crate) mu_limit: f64,
    /// The claimed mu of a replicate: that of the cap, or the ledger's figure for full collusion.
    pub(crate) mu_claimed: f64,
    /// The mu charged for one replicate.
    pub(crate) mu_charged: f64,
}

/// One of the two worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// The record is at one end of its range, or absent.
    Without,
    /// The record is at the other end.
    With,
}

impl Design {
    /// Makes `queries` queries at noise of standard deviation `sd` that spend `cap` as fully as whole charges can.
    pub(crate) fn new(cap: Budget, (queries, sd): (u32, f64), noise_parties: NoiseParties) -> Result<Self, String> {
        Self::priced(cap, (queries, sd), noise_parties, |model| model)
    }

    /// Creates a design as [`Design::new`] does, with prices computed by the model that `plant` returns.
    pub(crate) fn priced(
        cap: Budget,
        (queries, sd): (u32, f64),
        noise_parties: NoiseParties,
        plant: impl Fn(Box<dyn Model>) -> Box<dyn Model>,
    ) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let spec = JobSpec::parse(&job_toml(cap, (queries, sd), noise_parties.priced)).map_err(|e| text(&e))?;
        let (unit, s) = (cap.unit, spec.privacy.noise);
        let limit = PrivacyFilter::new(&cap).map_err(|e| text(&e))?.limit_units();
        let model = plant(spec.build_model());
        // Charges are proportional to the square of the step; stepping down finds the last hundredths of a percent.
        let mu_each = mu_squared(limit).sqrt() / f64::from(queries).sqrt();
        let honest = f64::from(noise_parties.priced.get()).sqrt();
        let mut half_step = 0.5 * mu_each * honest * s.sd() / unit.factor() as f64 / model.bound(&[-0.5], &[0.5]) * 1.000_001;
        for _ in 0..10_000 {
            let per_record = sensitivity(model.bound(&[-half_step], &[half_step]), None).map_err(|e| text(&e))?;
            let k_t = unit.sensitivity(per_record).map_err(|e| text(&e))?;
            let priced = Priced::new(QueryKind::Ratio, k_t, s, noise_parties.priced);
            let mu = |total: u64| mu_squared(total).sqrt();
            let total = |priced: Priced| {
                let charge = priced.cost(unit).map_err(|e| text(&e))?.units;
                charge.checked_mul(u64::from(queries)).ok_or("the charge is too large".to_owned())
            };
            let (charged, alone) = (total(priced)?, total(priced.alone())?);
            if charged <= limit {
                let (mu_limit, mu_charged) = (mu(limit), mu(charged));
                let mu_claimed = if noise_parties.all_collude { mu(alone) } else { mu_limit };
                return Ok(Self { spec, unit, half_step, queries, k_t, noise_parties, mu_limit, mu_claimed, mu_charged });
            }
            half_step *= 1.0 - 1e-7;
        }
        Err("no step fits this budget".into())
    }

    /// Returns the noise scale of every query.
    pub(crate) fn noise(&self) -> NoiseScale {
        self.spec.privacy.noise
    }

    /// Returns the records on the model's scale; each person has the maximum number of records.
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

    /// Returns the number of messages that spend the whole cap.
    pub(crate) fn rounds(&self) -> u32 {
        self.noise_parties.rounds(self.queries)
    }

    /// Returns the number of queries per message.
    pub(crate) fn per_round(&self) -> u32 {
        self.queries / self.rounds()
    }

    /// Returns one message. Every second query is reversed, and so is every second message with one query.
    pub(crate) fn message(&self, job: &str, iteration: u64) -> v1::Query {
        let proposals = (0..self.per_round())
            .map(|chain| {
                let to = if reversed(u64::from(chain) + iteration) { -self.half_step } else { self.half_step };
                v1::Proposal { chain, from: vec![-to], to: vec![to], noise_scale: self.noise().units(), kind: 0 }
            })
            .collect();
        v1::Query { job: job.to_owned(), iteration, proposals, attempt: 0 }
    }

    /// Returns the log likelihood ratio of the two worlds, up to a constant and a factor, from the opened sums of each round: all
    /// queries shift the sum by the same amount in their own direction.
    pub(crate) fn statistic(&self, rounds: &[Vec<i64>]) -> f64 {
        let signed = |(place, opened): (u64, &i64)| if reversed(place) { -i128::from(*opened) } else { i128::from(*opened) };
        let of_round = |(iteration, opened): (u64, &Vec<i64>)| (iteration..).zip(opened).map(signed).sum::<i128>();
        let total: i128 = (0..).zip(rounds).map(of_round).sum();
        let noise = self.noise().sd() * f64::from(self.noise_parties.simulated).sqrt();
        total as f64 * STEP / (noise * f64::from(self.queries).sqrt())
    }

    /// Returns the bound on an opened number, exceeded once in 10^32: the sum of all records' maxima and twelve noise scales.
    pub(crate) fn farthest(&self) -> i64 {
        let records = (OTHERS as u64 + 1).saturating_mul(self.k_t.units());
        let parties = u64::from(self.noise_parties.simulated);
        let scales = 12 * (parties.isqrt() + u64::from(parties.isqrt().pow(2) < parties));
        i64::try_from(records.saturating_add(scales * self.noise().units())).unwrap_or(i64::MAX)
    }
}

/// Returns true if the query at this index is reversed.
fn reversed(place: u64) -> bool {
    place % 2 == 1
}

/// Runs the replicates of one world in sequence.
pub(crate) struct ReplicateRunner<'a> {
    design: &'a Design,
    folder: PathBuf,
    sandbox: Option<(Sandbox, u64)>,
    shard: Option<ModelData>,
    ledgers: u64,
    per_ledger: u64,
    /// Applied to every new sandbox, for tests that plant a fault.
    prepare: &'a (dyn Fn(&mut Sandbox) + Sync),
}

/// One replicate: its statistic, and a finding if any.
pub(crate) struct Replicate {
    pub(crate) statistic: f64,
    pub(crate) finding: Option<&'static str>,
}

impl<'a> ReplicateRunner<'a> {
    /// Makes a runner; `folder` must exist and be used by this runner only.
    pub(crate) fn new(design: &'a Design, shard: ModelData, folder: &Path, prepare: &'a (dyn Fn(&mut Sandbox) + Sync)) -> Self {
        let fit = (MU_SQUARED_PER_LEDGER / (design.mu_limit * design.mu_limit)) as u64;
        let per_ledger = fit.clamp(1, REPLICATES_PER_LEDGER);
        Self { design, folder: folder.to_owned(), sandbox: None, shard: Some(shard), ledgers: 0, per_ledger, prepare }
    }

    /// Opens a job, spends its cap, and sends one more query.
    pub(crate) fn replicate(&mut self, number: u64) -> Result<Replicate, String> {
        let (mut sandbox, replicates) = self.sandbox()?;
        let job = format!("replicate-{number}");
        let shard = self.shard.take().ok_or("a replicate's records are lost")?;
        sandbox.put_on(&job, &self.design.spec, shard)?;
        (self.prepare)(&mut sandbox);
        let rounds = u64::from(self.design.rounds());
        let answers: Vec<v1::Answer> = (0..rounds).map(|round| sandbox.answer(self.design.message(&job, round))).collect();
        let more = sandbox.answer(self.design.message(&job, rounds));
        let opened: Vec<Vec<i64>> = answers.iter().map(|answer| sandbox.opened(&job, answer)).collect();
        self.shard = sandbox.take_off(&job);
        self.sandbox = Some((sandbox, replicates + 1));
        let far = self.design.farthest();
        let finding = if answers.iter().any(|answer| answer.status != Some(AnswerStatus::Released.to_wire())) {
            Some("a query within the budget was refused")
        } else if more.status != Some(AnswerStatus::Budget.to_wire()) {
            Some("a query beyond the budget was not refused for budget")
        } else if opened.iter().flatten().any(|a| !(-far..=far).contains(a)) {
            Some("a released number exceeds the range of clamped records and noise")
        } else {
            None
        };
        Ok(Replicate { statistic: self.design.statistic(&opened), finding })
    }

    fn sandbox(&mut self) -> Result<(Sandbox, u64), String> {
        match self.sandbox.take() {
            Some((sandbox, replicates)) if replicates < self.per_ledger => return Ok((sandbox, replicates)),
            _ => {}
        }
        self.ledgers += 1;
        let folder = self.folder.join(self.ledgers.to_string());
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        // Slightly above the sum of the replicates' caps, so that each replicate ends by its cap.
        let mu = self.design.mu_limit * (1.01 * self.per_ledger as f64).sqrt();
        let budget = Budget::new(gaussian_dp::epsilon(mu, LEDGER_DELTA), LEDGER_DELTA).map_err(|e| e.to_string())?;
        let mut sandbox = Sandbox::new(&folder, budget.of(self.design.unit))?;
        sandbox.keep_noise(&self.design.spec);
        sandbox.others = others::honest(self.design.noise_parties.simulated - 1, self.design.noise())?;
        if self.ledgers > 1 {
            // The previous one is closed.
            let _ = std::fs::remove_dir_all(self.folder.join((self.ledgers - 1).to_string()));
        }
        Ok((sandbox, 0))
    }
}

/// Returns the audit's job. If answers are priced by more than their own noise, it has one colluding party besides the `honest`
/// ones.
fn job_toml(cap: Budget, (queries, sd): (u32, f64), honest: Honest) -> String {
    let masked = honest > Honest::ALONE;
    let others: String =
        if masked { (1..=honest.get()).map(|other| format!(", \"other-{other}\"")).collect() } else { String::new() };
    let aggregation = if masked { "[aggregation]\nmode = \"secure\"\ncolluders = 1\n" } else { "" };
    format!(
        "name = \"audit\"\nalgorithm = \"penalty\"\nparties = [\"rehearsal\"{others}]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"x\"\nsd = 1.0\n[columns]\nx = {{ min = -1, max = 1 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = {queries}\ndraws = 10\nforce = true\n[privacy]\nepsilon = {:?}\ndelta = {:?}\nnoise_sd = \
         {sd:?}\n{aggregation}",
        cap.epsilon, cap.delta
    )
}
