use super::*;

#[test]
#[ignore = "a measurement: cargo test -p conclave-common kernel_speed -- --ignored --nocapture"]
fn kernel_speed() {
    let mut rng = ChaCha20Rng::seed_from_u64(16);
    for case in cases() {
        let rows: Vec<Record> = (0..100_000).map(|_| case.record(&mut rng)).collect();
        let persons: Vec<Vec<Record>> = rows.chunks(3).map(<[Record]>::to_vec).collect();
        let shards = [("rows", shard(&rows)), ("persons of 3", persons::by_person(&case, &persons, 3))];
        let pairs: Vec<_> = (0..4).map(|_| case.step(&mut rng)).collect();
        let k_t = Sensitivity::from_units(1 << 30).unwrap();
        let steps: Vec<Step<'_>> = pairs.iter().map(|(from, to)| Step::new(from, to, k_t)).collect();
        let repeats = 20;
        for (name, data) in &shards {
            let start = std::time::Instant::now();
            for _ in 0..repeats {
                std::hint::black_box(case.model.lattice_sums(data, &steps));
            }
            let per = start.elapsed().as_secs_f64() * 1e9 / (f64::from(repeats) * 4.0 * rows.len() as f64);
            println!("{}, {name}: {per:.2} ns per record and step", case.name);
        }
        let start = std::time::Instant::now();
        for (from, to) in pairs.iter().cycle().take(4_000) {
            std::hint::black_box(case.model.half_range(from, to));
        }
        println!("{}, bound: {:.2} µs", case.name, start.elapsed().as_secs_f64() * 1e6 / 4_000.0);
    }
}
