//! `conclave account --subsampled`: what blocks of releases of hidden random samples cost.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use conclave_common::accounting::{
    Adjacency, BlockCharge, Honest, MOST_RELATIVE_SENSITIVITY, RESERVE_LOG2, SamplingProbability, SubsampledError,
    SubsampledRelease, gaussian_dp, mu_squared,
};
use conclave_common::mechanism::{NoiseScale, Sensitivity};
use conclave_proto::error::Fault;
use serde_json::json;

use super::input;
use crate::output::{say, say_json};

/// The noise's scale in lattice units that figures are computed with: fine enough that nothing shows of the lattice.
const SCALE: u64 = 1 << 49;

/// What of the budget's delta is the reserve where no other is named.
const RESERVE: f64 = 0.1;

/// Options of `--subsampled`.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Releases of random samples")]
pub(crate) struct SubsampledArgs {
    /// Count blocks of releases, each of a sample that a unit of privacy is in by chance, hidden, and afresh in each release
    ///
    /// A unit is a row, or a person with all rows. Each release adds up its sample's vectors, none longer than the sensitivity, and adds noise
    /// of standard deviation S to each component. A block is charged when it is opened, as a mu and a part of a reserve of delta; its releases
    /// may then follow one by one, each chosen from all earlier answers.
    ///
    /// Sampling reads fewer rows. It saves no budget at a delta of use: for the same noise in what is estimated from the whole, noise of S/Q on
    /// all rows costs as little or less, and the sample's own scatter comes on top. The output's last line compares.
    #[arg(long, requires = "releases")]
    subsampled: bool,
    /// Probability with which a unit is in a release's sample; rounded up to a multiple of 2^-20
    #[arg(long, value_name = "Q", requires = "subsampled", conflicts_with_all = ["batch", "records"])]
    probability: Option<f64>,
    /// Units in a sample on average: with --records, the probability is their quotient
    #[arg(long, value_name = "B", requires = "subsampled", requires = "records")]
    batch: Option<f64>,
    /// Units there are, a public number
    #[arg(long, value_name = "N", requires = "subsampled", requires = "batch")]
    records: Option<f64>,
    /// Standard deviation of the noise as a multiple of the sensitivity, at least 0.667
    #[arg(long, value_name = "M", requires = "subsampled", conflicts_with_all = ["sensitivity", "noise"])]
    noise_multiplier: Option<f64>,
    /// The most that one unit's vector is long (L2), also under replacement, where the sum may move twice as far
    #[arg(long, value_name = "K", requires = "subsampled", requires = "noise")]
    sensitivity: Option<f64>,
    /// Standard deviation of the noise in each component
    #[arg(long, value_name = "S", requires = "subsampled", requires = "sensitivity")]
    noise: Option<f64>,
    /// Releases in all
    #[arg(long, value_name = "T", requires = "subsampled")]
    releases: Option<u64>,
    /// Equal blocks that the releases come in [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    blocks: Option<u64>,
    /// Numbers in a release, which a ledger counts as draws of noise [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    components: Option<u32>,
    /// Part of delta that is kept back for all blocks together, in equal parts [default: a tenth of delta]
    #[arg(long, value_name = "D", requires = "subsampled")]
    reserve: Option<f64>,
    /// Which data sets are neighbours [default: replace]
    #[arg(long, value_name = "WHICH", requires = "subsampled")]
    adjacency: Option<Neighbours>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Neighbours {
    /// One unit is replaced by another
    Replace,
    /// One unit is added or removed
    AddRemove,
}

impl SubsampledArgs {
    pub(super) fn wanted(&self) -> bool {
        self.subsampled
    }

