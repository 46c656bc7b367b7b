//! A clip that bites is warned of or ends the job; one that is ample changes nothing. In one process.

use conclave_common::job::JobSpec;
use conclave_common::model::ModelData;
use conclave_tests::federation::{Federation, Shard};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal};

const BEND: f64 = 20.0;
const TAU: [f64; 2] = [0.0005, 0.0004];
/// Half width of both outcomes' bounds: seven sds and more.
const WIDTH: f64 = 400.0;

/// The banana of MATH.md, section 7: records at theta = (0, 3).
fn banana(records: usize, seed: u64) -> [Vec<f64>; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let outcome = |mean: f64, tau: f64, rng: &mut ChaCha20Rng| -> Vec<f64> {
        let normal = Normal::new(mean, tau.sqrt().recip()).expect("a normal");
        (0..records).map(|_| normal.sample(rng).clamp(-WIDTH, WIDTH)).collect()
    };
    [outcome(0.0, TAU[0], &mut rng), outcome(3.0, TAU[1], &mut rng)]
}

fn banana_job(slope: f64, epsilon: f64, sampler: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"banana\"\nparties = [\"a\"]\n[model]\nkind = \"banana\"\noutcome = \"y1\"\nsecond_outcome = \"y2\"\na = {BEND}\n\
         tau1 = {}\ntau2 = {}\n[columns]\ny1 = {{ min = -{WIDTH}, max = {WIDTH} }}\ny2 = {{ min = -{WIDTH}, max = {WIDTH} }}\n\
         [prior]\ndefault = \"normal(0, 100)\"\n[sampler]\n{sampler}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\nclip = {{ slope = {slope} }}\n",
        TAU[0], TAU[1]
    ))
    .expect("a job")
}

fn shard([first, second]: &[Vec<f64>; 2]) -> Shard {
    let scaled = |y: &[f64]| y.iter().map(|y| y / WIDTH).collect::<Vec<f64>>();
    Shard::columns(ModelData { outcome: scaled(first), auxiliary: vec![scaled(second)], ..ModelData::default() })
}

const WALK: &str = "chains = 2\nwarmup = 60\nstart = { theta_1 = 0.0, theta_2 = 3.0 }\n\
                    proposal = { kind = \"guided\", radius = { theta_1 = 0.1, theta_2 = 0.3 } }\nlocate_share = 0";

/// With a slope of 0.15 the chains leave for another place: some count along the way says so, and the job ends.
#[test]
fn a_clip_that_bites_does_not_pass_silently() {
    let data = banana(100_000, 31);
    let job = banana_job(0.15, 100.0, &format!("draws = 400\nseed = 3\n{WALK}"));
    let mut federation = Federation::new(job, vec![shard(&data)], 32);
    federation.budget = f64::INFINITY; // the clip is the question here, not cost
    let run = federation.run();
    println!("stop: {:?}\nwarning: {:?}\nrounds {:?}", run.clip_stop, run.clip_warning, run.rounds);
    let warning = run.clip_warning.expect("a warning");
    assert!(warning.contains("privacy.clip") && warning.contains("raise the clip"), "{warning}");
    assert!(run.clip_stop.is_some(), "{warning}");
}

/// With an ample slope nothing is cut, nothing is said, and the posterior is that of a sum over a grid: means within 5 MCSE, sds within a
/// factor that some twenty effective draws allow (one-coordinate moves creep along a banana). A clip that bites moves them by tens of sds.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn an_ample_clip_is_right_and_silent() {
    let data = banana(20_000, 33);
    let job = banana_job(3.0, 400.0, &format!("draws = 12000\nseed = 4\n{WALK}"));
    let mut federation = Federation::new(job, vec![shard(&data)], 34);
    federation.budget = f64::INFINITY;
    let run = federation.run();
    assert_eq!((run.clip_stop.clone(), run.clip_warning.clone()), (None, None));
    let n = data[0].len() as f64;
    let sums: Vec<f64> = data.iter().map(|y| y.iter().sum()).collect();
    // The log likelihood is quadratic in (theta1, theta2 + a theta1²).
    let log_density = |t1: f64, t2: f64| {
        let second = t2 + BEND * t1 * t1;
        TAU[0] * (sums[0] * t1 - 0.5 * n * t1 * t1) + TAU[1] * (sums[1] * second - 0.5 * n * second * second)
    };
    let peak = log_density(0.0, sums[1] / n);
    let mut moments = [[0.0; 3]; 2];
    for i in 0..=800 {
        for j in 0..=3000 {
            let (t1, t2) = (f64::from(i) * 0.005 - 2.0, 6.0 - f64::from(j) * 0.03);
            let weight = (log_density(t1, t2) - peak).exp();
            for (m, x) in moments.iter_mut().zip([t1, t2]) {
                m.iter_mut().enumerate().for_each(|(k, m)| *m += weight * x.powi(k as i32));
            }
        }
    }
    for (at, m) in moments.iter().enumerate() {
        let (mean, s) = (m[1] / m[0], run.summary(at));
        let sd = (m[2] / m[0] - mean * mean).sqrt();
        println!("theta{}: {} ± {} against {mean} ± {sd}, ESS {}", at + 1, s.mean, s.sd, s.ess_bulk);
        assert!(s.ess_bulk > 15.0 && (s.mean - mean).abs() < 5.0 * s.mcse_mean && (0.5..1.6).contains(&(s.sd / sd)));
    }
}

/// A job over few records says that it can't watch its clip, and runs.
#[test]
fn too_few_records_are_said_to_be_too_few() {
    let data = banana(30, 35);
    let job = banana_job(3.0, 1.0, &format!("draws = 20\nseed = 4\n{WALK}"));
    let run = Federation::new(job, vec![shard(&data)], 36).run();
    assert!(run.clip_stop.is_none() && run.clip_warning.expect("a word").contains("could not be watched"));
}

/// The watch spends its share, to within the rounding of a schedule, and no more.
#[test]
fn the_watch_keeps_to_its_share() {
    use conclave_common::mechanism::QueryKind;
    use conclave_common::sampler::Sampler;
    let job = banana_job(3.0, 2.0, &format!("draws = 300\nseed = 5\n{WALK}"));
    let mut sampler = Sampler::new(&job, &[50_000]).expect("a sampler");
    let (mut counts, mut noise) = (0, None);
    while let Some(round) = sampler.next_round().expect("a round") {
        for query in round.queries.iter().filter(|q| q.kind == QueryKind::ClipCount) {
            assert_eq!(query.chain, 2, "a slot of its own");
            assert!(round.queries.iter().any(|q| q.kind == QueryKind::Ratio && q.from == query.from && q.to == query.to));
            (counts, noise) = (counts + 1, Some(query.noise));
        }
        sampler.absorb(&[vec![0; round.queries.len()]]).expect("releases that fit");
    }
    let unit = QueryKind::COUNT_UNIT as f64;
    let spent = f64::from(counts) * (unit / noise.expect("counts").units() as f64).powi(2);
    let filter = conclave_common::accounting::PrivacyFilter::new(&job.privacy.budget).expect("a budget");
    let share = spent / conclave_common::accounting::mu_squared(filter.limit_units());
    // Warm-up: sweeps 0, 25 and 50; sampling, of 150 sweeps: 0, 25, 50 and 100; two steps each.
    assert_eq!(counts, 14);
    assert!((0.0195..=0.0200001).contains(&share), "{share}");
}
