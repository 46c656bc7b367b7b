//! Information in the time of a reply: none with the delay on; with the delay off, a planted 20 µs is detected.
//!
//! The path is the answering thread's own, from charge to delayed reply, with a ledger in memory where possible. Two jobs to be
//! distinguished are queried in random order.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use conclave_common::model::Model;
use conclave_privacy::mechanism::NoiseScale;
use conclave_privacy::pass::ModelData;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::v1;
use rand::RngExt;
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;
use crate::answer::sandbox::Sandbox;
use crate::answer::testing::Watched;
use crate::ports::JobDelay;
use crate::testing::{MEAN_TOML, budget, masked_toml};

/// Number of replies to each of two jobs.
const REPLIES: usize = 100_000;
/// Longer than the time of an answer from this small shard on an idle machine.
const DELAY: Duration = Duration::from_micros(400);

/// One of the two jobs.
struct Asked {
    job: &'static str,
    noise_sd: f64,
    masked: bool,
    iteration: u64,
    times: Vec<f64>,
    overruns: u64,
}

impl Asked {
    fn new(job: &'static str, noise_sd: f64) -> Self {
        Self { job, noise_sd, masked: false, iteration: 0, times: Vec::with_capacity(REPLIES), overruns: 0 }
    }

    /// Creates a job with answers under masks of ten parties: nine per lane and for the check lane.
    fn masked(job: &'static str, noise_sd: f64) -> Self {
        Self { masked: true, ..Self::new(job, noise_sd) }
    }

    fn toml(&self) -> String {
        let toml = if self.masked { masked_toml(10, 1) } else { MEAN_TOML.to_owned() };
        toml.replace("noise_sd = 1.0", &format!("noise_sd = {:?}", self.noise_sd))
    }

    fn request(&mut self) -> v1::Query {
        self.iteration += 1;
        let noise_scale = NoiseScale::from_sd(self.noise_sd).unwrap().units();
        let proposals =
            (0..2).map(|chain| v1::Proposal { chain, from: vec![0.0], to: vec![1e-9], noise_scale, kind: 0 }).collect();
        v1::Query { job: self.job.into(), iteration: self.iteration, proposals, ..v1::Query::default() }
    }
}

/// Creates a sandbox with both jobs, over shards that differ in one record.
fn sandbox(folder: &Path, extreme: f64, jobs: &[&Asked; 2], delay: Option<Duration>) -> Sandbox {
    let mut sandbox = Sandbox::new(folder, budget()).unwrap();
    for (asked, last) in jobs.iter().zip([0.25, extreme]) {
        let spec = JobSpec::parse(&asked.toml()).unwrap();
        let mut outcome: Vec<f64> = (0..64).map(|i| f64::from(i % 7) / 3.0 - 1.0).collect();
        outcome.push(last);
        sandbox.put_on(asked.job, &spec, ModelData { outcome, ..ModelData::default() }).unwrap();
        let job = sandbox.answerer.jobs.get_mut(asked.job).unwrap();
        job.delay = delay.map(|answer| JobDelay { answer: AnswerDelay { least: answer, proposals: 2 }, open: answer });
    }
    let scales = jobs.map(|asked| NoiseScale::from_sd(asked.noise_sd).unwrap());
    sandbox.answerer.noise.keep(scales);
    sandbox
}

/// Queries both jobs in random order until each has its replies.
fn interleave(sandbox: &mut Sandbox, jobs: &mut [Asked; 2]) {
    let mut rng = rand::rng();
    while jobs.iter().any(|asked| asked.times.len() < REPLIES) {
        let asked = &mut jobs[usize::from(rng.random::<bool>())];
        if asked.times.len() == REPLIES {
            continue;
        }
        let request = asked.request();
        let before = sandbox.answerer.reply_counts().overruns;
        let sent = Instant::now();
        let answer = sandbox.answerer.answer_held(request, sent);
        asked.times.push(sent.elapsed().as_secs_f64() * 1e6);
        asked.overruns += sandbox.answerer.reply_counts().overruns - before;
        assert_eq!(answer.status, Some(0));
    }
}

struct Verdict {
    welch_t: f64,
    ks_p: f64,
    overruns: [u64; 2],
}

impl Verdict {
    /// Returns true if the two cannot be distinguished. Overruns are due to other load on the machine, so their counts differ
    /// like two Poisson counts with one mean.
    fn alike(&self) -> bool {
        let [a, b] = self.overruns.map(|n| n as f64);
        self.welch_t.abs() < 4.5 && self.ks_p > 1e-6 && (a - b).abs() < 4.5 * (a + b).sqrt().max(1.0)
    }
}

fn compare(name: &str, [a, b]: [Asked; 2]) -> Verdict {
    let moments = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (x.len() as f64 - 1.0))
    };
    let ((mean_a, var_a), (mean_b, var_b)) = (moments(&a.times), moments(&b.times));
    let welch_t = (mean_a - mean_b) / (var_a / a.times.len() as f64 + var_b / b.times.len() as f64).sqrt();
    let verdict = Verdict { welch_t, ks_p: kolmogorov_smirnov(&a.times, &b.times), overruns: [a.overruns, b.overruns] };
    println!(
        "{name}: means {mean_a:.3} and {mean_b:.3} µs, sd {:.1} and {:.1}; Welch t {welch_t:.2}, Kolmogorov–Smirnov p {:.2e}, \
         overruns {:?}",
        var_a.sqrt(),
        var_b.sqrt(),
        verdict.ks_p,
        verdict.overruns
    );
    verdict
}

