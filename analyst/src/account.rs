//! `conclave account`: the privacy officer's calculator.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use conclave_inference::figures::{advanced_composition, zcdp};
use conclave_privacy::accounting::{Budget, bounded_range, gaussian_dp};
use conclave_proto::error::Fault;
use serde_json::{Value, json};

use crate::faults::input;
use crate::output::show;

mod object;
mod paper;
mod renyi;
mod subsampled;
mod subsampled_args;

pub(crate) use object::Account;
use paper::Paper;
use subsampled_args::SubsampledArgs;

/// Account for privacy: the total cost of queries, or the mu that a budget buys
///
/// A release of sensitivity D under noise of standard deviation S costs mu = D/S; squared costs add up.
/// Figures are those of the Gaussian mechanism, without the small reserve that a party's ledger holds back for its
/// discrete noise.
///
/// With --subsampled it accounts for blocks of subsampled releases, each of a secret random sample of the rows or persons.
/// With --paper it prints a paper's own bound beside the accounting that ledgers use.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave account --queries 0.01x4195 --delta 1e-6\n  \
    conclave account --queries 0.05x100 --queries 0.1x50 --delta 1e-6 --json\n  \
    conclave account --epsilon 3 --delta 1e-6\n  \
    conclave account --ops 0.18 --delta 1e-6\n  \
    conclave account --subsampled --batch 1000 --records 1e6 --noise-multiplier 31.6 \\\n      \
    --releases 5000 --delta 1e-6\n  \
    conclave account --subsampled --probability 0.01 --sensitivity 2 --noise 4 --releases 10000 \\\n      \
    --blocks 20 --adjacency add-remove --delta 1e-6 --reserve 1e-7 --json\n  \
    conclave account --paper heikkila --batch 1000 --records 1e6 --releases 5000 --delta 1e-6")]
#[command(group = ArgGroup::new("what").required(true).args(["queries", "epsilon", "ops", "subsampled", "paper"]))]
#[command(group = ArgGroup::new("tests").args(["subsampled", "paper"]))]
pub(crate) struct AccountArgs {
    /// COUNT releases that cost MU each, such as 0.01x4195; may be given several times
    #[arg(long, value_name = "MUxCOUNT")]
    queries: Vec<Queries>,
    /// Epsilon of a budget: prints the mu that it buys
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// Range R of the log probabilities of an exponential-mechanism choice between neighbours: prints the mu of one draw by
    /// algorithm = "ops"
    #[arg(long, value_name = "R")]
    ops: Option<f64>,
    /// The bound by which a paper counts its own algorithm; no ledger charges by it
    #[arg(long, value_name = "PAPER")]
    paper: Option<Paper>,
    /// Delta of the budget, such as 1e-6
    #[arg(long, value_name = "D")]
    delta: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    subsampled: SubsampledArgs,
}

/// `count` releases of `mu` each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Queries {
    mu: f64,
    count: u64,
}

impl FromStr for Queries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mu, count) = text.split_once('x').ok_or("write it as MUxCOUNT, such as 0.01x4195")?;
        let mu: f64 = mu.parse().map_err(|_| format!("{mu:?} is not a number"))?;
        let count: u64 = count.parse().map_err(|_| format!("{count:?} is not a whole number"))?;
        Self::new(mu, count)
    }
}

impl Queries {
    fn new(mu: f64, count: u64) -> Result<Self, String> {
        if !(mu.is_finite() && mu > 0.0) {
            return Err(format!("mu is {mu}: it must be a number above 0"));
        }
        if count == 0 {
            return Err("the count is 0: it must be at least 1".to_owned());
        }
        Ok(Self { mu, count })
    }
}

impl AccountArgs {
    /// Returns the options of no account at this delta.
    fn at(delta: f64) -> Self {
        Self {
            queries: Vec::new(),
            epsilon: None,
            ops: None,
            paper: None,
            delta,
            json: false,
            subsampled: SubsampledArgs::default(),
        }
    }
}

