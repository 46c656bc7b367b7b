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

/// Returns a logistic regression with this many predictors, and generated records.
fn regression(predictors: usize, records: usize) -> (Box<dyn Model>, ModelData) {
    let names: Vec<String> = (0..predictors).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    let job = format!(
        "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n\
         [columns]\ny = {{ binary = true }}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    );
    let mut rng = ChaCha20Rng::seed_from_u64(17);
    let mut column = || (0..records).map(|_| rng.random_range(-1.0..1.0_f64)).collect::<Vec<f64>>();
    let data = ModelData {
        outcome: column().iter().map(|y| f64::from(u8::from(*y > 0.0))).collect(),
        predictors: (0..predictors).map(|_| column()).collect(),
        auxiliary: Vec::new(),
        persons: None,
    };
    (JobSpec::parse(&job).unwrap().build_model(), data)
}

/// Times of a gradient, its remainder and a curvature relative to a ratio. In a full frame a gradient's squared length takes one
/// weighted sum per parameter, where a ratio takes two.
#[test]
#[ignore = "a measurement: cargo test -p conclave-common score_speed -- --ignored --nocapture"]
fn score_speed() {
    use super::super::Remainder;
    use conclave_privacy::pass::{Blocks, CachedBlocks, Frame, WeightCache};
    for predictors in [5, 10, 20] {
        let (model, data) = regression(predictors, 200_000);
        let d = predictors + 1;
        let (from, to) = (vec![0.1; d], vec![0.11; d]);
        let k_t = Sensitivity::from_units(1 << 30).unwrap();
        let steps = [Step::new(&from, &to, k_t)];
        let scores = model.scores().unwrap();
        let entry = |at: usize, full: bool| match (at / d, at % d) {
            (k, j) if k == j => 0.2,
            (k, j) if full && k < d => 0.01 * (((k * 7 + j * 3) % 13) as f64 / 6.0 - 1.0),
            _ => 0.0,
        };
        let kept = WeightCache::new((data.records(), data.count()), 1);
        let keeping = CachedBlocks::new(&data, &kept);
        let pass = |sum: &dyn Fn(&Block<'_>)| (0..keeping.count()).for_each(|at| sum(&keeping.block(at).unwrap()));
        // Interleaved, so that other load on the machine affects all of them.
        let time = |sums: &[&dyn Fn(&Block<'_>)]| {
            let mut least = vec![f64::INFINITY; sums.len()];
            for _ in 0..50 {
                for (least, sum) in least.iter_mut().zip(sums) {
                    let start = std::time::Instant::now();
                    pass(sum);
                    *least = least.min(start.elapsed().as_secs_f64() * 1e9 / data.outcome.len() as f64);
                }
            }
            least
        };
        let of_ratio = |block: &Block<'_>| drop(std::hint::black_box(model.block_sums(block, &steps)));
        for (name, full) in [("a ball", false), ("a shaped frame", true)] {
            let frame: Vec<f64> = (0..Frame::length(d)).map(|at| entry(at, full)).collect();
            let points = [vec![0.095; d], from.clone(), vec![0.105; d]].concat();
            let numbers: Vec<f64> = frame.iter().copied().chain(vec![1e-9; d]).chain([0.0]).collect();
            let step = Remainder::new(&points, &numbers, d).unwrap();
            let of_gradient =
                |block: &Block<'_>| drop(std::hint::black_box(scores.gradient_sum(block, &from, Frame::new(&frame, d).unwrap())));
            let of_remainder = |block: &Block<'_>| drop(std::hint::black_box(scores.remainder_sum(block, &step, k_t)));
            let least = time(&[&of_ratio, &of_gradient, &of_remainder]);
            let [ratio, gradient, remainder] = least[..] else { panic!("three") };
            println!(
                "{predictors} predictors, {name}: a ratio {ratio:.1} ns a record, a gradient {gradient:.1}, its remainder {remainder:.1}: {:.2} times",
                (gradient + remainder) / ratio
            );
        }
        let of_curvature = |block: &Block<'_>| drop(std::hint::black_box(scores.curvature_sum(block, &from, [0.25, 1.0])));
        let least = time(&[&of_ratio, &of_curvature]);
        println!("{predictors} predictors, curvature: {:.1} ns a record, {:.2} times a ratio", least[1], least[1] / least[0]);
    }
}
