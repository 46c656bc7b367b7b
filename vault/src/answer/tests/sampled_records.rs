//! A sum over a sample is the same, bit for bit, however the records are stored, and equals the sum over the sample's units one
//! by one.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use conclave_common::model::{Summand, block_sums};
use conclave_common::query::QueryTerms;
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind};
use conclave_privacy::pass::LatticeSum;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use proptest::prelude::*;

use super::answers::status;
use super::memory::{NEEDED, ways};
use super::*;
use crate::data::DataConfig;
use crate::data::Flaw;
use crate::data::tests::row_by_row::{Row, parquet_file, rows};
use crate::members::Members;
use crate::testing::{JOB, budget, open_policy, open_request};

const RESERVE: u64 = 1 << 40;
const SEED: u64 = 23;
/// Chains of a message, each with a sample of its own.
const CHAINS: u32 = 2;

static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Returns a job over samples of half of the units: ratios with `barker`, gradients with `sgld`.
fn job(algorithm: &str, privacy: &str) -> String {
    format!(
        "name = \"held\"\nparties = [\"hospital-a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"linear\"\noutcome = \"a\"\n\
         predictors = [\"n\", \"ward\", \"n:ward\"]\nsd = 2e8\n[columns]\na = {{ min = -1e9, max = 1e9 }}\nn = {{ min = -9e18, max = 9e18 }}\n\
         ward = {{ levels = [\"a\", \"b\", \"ab\", \"cc\"] }}\n[sampler]\nchains = {CHAINS}\ndraws = 4\nwarmup = 1\nbatch = 0.5\n\
         [privacy]\nepsilon = 3.0\ndelta = 1e-6\ndelta_reserve = 1e-7\nblocks = 4\n{privacy}"
    )
}

/// Creates a party with a file in one memory mode, a new ledger, and a fixed seed for noise and samples.
fn open(folder: &Path, data: &DataConfig, toml: &str) -> Answerer {
    let shard = Shard::load(data, Some(&NEEDED.map(str::to_owned))).unwrap();
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let (ledger, budget) = (folder.join(format!("{number}.sqlite")), budget().of(data.unit).reserving(RESERVE));
    Ledger::init(&ledger, "hospital-a", &budget).unwrap();
    let ledger = Ledger::open(&ledger, "hospital-a", &budget).unwrap();
    let mut answerer = Answerer::new("hospital-a".into(), open_policy(), budget, shard, ledger, Noise::seeded(SEED))
        .with_members(Members::anyone());
    let opened = answerer.open(&open_request(toml));
    assert!(matches!(opened, Ok(Opening::Opened(..))), "{opened:?}");
    answerer
}

/// Returns a message of both chains with queries of one kind.
fn ask(answerer: &Answerer, gradient: bool) -> v1::Query {
    let spec = &answerer.jobs[JOB].spec;
    let d = spec.dimension();
    let from: Vec<f64> = (0..d).map(|at| 0.05 - 0.01 * at as f64).collect();
    let (kind, to, noise) = match gradient {
        // A frame that rotates, shrinks and shifts.
        true => {
            let rows = (0..d * d).map(|at| if at % (d + 1) == 0 { 0.02 } else { 0.003 * ((at * 7) as f64).sin() });
            let numbers = rows.chain((0..d).map(|at| 0.01 * at as f64)).collect();
            (QueryKind::SampledGradient { parameters: d as u32 }, numbers, NoiseScale::from_units(8 * GRADIENT_UNITS).unwrap())
        }
        false => (QueryKind::SampledRatio, from.iter().map(|theta| theta + 0.02).collect::<Vec<f64>>(), spec.privacy.noise),
    };
    let proposal = |chain: u32| {
        let mut from = from.clone();
        from[0] += 0.01 * f64::from(chain);
        v1::Proposal { chain, from, to: to.clone(), noise_scale: noise.units(), kind: kind.code() }
    };
    v1::Query { job: JOB.into(), iteration: 0, proposals: (0..CHAINS).map(proposal).collect(), attempt: 0 }
}

