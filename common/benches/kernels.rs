//! Passes over a million made-up records, beside reading them once.

mod shards;

use std::num::NonZeroUsize;

use conclave_common::model::Threads;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shards::{Case, read};

const RECORDS: usize = 1_000_000;
/// A guided step of a chain at so many records: 0.44 of some 0.0035.
const GUIDED: f64 = 0.0015;

fn kernels(c: &mut Criterion) {
    for case in [Case::logistic(RECORDS), Case::linear(RECORDS), Case::gaussian_mean(RECORDS)] {
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

criterion_group!(benches, kernels);
criterion_main!(benches);
