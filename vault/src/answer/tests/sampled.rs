//! Answers over hidden samples, from the query to the ledger: places, blocks, refusals, restarts, and the sums themselves.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use conclave_common::job::Algorithm;
use conclave_privacy::accounting::{Adjacency, Honest, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::{Block, BlockError, Blocks, ModelData, Persons};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use tempfile::TempDir;

use super::answers::status;
use super::*;
use crate::answer::masking::Masking;
use crate::answer::records::Records;
use crate::data::BadRows;
use crate::ledger::{Durability, LedgerSettings};
use crate::testing::{JOB, MEAN_TOML, budget, data, entry, open_policy, write};

/// A clip of half a unit under noise of one: a relative sensitivity of a half.
const CLIP: u64 = 1 << 31;
const RESERVE: u64 = 1 << 40;
const UNITS: usize = 4000;

/// Returns a job over samples of a quarter, four releases per block.
fn spec(reserve: u64) -> JobSpec {
    let mut spec = JobSpec::parse(&MEAN_TOML.replace("noise_sd", "clip = 0.5\nnoise_sd")).unwrap();
    spec.algorithm = Algorithm::Barker;
    spec.sampler.batch = SamplingProbability::at_least(0.25).unwrap();
    let blocks = spec.planned_releases() / 4;
    spec.privacy.blocks = Some(blocks);
    spec.privacy.budget = budget().reserving(reserve);
    spec
}

/// Returns records that each contribute the clip along the queried step.
fn records(unit: PrivacyUnit) -> ModelData {
    let each = unit.records_per_person().unwrap_or(1) as usize;
    let ends = (1..=UNITS).map(|person| person * each).collect();
    let persons = unit.records_per_person().and_then(|limit| Persons::new(ends, limit));
    ModelData { outcome: vec![1.0; UNITS * each], persons, ..ModelData::default() }
}

fn ask(iteration: u64, chains: u32, noise: f64) -> v1::Query {
    let noise_scale = NoiseScale::from_sd(noise).unwrap().units();
    let kind = QueryKind::SampledRatio.code();
    let proposal = |chain| v1::Proposal { chain, from: vec![-0.5], to: vec![0.5], noise_scale, kind };
    v1::Query { job: JOB.into(), iteration, proposals: (0..chains).map(proposal).collect(), attempt: 0 }
}

struct Party {
    folder: TempDir,
    budget: Budget,
}

impl Party {
    fn new(budget: Budget) -> Self {
        let party = Self { folder: tempfile::tempdir().unwrap(), budget };
        write(party.folder.path(), "a.csv", "height\n150\n170\n");
        Ledger::init(&party.ledger(), "hospital-a", &budget).unwrap();
        party
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    /// Starts a party, and opens the job on generated records.
    fn start(&self, spec: &JobSpec) -> Result<Answerer, String> {
        self.start_with(spec, Records::Held(records(self.budget.unit)), Durability::Strict)
    }

    /// Starts a party with these records.
    fn start_with(&self, spec: &JobSpec, held: Records, durability: Durability) -> Result<Answerer, String> {
        let shard = Shard::load(&data(self.folder.path().join("a.csv"), BadRows::Stop), None).unwrap();
        let settings = LedgerSettings { durability, ..LedgerSettings::beside(&self.ledger(), "hospital-a", &self.budget) };
        let mut ledger = Ledger::open_kept(&settings).map_err(|e| e.to_string())?;
        ledger.open_job(&entry(JOB, spec.privacy.budget.of(self.budget.unit))).map_err(|e| e.to_string())?;
        let mut answerer =
            Answerer::new("hospital-a".into(), open_policy(), self.budget, shard, ledger, Noise::from_os().unwrap());
        let parts = NewJob {
            spec: spec.clone(),
            digest: [1; 32],
            records: held,
            delay: None,
            masking: Masking::Local,
            trusted: Honest::ALONE,
            idle: Duration::ZERO,
        };
        let active = ActiveJob::new(parts, self.budget.unit, &Threads::one()).map_err(|e| e.to_string())?;
        answerer.jobs.insert(JOB.into(), active);
        Ok(answerer)
    }
}

/// Returns (round, chain) of each charge by its block, in the order of writing, from the table of charges alone.
fn places(party: &Party) -> BTreeMap<u64, Vec<(u64, u32)>> {
    let connection = rusqlite::Connection::open(party.ledger()).unwrap();
    let mut select = connection.prepare("SELECT block, iteration, chain FROM charges ORDER BY seq").unwrap();
    let mut places: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let rows = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).unwrap();
    rows.map(Result::unwrap).for_each(|(block, id): (u64, _)| places.entry(block).or_default().push(id));
    places
}

/// Unreadable records.
struct Unreadable(ModelData);

impl Blocks for Unreadable {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn records(&self) -> u64 {
        self.0.records()
    }

    fn units(&self) -> u64 {
        Blocks::units(&self.0)
    }

    fn block(&self, _at: usize) -> Result<Block<'_>, BlockError> {
        Err(BlockError::new("planted"))
    }
}