/// Total cost of a list of queries at one delta.
#[derive(Debug, PartialEq)]
struct Cost {
    mu: f64,
    gdp: f64,
    zcdp: f64,
    advanced: Option<f64>,
}

/// Largest delta accepted: above it a mechanism that publishes each record with probability delta would satisfy the guarantee.
const MAX_DELTA: f64 = 0.5;

pub(crate) fn run(args: &AccountArgs) -> Result<ExitCode, Fault> {
    let (object, text) = account(args)?;
    show(args.json, &object, &text);
    Ok(ExitCode::SUCCESS)
}

/// Accounts for `count` releases of `mu` each, for each pair.
///
/// # Errors
/// A delta, a mu or a count out of range.
pub(crate) fn of_releases(releases: &[(f64, u64)], delta: f64) -> Result<Account, Fault> {
    let queries = releases.iter().map(|(mu, count)| Queries::new(*mu, *count)).collect::<Result<_, _>>().map_err(input)?;
    account(&AccountArgs { queries, ..AccountArgs::at(delta) })
}

/// Returns the mu that a budget buys.
///
/// # Errors
/// An epsilon or a delta out of range.
pub(crate) fn of_budget(epsilon: f64, delta: f64) -> Result<Account, Fault> {
    account(&AccountArgs { epsilon: Some(epsilon), ..AccountArgs::at(delta) })
}

/// Accounts for blocks of subsampled releases; `options` has the names of the command's options.
///
/// # Errors
/// Options that are unknown, missing or out of range.
pub(crate) fn of_subsampled(options: Value, delta: f64) -> Result<Account, Fault> {
    let subsampled: SubsampledArgs = serde_json::from_value(options).map_err(|e| input(e.to_string()))?;
    check_delta(delta)?;
    subsampled::account(&subsampled, delta)
}

fn check_delta(delta: f64) -> Result<(), Fault> {
    if delta > 0.0 && delta <= MAX_DELTA {
        return Ok(());
    }
    Err(input(format!("--delta is {delta}: give a number above 0 and at most {MAX_DELTA}")))
}

fn account(args: &AccountArgs) -> Result<Account, Fault> {
    check_delta(args.delta)?;
    if args.paper == Some(Paper::Heikkila) {
        return paper::account(&args.subsampled, args.delta);
    }
    if args.subsampled.is_requested()? {
        return subsampled::account(&args.subsampled, args.delta);
    }
    if let Some(epsilon) = args.epsilon {
        let budget = Budget::new(epsilon, args.delta).map_err(|e| input(e.to_string()))?;
        let mu = gaussian_dp::mu(budget.epsilon, budget.delta);
        let (delta, squared) = (args.delta, mu * mu);
        let text = format!(
            "A budget of ({epsilon}, {delta}) buys mu = {mu}:\nany releases whose squared costs add up to at most {squared}."
        );
        return Ok((json!({ "mu_budget": mu }), text));
    }
    if let Some(range) = args.ops {
        return choice(range, args.delta);
    }
    let cost = cost(&args.queries, args.delta);
    let advanced = match cost.advanced {
        Some(epsilon) => format!("epsilon = {epsilon}"),
        None => "does not apply (queries of several sizes, or too large)".to_owned(),
    };
    let Cost { mu, gdp, zcdp, .. } = cost;
    let text = format!(
        "Together these releases cost mu = {mu}. At delta = {}:\n  \
         Gaussian differential privacy (used by ledgers)        epsilon = {gdp}\n  \
         zero-concentrated differential privacy               epsilon = {zcdp}\n  \
         advanced composition                                 {advanced}",
        args.delta
    );
    let object = json!({ "mu": mu, "epsilon_gdp": gdp, "epsilon_zcdp": zcdp, "epsilon_advanced": cost.advanced });
    Ok((object, text))
}