/// Returns the asymptotic p value for two samples with the same distribution.
fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |x: &[f64]| {
        let mut x = x.to_vec();
        x.sort_by(f64::total_cmp);
        x
    };
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j, mut distance) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        while i < a.len() && a[i] <= value {
            i += 1;
        }
        while j < b.len() && b[j] <= value {
            j += 1;
        }
        distance = distance.max((i as f64 / n - j as f64 / m).abs());
    }
    let root = (n * m / (n + m)).sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    let term = |k: i32| (-2.0 * (f64::from(k) * lambda).powi(2)).exp() * if k % 2 == 1 { 2.0 } else { -2.0 };
    if lambda < 0.2 { 1.0 } else { (1..100).map(term).sum::<f64>().clamp(0.0, 1.0) }
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(format!("conclave-timing-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(name: &'static str, extreme: f64, mut jobs: [Asked; 2], delay: Option<Duration>, planted: Option<Duration>) -> Verdict {
    let folder = Folder::new(name);
    let mut sandbox = sandbox(&folder.0, extreme, &[&jobs[0], &jobs[1]], delay);
    if let Some(planted) = planted {
        let slow = move || {
            let began = Instant::now();
            while began.elapsed() < planted {
                std::hint::spin_loop();
            }
        };
        sandbox.answerer.plant_model(jobs[1].job, |inner, _| -> Box<dyn Model> { Box::new(Watched(inner, Box::new(slow))) });
    }
    interleave(&mut sandbox, &mut jobs);
    compare(name, jobs)
}

/// Checks the delay; takes some minutes.
#[test]
#[ignore = "heavy: run by .ci/exhaustive, on a machine with nothing else to do"]
fn reply_times_do_not_depend_on_records_or_noise() {
    let off = run("off", 1.0, [Asked::new("a", 1.0), Asked::new("b", 1.0)], None, Some(Duration::from_micros(20)));
    assert!(!off.alike(), "20 µs were planted and not found");
    let records = run("records", 1.0, [Asked::new("a", 1.0), Asked::new("b", 1.0)], Some(DELAY), None);
    assert!(records.alike());
    // The lowest noise at which the budget covers that number of draws.
    let noise = run("noise", 0.25, [Asked::new("a", 0.1), Asked::new("b", 100_000.0)], Some(DELAY), None);
    assert!(noise.alike());
}

/// The same for masked jobs. Masks are derived from keys and a digest, independently of records; charge, cover and reply are on
/// the same path.
#[test]
#[ignore = "heavy: run by .ci/exhaustive, on a machine with nothing else to do"]
fn masked_reply_times_do_not_depend_on_records_or_noise() {
    let off = run("masked-off", 1.0, [Asked::masked("a", 1.0), Asked::masked("b", 1.0)], None, Some(Duration::from_micros(20)));
    assert!(!off.alike(), "20 µs were planted and not found");
    let records = run("masked-records", 1.0, [Asked::masked("a", 1.0), Asked::masked("b", 1.0)], Some(DELAY), None);
    assert!(records.alike());
    let noise = run("masked-noise", 0.25, [Asked::masked("a", 0.1), Asked::masked("b", 100_000.0)], Some(DELAY), None);
    assert!(noise.alike());
}

/// Signs no key: no job is opened in this test.
struct NoSigner;

impl crate::ports::MaskKeySigner for NoSigner {
    fn sign(
        &self,
        _: &str,
        _: &[u8; 32],
        _: &conclave_privacy::secagg::MaskPublic,
    ) -> Result<v1::MaskKey, conclave_proto::error::Fault> {
        Err(conclave_proto::error::Fault::new(conclave_proto::error::ErrorCode::Internal, "no key"))
    }
}

/// A slow look at the list of revoked members comes before the service of a masked job's message, and takes nothing of its delay.
#[test]
fn the_list_of_revoked_members_is_read_before_the_service_begins() {
    use crate::answer::secrecy::{AtWork, Secrecy};
    use crate::ledger::Secret;
    use crate::secure::{MaskKeys, SecureSettings};
    let folder = tempfile::tempdir().unwrap();
    let mut jobs = [Asked::masked("a", 1.0), Asked::masked("b", 1.0)];
    // A list that can't be read is tried again for 0.4 s, and no query is answered meanwhile.
    let mut sandbox = sandbox(folder.path(), 1.0, &[&jobs[0], &jobs[1]], Some(Duration::from_millis(300)));
    let secret = folder.path().join("secret");
    let parts = Secrecy {
        settings: SecureSettings::default(),
        keys: MaskKeys::beside(&secret, Secret::load_or_make(&secret).unwrap()),
        signer: std::sync::Arc::new(NoSigner),
        ca: folder.path().join("ca.pem"),
        revoked: Some(folder.path().to_owned()),
    };
    sandbox.answerer.secrecy = Some(AtWork { parts, assembly: Default::default(), looked: None, revoked: None });
    let sent = Instant::now();
    let answer = sandbox.answerer.answer_held(jobs[0].request(), sent);
    assert_eq!(answer.status, Some(conclave_proto::convert::AnswerStatus::Halted.to_wire()));
    assert!(sent.elapsed() >= Duration::from_millis(700), "the delay is counted from the end of the look");
    assert_eq!(sandbox.answerer.reply_counts().overruns, 0);
}

#[test]
fn the_tests_of_times_detect_a_planted_difference() {
    let mut rng = rand::rng();
    let normal = Normal::standard();
    let mut sample =
        |shift: f64| -> Vec<f64> { (0..20_000).map(|_| shift + normal.inverse_cdf(rng.random_range(1e-12..1.0))).collect() };
    let (a, b, c) = (sample(0.0), sample(0.0), sample(0.1));
    assert!(kolmogorov_smirnov(&a, &b) > 1e-6);
    assert!(kolmogorov_smirnov(&a, &c) < 1e-6);
    assert_eq!(kolmogorov_smirnov(&a, &a), 1.0);
}
