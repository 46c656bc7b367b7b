//! Rounds, draws and decisions of several jobs keep their bits: a run that was started by one build is replayed by the next.

#![allow(clippy::unwrap_used)]

use super::fixtures::{give, sampler_of};
use crate::sampler::Next;
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// FNV-1a over 64-bit words.
struct Digest(u64);

impl Digest {
    fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn values(&mut self, values: &[f64]) {
        self.word(values.len() as u64);
        values.iter().for_each(|x| self.word(x.to_bits()));
    }

    fn query(&mut self, query: &Query) {
        self.word(u64::from(query.chain));
        self.word(u64::from(query.kind.code()));
        self.values(&query.from);
        self.values(&query.to);
        self.word(query.noise.units());
    }

    fn draw(&mut self, draw: &Draw) {
        self.word(u64::from(draw.chain));
        self.word(u64::from(draw.warmup));
        self.values(&draw.theta);
        self.word(u64::from(draw.accepted));
        self.word(draw.log_alpha.to_bits());
        self.word(draw.iteration);
    }
}

/// Returns a number in [-1, 1), different for each position.
fn hashed(iteration: u64, query: usize, party: usize) -> f64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    [iteration, query as u64, party as u64].into_iter().for_each(|word| digest.word(word));
    (digest.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Returns a party's answer: a parabola's ratio, a mean statistic, or a clip count of zero; each with simulated noise of the
/// query's own scale.
fn answer(iteration: u64, at: usize, party: usize, query: &Query) -> i64 {
    let noise = hashed(iteration, at, party) * query.noise.units() as f64;
    let signal = match query.kind {
        QueryKind::Ratio => {
            let off = |theta: &[f64]| -> f64 { theta.iter().map(|x| (x - 0.2) * (x - 0.2)).sum() };
            (off(&query.from) - off(&query.to)) * 40.0 * 4_294_967_296.0
        }
        QueryKind::ClipCount => 0.0,
        QueryKind::Statistic { component } => 12.0 * f64::from(component + 1) * 4_294_967_296.0,
        other => panic!("no chain asks for {other}"),
    };
    (signal + noise) as i64
}

fn run(job: &str) -> u64 {
    let spec = JobSpec::parse(job).unwrap();
    let mut sampler = sampler_of(&spec, &[300, 500]);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    loop {
        let round = match sampler.next_round() {
            Ok(Next::Ask(round)) => round,
            Ok(Next::Done) => break,
            Ok(Next::Stopped(_)) => {
                digest.word(77);
                break;
            }
            Err(other) => panic!("{other}"),
        };
        digest.word(round.iteration);
        digest.word(round.phase as u64);
        round.queries.iter().for_each(|query| digest.query(query));
        let of_party = |party: usize| -> Vec<i64> {
            round.queries.iter().enumerate().map(|(at, query)| answer(round.iteration, at, party, query)).collect()
        };
        give(sampler.as_mut(), &round, &[of_party(0), of_party(1)]);
        digest.word(sampler.acceptance_rate().unwrap().to_bits());
        sampler.take_draws().iter().for_each(|draw| digest.draw(draw));
    }
    sampler.take_draws().iter().for_each(|draw| digest.draw(draw));
    digest.values(&sampler.report().radii.unwrap_or_default());
    digest.0
}

fn linear(sampler: &str, privacy: &str) -> String {
    format!(
        "name = \"t\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nsd = 1.0\n\
         [columns]\ny = {{ min = -4, max = 4 }}\nx = {{ min = -1, max = 1 }}\n[prior]\ndefault = \"normal(0, 2)\"\n\
         [parameters]\nx = {{ min = -1, max = 1.5 }}\n\
         [sampler]\nchains = 3\ndraws = 60\nseed = 9\n{sampler}\n[privacy]\nepsilon = 20.0\ndelta = 1e-6\n{privacy}\n"
    )
}

fn mean(algorithm: &str, sampler: &str) -> String {
    format!(
        "name = \"t\"\nparties = [\"a\", \"b\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
         [columns]\ny = {{ min = -4, max = 4 }}\n[sampler]\nchains = 2\ndraws = 60\nseed = 5\n{sampler}\n\
         [privacy]\nepsilon = 20.0\ndelta = 1e-6\n"
    )
}

const START: &str = "start = { intercept = 0.1, x = 0.2 }";
const RADIUS: &str = "radius = { intercept = 0.2, x = 0.3 }";

fn jobs() -> Vec<(&'static str, String, u64)> {
    let walk = |kind: &str| format!("warmup = 12\nproposal = {{ kind = \"{kind}\", {RADIUS} }}\n{START}");
    let clip = |kind: &str| linear(&walk(kind), "clip = 2.0\nclip_watch_share = 0.5");
    vec![
        ("search", linear("warmup = 12", ""), 0xf6e2_4eaf_dcfc_959c),
        ("guided", linear(&walk("guided"), ""), 0xa856_5248_dd32_8dc1),
        ("componentwise", linear(&walk("componentwise"), ""), 0x0a10_475b_bfc0_272f),
        ("random_walk", linear(&walk("random_walk"), ""), 0x9044_2184_adc9_1ac7),
        ("truncated_walk", linear(&walk("truncated_walk"), ""), 0x1815_1544_794c_5af3),
        ("rotate", linear("warmup = 40\nproposal = { rotate = true }", ""), 0xc6ad_72d9_154e_08b8),
        ("until_rhat", linear("warmup = { until_rhat = 1.05, max = 90 }", ""), 0x9742_97b8_cd02_9e65),
        (
            "rotate until_rhat",
            linear("proposal = { rotate = true }\nwarmup = { until_rhat = 1.001, max = 90 }", ""),
            0x0239_4d07_ecf8_de42,
        ),
        ("measured again", linear(&format!("warmup = 40\n{START}"), ""), 0x5998_c325_c47a_53b3),
        (
            "rotate and measured again",
            linear(&format!("warmup = 40\nproposal = {{ rotate = true }}\n{START}"), ""),
            0x6c2b_bf58_ad14_663a,
        ),
        (
            "given starts",
            linear(
                &format!(
                    "warmup = 0\nproposal = {{ {RADIUS} }}\nstarts = [{{ intercept = 0.1, x = 0.2 }}, {{ intercept = 0.3, x = -0.4 }}, {{ intercept = 0, x = 1 }}]"
                ),
                "",
            ),
            0x44d1_2467_a056_7e07,
        ),
        // The digests since the build in which an active clip has no centre.
        ("clip, guided", clip("guided"), 0x8e6f_b26a_c497_6d5d),
        ("clip, random_walk", clip("random_walk"), 0xe381_1b5b_86ff_4279),
        ("clip and search", linear("warmup = 30", "clip = 2.0\nclip_watch_share = 0.5"), 0x5bff_c73c_89dc_9cc4),
        ("centred mean", mean("penalty", "warmup = 12"), 0x1c94_bf56_1157_d84d),
        ("statistics", mean("penalty-exp-family", "warmup = 12"), 0xc6d8_9756_3b09_8fce),
        ("statistics, start", mean("penalty-exp-family", "warmup = 12\nstart = { mean = 0.1 }"), 0x152c_366b_318d_7bb4),
        (
            "statistics, start and radius",
            mean(
                "penalty-exp-family",
                "warmup = { until_rhat = 1.1, max = 70 }\nproposal = { radius = 0.05 }\nstart = { mean = 0.1 }",
            ),
            0x3d2b_6f44_42b0_6d82,
        ),
    ]
}

#[test]
fn runs_keep_their_bits() {
    let found: Vec<(&str, u64, u64)> = jobs().iter().map(|(name, job, digest)| (*name, run(job), *digest)).collect();
    let other: Vec<String> = found
        .iter()
        .filter(|(_, found, digest)| found != digest)
        .map(|(name, found, _)| format!("{name}: {found:#018x}"))
        .collect();
    assert!(other.is_empty(), "other digests:\n{}", other.join("\n"));
}
