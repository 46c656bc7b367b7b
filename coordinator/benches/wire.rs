//! Cost of encoding and decoding a round: `cargo bench -p conclave-coordinator --bench wire`.
//!
//! Messages of 1, 16 and 64 chains with ten parameters, through the conversions that coordinator and party use.
//! `bench/round_trip.py` and `bench/parties.py` measure sockets and TLS.

use std::hint::black_box;

use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_proto::convert::{Answer, answer_from_wire, answer_to_wire, query_from_wire, query_to_wire};
use conclave_proto::v1;
use criterion::{BenchmarkId, Criterion, Throughput};
use prost::Message;

const JOB: &str = "6f1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01";

fn queries(chains: u32, noise: NoiseScale) -> Vec<Query> {
    let theta = |shift: f64| (0..10).map(|at| 0.1 * f64::from(at) + shift).collect::<Vec<f64>>();
    let query = |chain| Query { chain, kind: QueryKind::Ratio, from: theta(0.0), to: theta(0.01), noise };
    (0..chains).map(query).collect()
}

fn round(criterion: &mut Criterion) -> Result<(), Box<dyn std::error::Error>> {
    let noise = NoiseScale::from_sd(1.0)?;
    for chains in [1, 16, 64] {
        let queries = queries(chains, noise);
        let encoded = query_to_wire(JOB, 7, &queries).encode_to_vec();
        let outcome = Ok((0..i64::from(chains)).map(|at| at << 30).collect());
        let answer = answer_to_wire(&Answer { job: JOB.into(), iteration: 7, outcome }, queries.len()).encode_to_vec();
        let mut group = criterion.benchmark_group("wire");
        group.throughput(Throughput::Elements(u64::from(chains)));
        group.bench_function(BenchmarkId::new("a query to its bytes", chains), |bencher| {
            bencher.iter(|| query_to_wire(JOB, 7, black_box(&queries)).encode_to_vec());
        });
        group.bench_function(BenchmarkId::new("a query from its bytes", chains), |bencher| {
            bencher.iter(|| v1::Query::decode(black_box(encoded.as_slice())).map(query_from_wire));
        });
        group.bench_function(BenchmarkId::new("an answer from its bytes", chains), |bencher| {
            bencher.iter(|| v1::Answer::decode(black_box(answer.as_slice())).map(answer_from_wire));
        });
        group.finish();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    round(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}
