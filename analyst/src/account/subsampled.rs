//! `conclave account --subsampled`: what blocks of releases of hidden random samples cost.

use std::process::ExitCode;

use conclave_privacy::accounting::{BlockCharge, RESERVE_LOG2, SamplingProbability, SubsampledRelease, gaussian_dp, mu_squared};
use conclave_proto::error::Fault;
use serde_json::json;

use super::subsampled_args::{SubsampledArgs, refused};
use crate::output::{say, say_json};

/// What blocks cost, alone and together.
struct Blocks {
    release: SubsampledRelease,
    releases: u64,
    blocks: u64,
    one: BlockCharge,
    /// Of one block at the budget's delta.
    one_epsilon: f64,
    /// Of the charges and reserves of all.
    epsilon: f64,
    /// Of the releases' losses, were there no blocks; `None` beyond what is computed.
    composed: Option<f64>,
}

impl Blocks {
    fn mu(&self) -> f64 {
        self.one.covering_mu() * (self.blocks as f64).sqrt()
    }

    fn reserve(&self) -> f64 {
        self.one.reserve() * self.blocks as f64
    }

    /// `mu` that ledgers count, by least prices.
    fn counted(&self) -> f64 {
        (mu_squared(self.one.units) * self.blocks as f64).sqrt()
    }

    /// Of all units, with noise `1 / q` times as large.
    fn unsampled(&self) -> f64 {
        let moved = self.release.adjacency.factor() as f64 * self.release.relative_sensitivity();
        self.release.probability.get() * moved * (self.releases as f64).sqrt()
    }
}

pub(super) fn run(args: &SubsampledArgs, delta: f64, json: bool) -> Result<ExitCode, Fault> {
    let release = args.release()?;
    let (releases, blocks) = args.counts()?;
    let part = args.reserve(delta)? / blocks as f64;
    // Rounded down, so that no block has more of it than was named. Beyond 64 bits it is refused all the same.
    let reserve_units = (part * (1_u64 << RESERVE_LOG2) as f64) as u64;
    let one = release.block_charge(releases / blocks, reserve_units).map_err(|e| refused(&e))?;
    let composed = if release.probability == SamplingProbability::ONE {
        Some(gaussian_dp::epsilon(mu_squared(one.units.saturating_mul(blocks)).sqrt(), delta))
    } else {
        release.losses(releases, delta).map_err(|e| refused(&e))?.epsilon(delta)
    };
    let mut cost = Blocks { release, releases, blocks, one, one_epsilon: 0.0, epsilon: 0.0, composed };
    cost.one_epsilon = gaussian_dp::epsilon(one.covering_mu(), delta - one.reserve());
    cost.epsilon = gaussian_dp::epsilon(cost.mu(), delta - cost.reserve());
    if json {
        say_json(&in_json(&cost))
    } else {
        say_all(&cost, delta)
    }
    Ok(ExitCode::SUCCESS)
}

fn in_json(cost: &Blocks) -> serde_json::Value {
    json!({
        "probability": cost.release.probability.get(),
        "relative_sensitivity": cost.release.relative_sensitivity(),
        "adjacency": cost.release.adjacency.as_str(),
        "releases": cost.releases,
        "blocks": cost.blocks,
        "mu_block": cost.one.covering_mu(),
        "delta_block": cost.one.reserve(),
        "epsilon_block": cost.one_epsilon,
        "mu": cost.mu(),
        "delta_reserve": cost.reserve(),
        "epsilon": cost.epsilon,
        "epsilon_composed": cost.composed,
        "mu_counted": cost.counted(),
        "mu_unsampled": cost.unsampled(),
    })
}

fn say_all(cost: &Blocks, delta: f64) {
    let Blocks { releases, blocks, one, release, .. } = cost;
    let multiplier = short(release.relative_sensitivity().recip());
    say!(
        "In each release a unit is with probability {}, under noise of {multiplier:?} times the most that it adds.",
        release.probability.get()
    );
    say!("Neighbours by {}. A block of {} releases costs:", release.adjacency.as_str(), releases / blocks);
    say!("  mu = {}", one.covering_mu());
    say!("  and {:?} of delta, out of a reserve", short(one.reserve()));
    say!("  alone, at delta = {delta:?}: epsilon = {}", cost.one_epsilon);
    if *blocks > 1 {
        say!("{blocks} such blocks cost mu = {} and {:?} of delta:", cost.mu(), short(cost.reserve()));
        say!("  together, at delta = {delta:?}: epsilon = {}", cost.epsilon);
    }
    match cost.composed {
        Some(epsilon) => {
            say!("All {releases} releases by their losses alone, with nothing asked beside them: epsilon = {epsilon}")
        }
        None => say!("What all {releases} releases lose together is beyond what is computed."),
    }
    if one.units > one.covering_units {
        say!("Ledgers count mu = {}: the least price of so many draws of noise.", cost.counted());
    }
    say!("All units in every release, for the same noise in what is estimated: mu = {}", cost.unsampled());
}

/// What was asked for, without the digits that fixed point adds.
fn short(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        asked: SubsampledArgs,
    }

    #[test]
    fn what_no_block_has_is_named() {
        for (more, word) in
            [(["--components", "0"], "numbers"), (["--reserve", "1e-30"], "reserve"), (["--reserve", "0.002"], "reserve")]
        {
            let asked = ["account", "--subsampled", "--probability", "0.01", "--noise-multiplier", "2", "--releases", "5"];
            let line = Line::try_parse_from(asked.iter().chain(&more)).unwrap();
            let fault = run(&line.asked, 0.01, true).unwrap_err();
            assert!(fault.message.contains(word), "{more:?}: {}", fault.message);
        }
    }
}
