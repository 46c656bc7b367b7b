//! The demo's options, and what of them is refused before anything is made.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conclave_common::job::Secure;
use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_proto::error::{ErrorCode, Fault};

use super::truth::DATA_BUDGET_FACTOR;

/// See it work: three hospitals with made-up records on this machine, one posterior
///
/// Makes records of a known logistic model for every party, a throw-away CA with everyone's certificates, and ledgers;
/// starts the coordinator and the parties as processes of their own on the loopback interface; runs a job over mutual
/// TLS; and prints the posterior beside the true coefficients and what each party has spent. Everything stays in --out,
/// ready to be started again by hand.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Data owners
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = parties)]
    pub(super) parties: usize,
    /// Records of each party
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(super) rows: u64,
    /// Markov chains
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) chains: u32,
    /// Draws per chain, at most: the budget may end the run first. Unless given, chains of ratios end with 50 effective draws, or after 5,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) draws: Option<u64>,
    /// What the job may spend at each party
    #[arg(long, default_value_t = 3.0)]
    pub(super) epsilon: f64,
    /// The delta that goes with it
    #[arg(long, default_value_t = 1e-6)]
    pub(super) delta: f64,
    /// How the posterior is made: by a Markov chain whose every step the parties answer to, by ratios or by gradients; by a few
    /// releases once; or as the planner chooses
    #[arg(long, value_enum, default_value_t = DemoAlgorithm::Penalty)]
    pub(super) algorithm: DemoAlgorithm,
    /// How the parties' answers are opened: each by itself, or their sum alone, which takes three parties and costs each a part of the price
    #[arg(long, value_enum, default_value_t = Opening::Local)]
    pub(super) aggregation: Opening,
    /// With --aggregation secure: how many of the other parties may work with the coordinator. Unless given, the greater half of them
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) colluders: Option<u32>,
    /// How parties write their ledgers
    #[arg(long, value_enum, default_value_t = Durability::Strict)]
    pub(super) durability: Durability,
    /// Seed of the records and of the chains; the noise never has one
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Where everything is left; must be empty or not there
    #[arg(long, value_name = "DIR", default_value = "conclave-demo")]
    pub(super) out: PathBuf,
    /// Serve the coordinator's dashboard and each party's page on this machine, on free ports, say where, and keep them up after the job's end
    /// until Ctrl-C
    #[arg(long)]
    pub(super) pages: bool,
    /// Print one JSON object on standard output: the result, with the true coefficients under "true"
    #[arg(long)]
    pub(super) json: bool,
}

/// The most parties that one demo starts.
const MAX_PARTIES: usize = 100;

fn parties(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=MAX_PARTIES).contains(n)).ok_or_else(|| format!("a demo has 1 to {MAX_PARTIES} parties"))
}

/// What `algorithm` of the demo's job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoAlgorithm {
    /// A Markov chain on noised log likelihood ratios
    Penalty,
    /// The same, its steps taken by Barker's test
    Barker,
    /// A few noised vectors, released once
    NoisyStatistics,
    /// Hamiltonian Monte Carlo driven by noised gradients
    Hmc,
    /// The same without friction, tested on whole log ratios: DP-HMC
    DpHmc,
    /// Stochastic gradient Langevin dynamics on noised gradients, without a test
    Sgld,
    /// Stochastic gradient Hamiltonian Monte Carlo, likewise
    Sghmc,
    /// The stochastic gradient Nosé-Hoover thermostat, likewise
    Sgnht,
    /// Stochastic gradient Fisher scoring, likewise
    Sgfs,
    /// One draw of the posterior among public candidates, with --parties 1
    Ops,
    /// What suits the model
    Auto,
}

impl DemoAlgorithm {
    /// What the job's `algorithm` says.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Penalty => "penalty",
            Self::Barker => "barker",
            Self::NoisyStatistics => "noisy-statistics",
            Self::Hmc | Self::DpHmc => "hmc",
            Self::Sgld => "sgld",
            Self::Sghmc => "sghmc",
            Self::Sgnht => "sgnht",
            Self::Sgfs => "sgfs",
            Self::Ops => "ops",
            Self::Auto => "auto",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Opening {
    /// Every party's answer is opened
    Local,
    /// Answers leave masked, and their sum is opened
    Secure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Durability {
    /// Every answer is on disk before it leaves
    Strict,
    /// A block of charge is on disk ahead, answers follow: faster; a crash forfeits the block
    Reserve,
}

impl DemoArgs {
    /// How many of the other parties may work with the coordinator, where answers leave masked.
    pub(super) fn colluders(&self) -> Option<u32> {
        let usual = Secure::usual_colluders(self.parties);
        (self.aggregation == Opening::Secure).then(|| self.colluders.unwrap_or(usual))
    }
}

/// Everything that can be refused before anything is made.
pub(super) fn check(args: &DemoArgs) -> Result<(), Fault> {
    let input = |message: String| Fault::new(ErrorCode::InvalidInput, message);
    match (args.aggregation, args.colluders, args.parties) {
        (Opening::Local, Some(_), _) => return Err(input("--colluders is of --aggregation secure".to_owned())),
        (Opening::Secure, _, parties) if parties < Secure::FEWEST => {
            return Err(input(format!("--aggregation secure takes {} parties at least: give --parties", Secure::FEWEST)));
        }
        (Opening::Secure, Some(colluders), parties) if colluders as usize > parties - 2 => {
            return Err(input(format!("of {parties} parties at most {} others may collude: lower --colluders", parties - 2)));
        }
        _ => {}
    }
    if args.algorithm == DemoAlgorithm::Ops && args.parties != 1 {
        return Err(input("--algorithm ops draws at one owner: give --parties 1".to_owned()));
    }
    for epsilon in [args.epsilon, DATA_BUDGET_FACTOR * args.epsilon] {
        let budget = Budget::new(epsilon, args.delta).map_err(|e| input(e.to_string()))?;
        PrivacyFilter::new(&budget).map_err(|e| input(e.to_string()))?;
    }
    Ok(())
}
