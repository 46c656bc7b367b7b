//! The demo itself with default settings, over several seeds: the private posterior of three data owners against the non-private
//! posterior of their pooled records.

use std::process::Command;
use std::time::Instant;

use conclave_tests::cluster::json;
use conclave_tests::logistic_reference::{Pooled, laplace};

use crate::EXE;

/// Default number of seeds, overridden by `CONCLAVE_DEMO_SEEDS`.
const SEEDS: u64 = 2;
const PARTIES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const PRIOR_SD: f64 = 2.5;

/// The limits: every mean within 0.6 sd, the errors' root mean square at most 0.25 sd, sds within 20%, split R-hat below 1.1.
///
/// The reference is Laplace's approximation. At n = 300,000, mean and mode differ by about 1/sqrt(n) sds, 0.002, and the sds by a
/// relative 1/n: both are a hundredth of the limits.
///
/// Records and proposals have the demo's seeds 1 and 2; the noise comes from the operating system and differs every time. An
/// error's own sd is about 0.09 sd and an sd's relative error about 5%. The probability that any of 8 errors exceeds 0.6 sd is
/// below 1e-9, and that any of 8 sds exceeds 20% about 0.0005. The root mean square is 0.09 against the limit of 0.25, which a
/// chi-square of 8 degrees exceeds with a probability of 2e-10. `demo_design` checks the same limits over more seeds in one
/// process.
///
/// R-hat is the tightest: among 96 values in the design's trials (`demo_design`, mean ESS 174) the largest was 1.073. Among 152
/// of an earlier design with an ESS of 145 the largest was 1.087, and beyond 1.06 their number fell e-fold every 0.012. At this
/// ESS, one of 8 exceeds 1.1 with a probability near 0.004.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn seeds_of_the_real_demo() {
    let seeds = std::env::var("CONCLAVE_DEMO_SEEDS").map_or(SEEDS, |n| n.parse().expect("a number"));
    let (mut squares, mut worst, mut worst_sd, mut worst_rhat) = (0.0, 0.0f64, 0.0f64, 0.0f64);
    println!("per coefficient: error of the mean in sds, ratio of sds, R-hat, bulk ESS");
    for seed in 1..=seeds {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("demo");
        let started = Instant::now();
        let output = Command::new(EXE)
            .args(["demo", "--algorithm", "penalty", "--draws", "5000", "--seed", &seed.to_string(), "--json", "--out"])
            .arg(&out)
            .output()
            .expect("the demo starts");
        let seconds = started.elapsed().as_secs_f64();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
        let files: Vec<_> = PARTIES.iter().map(|p| out.join(p).join("admissions.csv")).collect();
        let predictors = [("treated", Some((0.0, 1.0))), ("dose", Some((0.0, 2.0))), ("age", Some((20.0, 80.0)))];
        let pooled = Pooled::read(&files, "readmitted", &predictors);
        assert_eq!(pooled.records(), 300_000);
        let (mean, sd) = laplace(&|theta| pooled.log_posterior(theta, PRIOR_SD), &[0.0; 4]);

        let mut line = format!("seed {seed:2} {seconds:4.1} s, {} rounds:", result["iterations"]);
        for (j, row) in result["posterior"].as_array().expect("rows").iter().enumerate() {
            let figure = |key: &str| row[key].as_f64().expect("a number");
            let (error, ratio, rhat) = ((figure("mean") - mean[j]) / sd[j], figure("sd") / sd[j], figure("rhat"));
            squares += error * error;
            worst = worst.max(error.abs());
            worst_sd = worst_sd.max((ratio - 1.0).abs());
            worst_rhat = worst_rhat.max(rhat);
            line += &format!(" | {error:+.2} {ratio:.2} {rhat:.3} {:3.0}", figure("ess_bulk"));
        }
        println!("{line}");
        for party in result["parties"].as_array().expect("parties") {
            assert!(party["epsilon_spent"].as_f64() <= Some(3.0), "{party}");
        }
    }
    let rms = (squares / (4 * seeds) as f64).sqrt();
    println!("rms {rms:.3} (limit 0.25), worst {worst:.2} (0.6), sds off by {worst_sd:.2} (0.2), R-hat {worst_rhat:.3} (1.1)");
    assert!(worst <= 0.6 && rms <= 0.25 && worst_sd <= 0.2 && worst_rhat < 1.1);
}

/// Five owners, one of whom may collude with the coordinator: only the sum of their answers is opened, so the noise of four
/// protects each. The demo's epsilon then buys four times the rounds and the effective draws.
///
/// A round's price is proportional to the square of the step, which follows the posterior sds from a noisy search. Their relative
/// error is about a tenth, less in a sum. The effective draws of a local and a masked run are known to about 15% and 8%. Over
/// three seeds both ratios are within 40% of 4 with near certainty; without the others' noise in the price they are 1.
/// (`statistics secure_gain` has steps of one length, with limits of 2% and 10%.)
#[test]
#[ignore = "takes minutes"]
fn five_owners_have_four_times_the_effective_draws() {
    let run = |seed: u64, more: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new(EXE)
            .args(["demo", "--algorithm", "penalty", "--parties", "5", "--epsilon", "2", "--draws", "1000000", "--json"])
            .args(["--seed", &seed.to_string(), "--out"])
            .arg(folder.path().join("demo"))
            .args(more)
            .output()
            .expect("the demo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
        assert_eq!(result["stopped_by"], "budget");
        let spent: Vec<f64> =
            result["parties"].as_array().expect("parties").iter().filter_map(|party| party["epsilon_spent"].as_f64()).collect();
        assert!(spent.len() == 5 && spent.iter().all(|epsilon| (1.95..=2.0).contains(epsilon)), "{spent:?}");
        let ess: Vec<f64> =
            result["posterior"].as_array().expect("rows").iter().filter_map(|row| row["ess_bulk"].as_f64()).collect();
        (result["iterations"].as_f64().expect("a number"), ess.iter().sum::<f64>() / ess.len() as f64)
    };
    let (mut local, mut masked) = ((0.0, 0.0), (0.0, 0.0));
    for seed in 1..=3 {
        for (sum, more) in [(&mut local, &[][..]), (&mut masked, &["--aggregation", "secure", "--colluders", "1"])] {
            let (rounds, ess) = run(seed, more);
            println!("seed {seed}: {rounds} rounds, ESS {ess:.0}");
            *sum = (sum.0 + rounds, sum.1 + ess);
        }
    }
    let (rounds, ess) = (masked.0 / local.0, masked.1 / local.1);
    println!("rounds {rounds:.2} times, ESS {ess:.2} times");
    for ratio in [rounds, ess] {
        assert!((ratio / 4.0 - 1.0).abs() < 0.4, "{rounds} {ess}");
    }
}
