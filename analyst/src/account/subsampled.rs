//! `conclave account --subsampled`: the cost of blocks of subsampled releases.

use std::fmt::Write as _;

use conclave_privacy::accounting::{BlockCharge, RESERVE_LOG2, SamplingProbability, SubsampledRelease, gaussian_dp, mu_squared};
use conclave_proto::error::Fault;
use serde_json::json;

use super::object::Account;
use super::subsampled_args::{SubsampledArgs, fault};

/// Cost of one block and of all blocks.
struct Blocks {
    release: SubsampledRelease,
    releases: u64,
    blocks: u64,
    one: BlockCharge,
    /// Epsilon of one block at the budget's delta.
    one_epsilon: f64,
    /// Epsilon of all charges and reserves.
    epsilon: f64,
    /// Epsilon of the composed privacy losses without blocks; `None` outside the computable range.
    composed: Option<f64>,
}

impl Blocks {
    fn mu(&self) -> f64 {
        self.one.covering_mu() * (self.blocks as f64).sqrt()
    }

    fn reserve(&self) -> f64 {
        self.one.reserve() * self.blocks as f64
    }

    /// Returns the `mu` that ledgers charge, minimum prices included.
    fn charged(&self) -> f64 {
        (mu_squared(self.one.units) * self.blocks as f64).sqrt()
    }

    /// Returns the `mu` of full-data releases with noise `1 / q` times as large.
    fn unsampled(&self) -> f64 {
        let change = self.release.adjacency.factor() as f64 * self.release.relative_sensitivity();
        self.release.probability.get() * change * (self.releases as f64).sqrt()
    }
}

pub(super) fn account(args: &SubsampledArgs, delta: f64) -> Result<Account, Fault> {
    let release = args.release()?;
    let (releases, blocks) = args.counts()?;
    let part = args.reserve(delta)? / blocks as f64;
    // Rounded down: no block may receive more of the reserve than requested. Values beyond 64 bits are refused later.
    let reserve_units = (part * (1_u64 << RESERVE_LOG2) as f64) as u64;
    let one = release.block_charge(releases / blocks, reserve_units).map_err(|e| fault(&e))?;
    let composed = if release.probability == SamplingProbability::ONE {
        Some(gaussian_dp::epsilon(mu_squared(one.units.saturating_mul(blocks)).sqrt(), delta))
    } else {
        release.losses(releases, delta).map_err(|e| fault(&e))?.epsilon(delta)
    };
    let mut cost = Blocks { release, releases, blocks, one, one_epsilon: 0.0, epsilon: 0.0, composed };
    cost.one_epsilon = gaussian_dp::epsilon(one.covering_mu(), delta - one.reserve());
    cost.epsilon = gaussian_dp::epsilon(cost.mu(), delta - cost.reserve());
    Ok((to_json(&cost), text(&cost, delta)))
}

fn to_json(cost: &Blocks) -> serde_json::Value {
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
        "mu_counted": cost.charged(),
        "mu_unsampled": cost.unsampled(),
    })
}

fn text(cost: &Blocks, delta: f64) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{words}");
    };
    let Blocks { releases, blocks, one, release, .. } = cost;
    let multiplier = short(release.relative_sensitivity().recip());
    line(format_args!(
        "Each release samples a unit with probability {}, under noise of {multiplier:?} times the largest contribution of one \
         unit.",
        release.probability.get()
    ));
    line(format_args!("Neighbours: {}. A block of {} releases costs:", release.adjacency.as_str(), releases / blocks));
    line(format_args!("  mu = {}", one.covering_mu()));
    line(format_args!("  and {:?} of delta, from the reserve", short(one.reserve())));
    line(format_args!("  alone, at delta = {delta:?}: epsilon = {}", cost.one_epsilon));
    if *blocks > 1 {
        line(format_args!("{blocks} such blocks cost mu = {} and {:?} of delta:", cost.mu(), short(cost.reserve())));
        line(format_args!("  together, at delta = {delta:?}: epsilon = {}", cost.epsilon));
    }
    match cost.composed {
        Some(epsilon) => line(format_args!(
            "All {releases} releases by composing their privacy losses, with no other queries between them: epsilon = \
                 {epsilon}"
        )),
        None => line(format_args!("The composed loss of all {releases} releases is outside the computable range.")),
    }
    if one.units > one.covering_units {
        line(format_args!("Ledgers charge mu = {}: the minimum price of this number of noise draws.", cost.charged()));
    }
    line(format_args!("All units in every release, for the same noise in the estimate: mu = {}", cost.unsampled()));
    text.truncate(text.trim_end().len());
    text
}

/// Returns a value without the extra digits of fixed point.
fn short(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(group = clap::ArgGroup::new("tests").args(["subsampled"]))]
    struct Line {
        #[command(flatten)]
        args: SubsampledArgs,
    }

    #[test]
    fn what_no_block_has_is_named() {
        for (more, word) in
            [(["--components", "0"], "numbers"), (["--reserve", "1e-30"], "reserve"), (["--reserve", "0.002"], "reserve")]
        {
            let options = ["account", "--subsampled", "--probability", "0.01", "--noise-multiplier", "2", "--releases", "5"];
            let line = Line::try_parse_from(options.iter().chain(&more)).unwrap();
            let fault = account(&line.args, 0.01).unwrap_err();
            assert!(fault.message.contains(word), "{more:?}: {}", fault.message);
        }
    }
}