/// The party ends between the charge and the answer, as its records can't be read. Asked again after its next start, the query has the place
/// that it had, is answered, and charged no second time; another query has another place.
#[test]
fn a_place_that_was_charged_and_not_answered_is_answered_after_a_restart() {
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        let (party, spec) = (Party::new(budget().reserving(RESERVE)), spec(RESERVE));
        let unreadable = Records::Streamed(Box::new(Unreadable(records(party.budget.unit))));
        let mut answerer = party.start_with(&spec, unreadable, durability).unwrap();
        let silent = answerer.answer(ask(0, 2, 1.0));
        assert_eq!((status(&silent), silent.releases), (AnswerStatus::Halted, vec![0; 2]));
        let total = spent(&answerer);
        drop(answerer);
        let before = places(&party);
        assert_eq!(before.values().collect::<Vec<_>>(), [&vec![(0, 0), (0, 1)]]);
        let start = || party.start_with(&spec, Records::Held(records(party.budget.unit)), durability).unwrap();
        let mut answerer = start();
        // Another query first, under an id of its own and under theirs.
        let other = answerer.answer(ask(7, 1, 1.0));
        assert_eq!((status(&other), spent(&answerer)), (AnswerStatus::Released, total));
        let mut altered = ask(0, 2, 1.0);
        altered.proposals[1].to = vec![0.25];
        assert_eq!(status(&answerer.answer(altered)), AnswerStatus::Conflict);
        let answer = answerer.answer(ask(0, 2, 1.0));
        assert_eq!((status(&answer), spent(&answerer)), (AnswerStatus::Released, total));
        assert_eq!(answerer.answer(ask(0, 2, 1.0)).releases, answer.releases);
        // The fourth place, and then a new block.
        assert_eq!(status(&answerer.answer(ask(1, 1, 1.0))), AnswerStatus::Released);
        assert_eq!(spent(&answerer), total);
        assert_eq!(status(&answerer.answer(ask(2, 1, 1.0))), AnswerStatus::Released);
        assert_eq!(spent(&answerer), 2 * total);
        drop(answerer);
        let after: Vec<_> = places(&party).into_iter().collect();
        let first = *before.keys().next().unwrap();
        assert_eq!(after[0], (first, vec![(0, 0), (0, 1), (7, 0), (1, 0)]), "{durability:?}");
        assert_eq!(after[1].1, [(2, 0)]);
        assert_eq!(start().answer(ask(0, 2, 1.0)).releases, answer.releases);
    }
}

fn spent(answerer: &Answerer) -> u64 {
    answerer.ledger().units().0
}

/// Four places per block: the first release pays for it, three more are free, and the fifth opens the next block. The same id
/// gets the same bytes free of charge, before and after a restart.
#[test]
fn places_of_blocks_are_taken_and_answered_once() {
    let (party, spec) = (Party::new(budget().reserving(RESERVE)), spec(RESERVE));
    let mut answerer = party.start(&spec).unwrap();
    let mut costs = Vec::new();
    let mut answers = Vec::new();
    for round in 0..5 {
        let before = spent(&answerer);
        let answer = answerer.answer(ask(round, 1, 1.0));
        assert_eq!(status(&answer), AnswerStatus::Released, "{round}");
        costs.push(spent(&answerer) - before);
        answers.push(answer.releases);
    }
    assert!(costs[0] > 0 && costs[1..4] == [0; 3] && costs[4] == costs[0], "{costs:?}");
    let total = spent(&answerer);
    let again = |answerer: &mut Answerer| (0..5).map(|round| answerer.answer(ask(round, 1, 1.0)).releases).collect::<Vec<_>>();
    assert_eq!(again(&mut answerer), answers);
    assert_eq!(spent(&answerer), total);
    answerer.end();
    let mut answerer = party.start(&spec).unwrap();
    assert_eq!(again(&mut answerer), answers);
    // The second block's places remain available.
    assert_eq!(status(&answerer.answer(ask(5, 3, 1.0))), AnswerStatus::Released);
    assert_eq!(spent(&answerer), total);
}