/// Returns the cost of one choice and its epsilon alone; under pure differential privacy its range is its epsilon.
fn choice(range: f64, delta: f64) -> Result<Account, Fault> {
    if !(range.is_finite() && range > 0.0) {
        return Err(input(format!("--ops is {range}: the range of a choice's log probabilities must be a number above 0")));
    }
    let mu = bounded_range::mu(range);
    let epsilon = gaussian_dp::epsilon(mu, delta);
    let text = format!(
        "A choice whose log probabilities have a range of {range} between neighbours costs mu = {mu}.\n\
         Alone, at delta = {delta}: epsilon = {epsilon}; at delta = 0: epsilon = {range}."
    );
    Ok((json!({ "range": range, "mu": mu, "epsilon_gdp": epsilon, "epsilon_pure": range }), text))
}

fn cost(queries: &[Queries], delta: f64) -> Cost {
    // Queries of equal size share one row, however they were written.
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for q in queries {
        let count = rows.entry(q.mu.to_bits()).or_default();
        *count = count.saturating_add(q.count);
    }
    let squared: f64 = rows.iter().map(|(bits, count)| f64::from_bits(*bits).powi(2) * *count as f64).sum();
    let mu = squared.sqrt();
    let advanced = match rows.iter().next() {
        Some((bits, count)) if rows.len() == 1 => advanced_composition::epsilon(f64::from_bits(*bits), *count, delta),
        _ => None,
    };
    Cost { mu, gdp: gaussian_dp::epsilon(mu, delta), zcdp: zcdp::epsilon(squared / 2.0, delta), advanced }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn queries_parse() {
        assert_eq!("0.01x4195".parse(), Ok(Queries { mu: 0.01, count: 4195 }));
        assert_eq!("1e-3x1000000".parse(), Ok(Queries { mu: 1e-3, count: 1_000_000 }));
        for bad in ["", "0.01", "x3", "0.01x", "0x3", "-1x3", "nanx3", "infx3", "1x0", "1x1.5", "1x-2"] {
            assert!(bad.parse::<Queries>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_delta_that_promises_nothing_is_refused() {
        for (delta, taken) in [(0.5, true), (0.500_001, false), (0.99, false), (1.0, false), (0.0, false), (f64::NAN, false)] {
            for epsilon in [None, Some(1.0)] {
                let queries = if epsilon.is_some() { Vec::new() } else { vec!["0.01x40".parse().unwrap()] };
                let done = run(&AccountArgs {
                    queries,
                    epsilon,
                    ops: None,
                    paper: None,
                    delta,
                    json: true,
                    subsampled: Default::default(),
                });
                assert_eq!(done.is_ok(), taken, "{delta} {epsilon:?}");
                assert!(
                    done.err().is_none_or(|fault| fault.code == conclave_proto::error::ErrorCode::InvalidInput
                        && fault.message.contains("at most 0.5"))
                );
            }
        }
    }

    #[test]
    fn a_range_is_a_number_above_0() {
        for (range, taken) in [(0.18, true), (8.0, true), (0.0, false), (-1.0, false), (f64::NAN, false), (f64::INFINITY, false)]
        {
            assert_eq!(choice(range, 1e-6).is_ok(), taken, "{range}");
        }
    }

    #[test]
    fn queries_of_one_size_are_one_row() {
        let split = cost(&["0.01x40".parse().unwrap(), "0.01x60".parse().unwrap()], 1e-6);
        let whole = cost(&["0.01x100".parse().unwrap()], 1e-6);
        assert_eq!(split, whole);
        assert!(whole.advanced.is_some());
        assert!((whole.gdp / 0.396_857_377_644_083_6 - 1.0).abs() < 1e-9);
        let mixed = cost(&["0.01x40".parse().unwrap(), "0.02x60".parse().unwrap()], 1e-6);
        assert_eq!(mixed.advanced, None);
    }
}
