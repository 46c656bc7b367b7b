//! What the coordinator's sampler takes for a round: asking the proposals and absorbing the answers.

use conclave_common::job::JobSpec;
use conclave_common::sampler::{self, PartyMetadata, Totals};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

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

/// A round answered with zeros: ratios that change nothing.
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

criterion_group!(benches, rounds);
criterion_main!(benches);