/// Each release has a sample of its own: sums over a quarter of the units have a binomial spread, within a message as between
/// rounds.
#[test]
fn every_chain_has_a_sample_of_its_own() {
    let persons = PrivacyUnit::person(Adjacency::AddRemove, 2).unwrap();
    for unit in [PrivacyUnit::default(), PrivacyUnit::row(Adjacency::AddRemove), persons] {
        let party = Party::new(Budget::new(60.0, 1e-6).unwrap().of(unit).reserving(RESERVE));
        let mut spec = spec(RESERVE);
        spec.privacy.budget = Budget::new(60.0, 1e-6).unwrap().reserving(RESERVE);
        let mut answerer = party.start(&spec).unwrap();
        let noise = f64::from(unit.records_per_person().unwrap_or(1));
        let units = |answer: v1::Answer| -> Vec<f64> {
            assert_eq!(status(&answer), AnswerStatus::Released, "{unit}");
            answer.releases.iter().map(|released| *released as f64 / (CLIP as f64 * noise)).collect()
        };
        let rounds: Vec<Vec<f64>> = (0..10).map(|round| units(answerer.answer(ask(round, 8, noise)))).collect();
        let (q, n) = (0.25, UNITS as f64);
        // The noise of two clips adds 4 to a variance of 750.
        let sd = (q * (1.0 - q) * n + 4.0).sqrt();
        let all: Vec<f64> = rounds.iter().flatten().map(|sum| (sum - q * n) / sd).collect();
        assert!(all.iter().all(|z| z.abs() < 6.0), "{unit}: {all:?}");
        let square: f64 = all.iter().map(|z| z * z).sum::<f64>() / 80.0;
        // Chi-square of 80 degrees over 80: outside 0.37 to 2.2 once in 10^7.
        assert!((0.37..2.2).contains(&square), "{unit}: {square}");
        let common: f64 = rounds.iter().map(|round| round.iter().map(|sum| (sum - q * n) / sd).sum::<f64>().powi(2) / 8.0).sum();
        // Chi-square of 10 degrees; one sample for a whole message would make it eight times as large.
        assert!(common < 52.0, "{unit}: {common}");
    }
}

/// A job that may open no block spends nothing.
#[test]
fn without_a_reserve_nothing_is_answered_and_nothing_spent() {
    let party = Party::new(budget());
    assert!(party.start(&spec(RESERVE)).err().unwrap().contains("delta_reserve"));
    let party = Party::new(budget().reserving(RESERVE));
    let mut answerer = party.start(&spec(0)).unwrap();
    let answer = answerer.answer(ask(0, 2, 1.0));
    assert_eq!((status(&answer), answer.releases), (AnswerStatus::Policy, vec![0, 0]));
    assert_eq!(spent(&answerer), 0);
}

/// The budget ends between two blocks, in a message that would need the second. None of its chains is answered, while the
/// remaining places of the first block still are.
#[test]
fn a_block_beyond_the_budget_is_refused_whole() {
    let party = Party::new(budget().reserving(RESERVE));
    let mut spec = spec(RESERVE);
    let one = {
        let other = Party::new(budget().reserving(RESERVE));
        let mut answerer = other.start(&spec).unwrap();
        answerer.answer(ask(0, 1, 1.0));
        spent(&answerer)
    };
    let mu = conclave_privacy::accounting::mu_squared(one + one / 2).sqrt();
    let epsilon = conclave_privacy::accounting::gaussian_dp::epsilon(mu, 1e-6);
    spec.privacy.budget = Budget::new(epsilon, 1e-6).unwrap().reserving(RESERVE);
    let mut answerer = party.start(&spec).unwrap();
    assert_eq!(status(&answerer.answer(ask(0, 2, 1.0))), AnswerStatus::Released);
    let total = spent(&answerer);
    let refused = answerer.answer(ask(1, 3, 1.0));
    assert_eq!((status(&refused), refused.releases), (AnswerStatus::Budget, vec![0; 3]));
    assert_eq!(spent(&answerer), total);
    assert_eq!(status(&answerer.answer(ask(1, 2, 1.0))), AnswerStatus::Released);
    assert_eq!((status(&answerer.answer(ask(2, 1, 1.0))), spent(&answerer)), (AnswerStatus::Budget, total));
}

/// Noise below two thirds of a unit's contribution: sampling hides next to nothing there.
#[test]
fn too_little_noise_for_a_sample_is_refused() {
    let party = Party::new(Budget::new(60.0, 1e-6).unwrap().reserving(RESERVE));
    let mut spec = spec(RESERVE);
    spec.privacy.budget = Budget::new(60.0, 1e-6).unwrap().reserving(RESERVE);
    let mut answerer = party.start(&spec).unwrap();
    answerer.policy.min_noise_sd = 0.0;
    let refused = answerer.answer(ask(0, 2, 0.33));
    assert_eq!((status(&refused), refused.releases), (AnswerStatus::Policy, vec![0, 0]));
    assert_eq!(spent(&answerer), 0);
    assert_eq!(status(&answerer.answer(ask(0, 2, 0.34))), AnswerStatus::Released);
}

/// A job over all records may not query a sample.
#[test]
fn a_job_over_all_records_has_no_samples() {
    let party = Party::new(budget().reserving(RESERVE));
    let mut spec = spec(RESERVE);
    (spec.privacy.blocks, spec.sampler.batch) = (None, SamplingProbability::ONE);
    let mut answerer = party.start(&spec).unwrap();
    assert!(answerer.jobs[JOB].sampling.is_none());
    assert_eq!(status(&answerer.answer(ask(0, 1, 1.0))), AnswerStatus::Invalid);
    assert_eq!(spent(&answerer), 0);
}