/// Returns the expected releases: each chain's sum over the units drawn by a generator with the same seed, one by one, plus its
/// noise.
fn by_hand(answerer: &Answerer, asked: &v1::Query) -> Vec<i64> {
    let (active, mut twin) = (&answerer.jobs[JOB], Noise::seeded(SEED));
    let (model, blocks) = (active.model.as_ref(), active.records.blocks());
    let all: Vec<_> = (0..blocks.count()).map(|at| blocks.block(at).unwrap()).collect();
    let of_chain = |proposal: &v1::Proposal| {
        let (kind, points) = (QueryKind::from_code(proposal.kind).unwrap(), (&proposal.from[..], &proposal.to[..]));
        let terms = QueryTerms::new(model, &active.spec, answerer.budget.unit, kind, points).unwrap();
        let summand: Summand<'_> = terms.summand(points.0, points.1, terms.sensitivity()).unwrap();
        let sample = twin.sample_of_units(active.sampling.as_ref().unwrap()).open_for_test();
        let one = |unit: &u64| {
            let block = all.iter().find(|block| block.places().contains(unit)).unwrap();
            let at = (unit - block.places().start) as usize;
            block_sums(model, &block.part(at..at + 1), &[summand]).remove(0)
        };
        let of_none = block_sums(model, &all[0].without_records(), &[summand]).remove(0);
        let sum: LatticeSum = sample.iter().map(one).fold(of_none, LatticeSum::merge_for_test);
        let noise = twin.sample(NoiseScale::from_units(proposal.noise_scale).unwrap(), terms.length());
        sum.add_noise(noise).as_slice().to_vec()
    };
    asked.proposals.iter().map(of_chain).collect::<Vec<_>>().concat()
}

/// Checks ratios and gradients in each memory mode: the same integers are released, and they are those of the sample.
fn hold(folder: &Path, file: &Path, limit: Option<usize>) {
    for (gradient, toml) in [(false, job("barker", "clip = 0.02\n")), (true, job("sgld", ""))] {
        let mut left = Vec::new();
        for data in ways(file.to_owned(), limit) {
            let mut answerer = open(folder, &data, &toml);
            let asked = ask(&answerer, gradient);
            if left.is_empty() {
                left.push(by_hand(&answerer, &asked));
            }
            let answer = answerer.answer(asked);
            assert_eq!(status(&answer), AnswerStatus::Released, "{:?}", data.memory);
            left.push(answer.releases);
        }
        assert!(left.iter().all(|one| *one == left[0]), "gradients {gradient}, persons {limit:?}: {left:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn samples_of_any_rows_add_up_however_they_are_stored(rows in rows(), limit in prop::option::of(1_usize..4), cut in 0.0..1.0) {
        let good = Row { a: Ok(1e8), ward: Ok("b".into()), n: Ok(-7), who: Some("z".into()), torn: false };
        let rows: Vec<Row> = rows.into_iter().chain([good]).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.parquet");
        let (first, second) = rows.split_at((cut * rows.len() as f64) as usize);
        parquet_file(&file, &[first, second]);
        hold(folder.path(), &file, limit);
    }
}

/// Enough records that they are read and scaled in pieces, which end within words of a sample and groups of the sampling; some
/// are inert.
#[test]
fn samples_of_many_records_add_up_however_they_are_stored() {
    let row = |at: i64| Row {
        a: if at % 97 == 5 { Err(Flaw::Missing) } else { Ok((at % 2001 - 1000) as f64 * 9e5) },
        ward: Ok(["a", "b", "ab", "zz"][at as usize % 4].to_owned()),
        n: Ok(at * 200_000_000_000_000 - 4_000_000_000_000_000_000),
        who: Some(format!("p{}", at / 2)),
        torn: false,
    };
    let rows: Vec<Row> = (0..40_001).map(row).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    parquet_file(&file, &[&rows[..7_003], &rows[7_003..7_010], &rows[7_010..17_003], &rows[17_003..29_999], &rows[29_999..]]);
    for limit in [None, Some(2)] {
        let pieces: Vec<usize> = ways(file.clone(), limit).iter().map(|data| pieces(folder.path(), data)).collect();
        assert!(pieces[1..].iter().all(|pieces| *pieces > 3), "{pieces:?}");
        hold(folder.path(), &file, limit);
    }
}

/// Returns the number of blocks in which a pass reads the records.
fn pieces(folder: &Path, data: &DataConfig) -> usize {
    open(folder, data, &job("sgld", "")).jobs[JOB].records.blocks().count()
}