    /// One release, as asked for.
    fn release(&self) -> Result<SubsampledRelease, Fault> {
        let probability = match (self.probability, self.batch, self.records) {
            (Some(q), None, None) => q,
            (None, Some(batch), Some(records)) if batch > 0.0 && records >= batch && records.is_finite() => batch / records,
            (None, Some(batch), Some(records)) => {
                return Err(input(format!(
                    "--batch is {batch} of --records {records}: a sample has more than no unit on average, and at most all"
                )));
            }
            _ => return Err(input("--subsampled needs --probability, or --batch and --records".to_owned())),
        };
        let relative = match (self.noise_multiplier, self.sensitivity, self.noise) {
            (Some(multiplier), None, None) => positive("--noise-multiplier", multiplier)?.recip(),
            (None, Some(most), Some(noise)) => positive("--sensitivity", most)? / positive("--noise", noise)?,
            _ => return Err(input("--subsampled needs --noise-multiplier, or --sensitivity and --noise".to_owned())),
        };
        if relative > MOST_RELATIVE_SENSITIVITY {
            return Err(refused(&SubsampledError::RelativeSensitivity(relative)));
        }
        let fault = |e: conclave_common::mechanism::MechanismError| input(e.to_string());
        Ok(SubsampledRelease {
            probability: SamplingProbability::at_least(probability).map_err(|e| refused(&e))?,
            sensitivity: Sensitivity::from_units(((relative * SCALE as f64).ceil() as u64).max(1)).map_err(fault)?,
            noise: NoiseScale::from_units(SCALE).map_err(fault)?,
            honest: Honest::ALONE,
            components: self.components.unwrap_or(1),
            adjacency: match self.adjacency.unwrap_or(Neighbours::Replace) {
                Neighbours::Replace => Adjacency::Replace,
                Neighbours::AddRemove => Adjacency::AddRemove,
            },
        })
    }

    /// Releases in all, and blocks that they come in.
    fn counts(&self) -> Result<(u64, u64), Fault> {
        let (releases, blocks) = (self.releases.unwrap_or_default(), self.blocks.unwrap_or(1));
        if releases == 0 {
            return Err(refused(&SubsampledError::Releases(releases)));
        }
        if blocks == 0 || releases % blocks != 0 {
            return Err(input(format!("--blocks is {blocks}: {releases} releases don't come in so many equal blocks")));
        }
        Ok((releases, blocks))
    }

    /// The reserve for all blocks.
    fn reserve(&self, delta: f64) -> Result<f64, Fault> {
        let reserve = self.reserve.unwrap_or(RESERVE * delta);
        if reserve > 0.0 && reserve < delta {
            Ok(reserve)
        } else {
            Err(input(format!("--reserve is {reserve}: give a number above 0 and below --delta, {delta}")))
        }
    }
}

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
    let Blocks { releases, blocks, one, .. } = cost;
    let neighbours = cost.release.adjacency.as_str();
    say!(
        "Each release has a unit with probability {}, and noise of {} times the most that a unit adds.",
        cost.release.probability.get(),
        cost.release.relative_sensitivity().recip()
    );
    say!("A block of {} of them costs, where neighbours are by {neighbours}:", releases / blocks);
    say!("  mu = {}", one.covering_mu());
    say!("  and {} of the reserve of delta", one.reserve());
    say!("  alone, at delta = {delta}                          epsilon = {}", cost.one_epsilon);
    if *blocks > 1 {
        say!("{blocks} such blocks cost mu = {} and {} of the reserve:", cost.mu(), cost.reserve());
        say!("  together, at delta = {delta}                       epsilon = {}", cost.epsilon);
    }
    match cost.composed {
        Some(epsilon) => say!("All {releases} releases were they one block priced by its losses   epsilon = {epsilon}"),
        None => say!("What all {releases} releases lose is beyond what is computed."),
    }
    if one.units > one.covering_units {
        say!("Ledgers count mu = {}, the least price of so many draws of noise.", cost.counted());
    }
    say!("Without sampling, and with the same noise in what is estimated from the whole: mu = {}.", cost.unsampled());
}

fn positive(option: &str, value: f64) -> Result<f64, Fault> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(input(format!("{option} is {value}: give a number above 0"))) }
}

fn refused(error: &SubsampledError) -> Fault {
    input(error.to_string())
}
