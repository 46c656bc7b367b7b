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

/// What a gradient, its remainder and a curvature of ten predictors take beside a ratio: in a full frame each component is a weighted sum of all
/// columns, eleven of them where a ratio has two.
#[test]
#[ignore = "a measurement: cargo test -p conclave-common score_speed -- --ignored --nocapture"]
fn score_speed() {
    use super::super::{Frame, Remainder};
    let names: Vec<String> = (0..10).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    let job = format!(
        "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n\
         [columns]\ny = {{ binary = true }}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    );
    let model = crate::job::JobSpec::parse(&job).unwrap().build_model();
    let mut rng = ChaCha20Rng::seed_from_u64(17);
    let records = 200_000;
    let column = |rng: &mut ChaCha20Rng| (0..records).map(|_| rng.random_range(-1.0..1.0_f64)).collect::<Vec<f64>>();
    let data = ModelData {
        outcome: column(&mut rng).iter().map(|y| f64::from(u8::from(*y > 0.0))).collect(),
        predictors: (0..10).map(|_| column(&mut rng)).collect(),
        auxiliary: Vec::new(),
        persons: None,
    };
    let (from, to) = (vec![0.1; 11], vec![0.11; 11]);
    let k_t = Sensitivity::from_units(1 << 30).unwrap();
    let steps = [Step::new(&from, &to, k_t)];
    let scores = model.scores().unwrap();
    let numbers = |full: bool| -> Vec<f64> {
        (0..Frame::length(11))
            .map(|at| {
                if at / 11 == at % 11 {
                    0.2
                } else if full && at < 121 {
                    0.01
                } else {
                    0.0
                }
            })
            .collect()
    };
    let (diagonal, full) = (numbers(false), numbers(true));
    let block = Block::lent(&data);
    let time = |what: &mut dyn FnMut()| {
        let least = (0..15).map(|_| {
            let start = std::time::Instant::now();
            what();
            start.elapsed().as_secs_f64() * 1e9 / f64::from(records)
        });
        least.fold(f64::INFINITY, f64::min)
    };
    let ratio = time(&mut || drop(std::hint::black_box(model.block_sums(&block, &steps))));
    for (name, frame) in [("gradient, a ball", &diagonal), ("gradient, a shaped frame", &full)] {
        let gradient =
            time(&mut || drop(std::hint::black_box(scores.gradient_sum(&block, &from, Frame::new(frame, 11).unwrap()))));
        println!("{name}: {gradient:.1} ns a record, {:.2} times a ratio ({ratio:.1} ns)", gradient / ratio);
        let points = [&[0.095; 11][..], &from, &[0.105; 11]].concat();
        let numbers: Vec<f64> = frame.iter().copied().chain([1e-9; 11]).chain([0.0]).collect();
        let step = Remainder::new(&points, &numbers, 11).unwrap();
        let remainder = time(&mut || drop(std::hint::black_box(scores.remainder_sum(&block, &step, k_t))));
        println!(
            "its remainder: {remainder:.1} ns, {:.2} times a ratio; both {:.2}",
            remainder / ratio,
            (gradient + remainder) / ratio
        );
    }
    let took = time(&mut || drop(std::hint::black_box(scores.curvature_sum(&block, &from, [0.25, 1.0]))));
    println!("curvature: {took:.1} ns a record, {:.2} times a ratio", took / ratio);
}
