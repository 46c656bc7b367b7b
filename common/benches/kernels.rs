//! Passes over a million made-up records, beside reading them once, and what a step by gradients takes beside a ratio.

mod shards;

use std::num::NonZeroUsize;
use std::time::Instant;

use conclave_common::model::{Influence, Remainder, Summand, block_sums};
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::Threads;
use conclave_privacy::pass::{Block, Blocks, CachedBlocks, Frame, Step, WeightCache};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shards::{Case, WIDTH, read};

const RECORDS: usize = 1_000_000;
/// Length of a guided step of a chain with that number of records: 0.44 of about 0.0035.
const GUIDED: f64 = 0.0015;

fn kernels(c: &mut Criterion) {
    for case in [Case::logistic(WIDTH, RECORDS), Case::linear(RECORDS), Case::gaussian_mean(RECORDS)] {
        let mut group = c.benchmark_group(case.name);
        group.sample_size(20).throughput(Throughput::Elements(RECORDS as u64));
        let columns = case.columns();
        group.bench_function("read", |b| b.iter(|| read(&columns, RECORDS)));
        for count in [1, 2] {
            let threads = Threads::new(NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)).expect("threads");
            for chains in [1, 16] {
                let ends = case.ends(chains, GUIDED, false);
                let id = BenchmarkId::new(format!("{chains} chains"), format!("{count} threads"));
                group.bench_function(id, |b| b.iter(|| case.pass(&case.data, &threads, &ends)));
            }
        }
        group.finish();
    }
}

/// Records of a shard that a step by gradients is timed on.
const STEPPED: usize = 200_000;

/// A ratio, a gradient in a frame whose entries are these and the remainder of the same step, in nanoseconds a record: the least of many passes, which
/// take turns, so that what else the machine does meets all of them.
fn step_by_gradients(case: &Case, entry: impl Fn(usize, usize) -> f64) -> [f64; 3] {
    let d = case.model.parameter_names().len();
    let [from, middle, to] = [0.095, 0.1, 0.105].map(|theta| vec![theta; d]);
    let frame: Vec<f64> = (0..d * d).map(|at| entry(at / d, at % d)).chain(vec![0.0; d]).collect();
    let points = [from.as_slice(), &middle, &to].concat();
    let numbers: Vec<f64> = frame.iter().copied().chain(vec![1e-9; d]).chain([0.0]).collect();
    let clamp = Sensitivity::from_units(1 << 30).expect("a sensitivity");
    let (ratio, remainder) = (Step::new(&from, &to, clamp), Remainder::new(&points, &numbers, d).expect("a step"));
    let scores = case.model.scores().expect("scores");
    let kept = WeightCache::new((case.data.records(), case.data.count()), 1);
    let keeping = CachedBlocks::new(&case.data, &kept);
    let sums: [&dyn Fn(&Block<'_>); 3] = [
        &|block| drop(std::hint::black_box(case.model.block_sums(block, &[ratio]))),
        &|block| drop(std::hint::black_box(scores.gradient_sum(block, &middle, Frame::new(&frame, d).expect("a frame")))),
        &|block| drop(std::hint::black_box(scores.remainder_sum(block, &remainder, clamp))),
    ];
    let mut least = [f64::INFINITY; 3];
    for _ in 0..100 {
        for (least, sum) in least.iter_mut().zip(sums) {
            let began = Instant::now();
            (0..keeping.count()).for_each(|at| sum(&keeping.block(at).expect("a block")));
            *least = least.min(began.elapsed().as_secs_f64() * 1e9 / STEPPED as f64);
        }
    }
    least
}

/// Prints what both take together in ratios: the goal is 3 at most with ten predictors.
fn gradients(_: &mut Criterion) {
    for predictors in [5, WIDTH, 20] {
        let case = Case::logistic(predictors, STEPPED);
        let beside = |k: usize, j: usize| 0.01 * (((k * 7 + j * 3) % 13) as f64 / 6.0 - 1.0);
        for (name, full) in [("a ball", 0.0), ("a shaped frame", 1.0)] {
            let entry = |k: usize, j: usize| if k == j { 0.2 } else { full * beside(k, j) };
            let [ratio, gradient, remainder] = step_by_gradients(&case, entry);
            let times = (gradient + remainder) / ratio;
            println!(
                "{predictors} predictors, {name}: a ratio {ratio:.2} ns a record, a gradient {gradient:.2}, its remainder {remainder:.2}: {times:.2} times"
            );
        }
    }
}

/// Prints what a stage of a weighted regression takes, in gradients at the same point: the goal is 3 at most.
fn bounded_influence(_: &mut Criterion) {
    for case in [Case::logistic(WIDTH, RECORDS), Case::linear(RECORDS)] {
        let d = case.model.parameter_names().len();
        let at = vec![0.1; d];
        let frame: Vec<f64> =
            (0..d * d).map(|k| if k / d == k % d { 0.8 } else { 0.02 * (k % 5) as f64 }).chain(vec![0.0; d]).collect();
        let numbers: Vec<f64> = frame.iter().copied().chain([2.0, 1.5]).collect();
        let influence = Influence::new(&numbers, d).expect("limits");
        let sums: [Vec<Summand<'_>>; 3] = [
            vec![Summand::Gradient { at: &at, frame: Frame::new(&frame, d).expect("a frame") }],
            vec![Summand::BoundedGradient { at: &at, influence }],
            vec![Summand::BoundedGradient { at: &at, influence }, Summand::BoundedCurvature { at: &at, influence }],
        ];
        let mut least = [f64::INFINITY; 3];
        for _ in 0..20 {
            for (least, summands) in least.iter_mut().zip(&sums) {
                let began = Instant::now();
                for block in 0..case.data.count() {
                    let block = case.data.block(block).expect("a block");
                    drop(std::hint::black_box(block_sums(case.model.as_ref(), &block, summands)));
                }
                *least = least.min(began.elapsed().as_secs_f64() * 1e9 / RECORDS as f64);
            }
        }
        let [gradient, score, stage] = least;
        println!(
            "{}, {d} parameters: a gradient {gradient:.2} ns a record, a score of bounded influence {score:.2}, with its information {stage:.2}: {:.2} times",
            case.name,
            stage / gradient
        );
    }
}

criterion_group!(benches, kernels, gradients, bounded_influence);
criterion_main!(benches);
