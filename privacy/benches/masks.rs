//! Costs of secure aggregation for a participant: one key agreement, and masks in every round.

use conclave_privacy::secagg::{MaskSecret, Member, PairKeys, Roster, round_digest};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use zeroize::Zeroizing;

fn secret(place: usize) -> MaskSecret {
    let mut bytes = Zeroizing::new([7; 32]);
    // X25519 sets some bits of the first byte itself.
    bytes[8..16].copy_from_slice(&(place as u64).to_le_bytes());
    MaskSecret::from_bytes(bytes)
}

fn roster(count: usize) -> Roster {
    let member = |place: usize| {
        let mut identity = [0; 32];
        identity[..8].copy_from_slice(&(place as u64).to_le_bytes());
        Member { name: format!("party-{place}"), identity, public: secret(place).public() }
    };
    Roster::new("job", [1; 32], 1, (0..count).map(member).collect()).expect("a roster")
}

fn masks(c: &mut Criterion) {
    let digest = round_digest(&[3; 32], 1, 0, &[[5; 32]]);
    for count in [3, 10, 100, 1000] {
        let roster = roster(count);
        let own = secret(count / 2);
        let keys = PairKeys::agree(&roster, count / 2, &own).expect("keys");
        let mut group = c.benchmark_group(format!("{count} members"));
        group.throughput(Throughput::Elements(count as u64 - 1));
        // One chain and its check, four chains and theirs, and sixty-four.
        for lanes in [2, 4, 5, 65] {
            group.bench_function(BenchmarkId::new("masks", lanes), |b| b.iter(|| keys.masks(&digest, lanes)));
        }
        group.sample_size(10);
        group.bench_function("agreement", |b| b.iter(|| PairKeys::agree(&roster, count / 2, &own)));
        group.finish();
    }
}

criterion_group!(benches, masks);
criterion_main!(benches);
