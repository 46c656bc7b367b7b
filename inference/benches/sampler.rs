//! Benchmarks of one round of the coordinator's sampler (proposing queries and absorbing answers), of a summary of its draws, and
//! of a draw of noise.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::diagnostics::summarise;
use conclave_inference::sampler;
use conclave_inference::sampler::Totals;
use conclave_privacy::mechanism::{DiscreteGaussian, NoiseScale};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::SeedableRng;
use rand::distr::Distribution;
use rand_chacha::ChaCha20Rng;

const WIDTH: usize = 10;

fn spec(parties: usize, chains: usize) -> JobSpec {
    let parties: Vec<String> = (0..parties).map(|i| format!("party-{i}")).collect();
    let names: Vec<String> = (0..WIDTH).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    let text = format!(
        "name = \"bench\"\nparties = {parties:?}\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n[columns]\n\
         y = {{ binary = true }}\n{columns}[sampler]\nchains = {chains}\ndraws = 100000000\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    );
    JobSpec::parse(&text).expect("a job")
}

/// Rounds answered with zeros: neutral ratios.
fn rounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("round");
    for (parties, chains) in [(3, 1), (3, 4), (3, 64), (1000, 4)] {
        let spec = spec(parties, chains);
        let mut sampler = sampler::build(&spec, &PartyMetadata::of_rows(&vec![100_000; parties])).expect("a sampler");
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new(format!("{parties} parties"), format!("{chains} chains")), |b| {
            b.iter(|| {
                let round = sampler.next_round().expect("a round").round().expect("draws to come");
                let totals = Totals::of(&round, &vec![vec![0; round.length()]; parties]).expect("answers that fit");
                sampler.absorb(&totals).expect("answers")
            });
        });
    }
    group.finish();
}

/// Summary of long chains that do not mix. Their autocorrelations are summed over many lags.
fn summary(c: &mut Criterion) {
    let walk = |chain: u64| -> Vec<f64> {
        let (mut state, mut x) = (chain + 1, 0.0);
        let mut step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x = 0.9999 * x + (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            x
        };
        (0..20_000).map(|_| step()).collect()
    };
    let chains: Vec<Vec<f64>> = (0..4).map(walk).collect();
    let slices: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
    c.bench_function("summary of 4 chains of 20,000 draws that do not mix", |b| b.iter(|| summarise(&slices)));
}

/// A draw of noise at three scales of releases: our sampler, and libprio's with rational numbers.
fn noise(c: &mut Criterion) {
    let mut group = c.benchmark_group("noise");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for power in [20, 32, 50] {
        let ours = DiscreteGaussian::new(NoiseScale::from_units(1 << power).expect("a scale"));
        group.bench_function(BenchmarkId::new("ours", power), |b| b.iter(|| ours.sample(&mut rng)));
        let scale = prio::dp::Rational::from_unsigned(1_u128 << power, 1).expect("a scale");
        let libprio = prio::dp::distributions::DiscreteGaussian::new(scale).expect("a law");
        group.bench_function(BenchmarkId::new("libprio", power), |b| b.iter(|| libprio.sample(&mut rng)));
    }
    group.finish();
}

criterion_group!(benches, rounds, summary, noise);
criterion_main!(benches);
