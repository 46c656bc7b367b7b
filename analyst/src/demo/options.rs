//! The demo's options, and the checks made before any file is created.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conclave_common::job::Secure;
use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_proto::error::Fault;

use super::truth::DATA_BUDGET_FACTOR;
use crate::faults::input;
use crate::interval::IntervalArgs;

/// Try it: three hospitals with simulated records on this machine, one posterior
///
/// Simulates records of a known logistic model for every party; creates a temporary CA with all certificates, and ledgers;
/// starts the coordinator and the parties as separate processes on the loopback interface; runs a job over mutual TLS; and
/// prints the posterior beside the true coefficients and the budget that each party has spent. All files stay in --out, from
/// which the demo can be started again by hand.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Number of data owners
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = parties)]
    pub(super) parties: usize,
    /// Records per party
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(super) rows: u64,
    /// Number of Markov chains [default: 4; of hmc 2, so that each is long enough for its R-hat]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) chains: Option<u32>,
    /// Maximum draws per chain; the budget may end the run earlier. By default, ratio chains end with 50 effective draws or after
    /// 5,000 draws
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) draws: Option<u64>,
    /// Budget of the job at each party
    #[arg(long, default_value_t = 3.0)]
    pub(super) epsilon: f64,
    /// Delta of that budget
    #[arg(long, default_value_t = 1e-6)]
    pub(super) delta: f64,
    /// Algorithm of the posterior: a Markov chain on the parties' answers at every step (ratios or gradients), inference from a
    /// few releases, or the planner's choice
    #[arg(long, value_enum, default_value_t = DemoAlgorithm::Penalty)]
    pub(super) algorithm: DemoAlgorithm,
    /// Opening of the parties' answers: each separately, or only their sum, which needs three parties and lowers each one's cost
    #[arg(long, value_enum, default_value_t = Aggregation::Local)]
    pub(super) aggregation: Aggregation,
    /// With --aggregation secure: the number of other parties that may collude with the coordinator [default: the larger half]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) colluders: Option<u32>,
    /// Durability of the parties' ledgers
    #[arg(long, value_enum, default_value_t = Durability::Strict)]
    pub(super) durability: Durability,
    /// Seed of the records and of the chains; the noise is never seeded
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Output folder; must be empty or missing
    #[arg(long, value_name = "DIR", default_value = "conclave-demo")]
    pub(super) out: PathBuf,
    /// Serve the coordinator's dashboard and each party's page on free ports of this machine, print their addresses, and keep
    /// them up after the job until Ctrl-C
    #[arg(long)]
    pub(super) pages: bool,
    /// Print the result as one JSON object on standard output, with the true coefficients under "true"
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) interval: IntervalArgs,
}

const MAX_PARTIES: usize = 100;

fn parties(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=MAX_PARTIES).contains(n)).ok_or_else(|| format!("a demo has 1 to {MAX_PARTIES} parties"))
}

/// Returns the name of an option's value.
pub(super) fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Algorithm of the demo's job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoAlgorithm {
    /// A Markov chain on noised log likelihood ratios
    Penalty,
    /// The same, with steps decided by Barker's test
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
    /// The planner's choice for the model
    Auto,
}

impl DemoAlgorithm {
    /// Returns the job's `algorithm`.
    pub(super) fn name(self) -> String {
        if self == Self::DpHmc { name(Self::Hmc) } else { name(self) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Aggregation {
    /// Every party's answer is opened
    Local,
    /// Answers are masked, and only their sum is opened
    Secure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Durability {
    /// Every answer is written to disk before it is sent
    Strict,
    /// A block of charges is written to disk in advance, answers later: faster, but a crash forfeits the block
    Reserve,
}

impl DemoArgs {
    /// Returns the number of chains.
    pub(super) fn chains(&self) -> u32 {
        let usual = match self.algorithm {
            DemoAlgorithm::Ops => 1,
            DemoAlgorithm::Hmc => 2,
            _ => 4,
        };
        self.chains.filter(|_| self.algorithm != DemoAlgorithm::Ops).unwrap_or(usual)
    }

    /// Returns the number of other parties that may collude with the coordinator, for masked answers.
    pub(super) fn colluders(&self) -> Option<u32> {
        let usual = Secure::usual_colluders(self.parties);
        (self.aggregation == Aggregation::Secure).then(|| self.colluders.unwrap_or(usual))
    }
}

/// Checks everything that can be refused before any file is created.
pub(super) fn check(args: &DemoArgs) -> Result<(), Fault> {
    match (args.aggregation, args.colluders, args.parties) {
        (Aggregation::Local, Some(_), _) => return Err(input("--colluders requires --aggregation secure".to_owned())),
        (Aggregation::Secure, _, parties) if parties < Secure::FEWEST => {
            return Err(input(format!("--aggregation secure needs at least {} parties: raise --parties", Secure::FEWEST)));
        }
        (Aggregation::Secure, Some(colluders), parties) if colluders as usize > parties - 2 => {
            return Err(input(format!("with {parties} parties, at most {} others may collude: lower --colluders", parties - 2)));
        }
        _ => {}
    }
    if args.algorithm == DemoAlgorithm::Ops && args.parties != 1 {
        return Err(input("--algorithm ops draws at one owner: use --parties 1".to_owned()));
    }
    for epsilon in [args.epsilon, DATA_BUDGET_FACTOR * args.epsilon] {
        let budget = Budget::new(epsilon, args.delta).map_err(|e| input(e.to_string()))?;
        PrivacyFilter::new(&budget).map_err(|e| input(e.to_string()))?;
    }
    Ok(())
}
