//! `conclave account --paper`: a paper's own privacy bound, beside the ledger's accounting of the same releases.

use clap::ValueEnum;
use conclave_privacy::accounting::gaussian_dp;
use conclave_proto::error::Fault;
use serde_json::{Value, json};

use super::object::Account;
use super::renyi::{Bound, SampledTests, corollary_1};
use super::subsampled_args::{SubsampledArgs, fault};
use crate::faults::input;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// Heikkilä, Jälkö, Dikmen & Honkela (2019): Barker's test. With --batch and --records Theorem 2 and Corollary 2, with
    /// --sensitivity (bound on a log ratio) and --noise Theorem 1 and Corollary 1; with neither the paper's experiment
    Heikkila,
}

/// Sample, records and tests of the paper's experiment.
const EXPERIMENT: SampledTests = SampledTests { size: 1000.0, records: 1e6, steps: 5000.0 };
/// Sampling rates of figure 1a.
const RATES: [f64; 7] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Numbers of tests of figure 1b, in units of the requested number.
const TESTS: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 4.0];
/// Numbers of records of the figures' curves, in units of the requested number.
const SIZES: [f64; 3] = [0.1, 1.0, 10.0];

/// Evaluates the paper's bound.
///
/// # Errors
/// Options of other mechanisms, or out of range.
pub(super) fn account(args: &SubsampledArgs, delta: f64) -> Result<Account, Fault> {
    let SubsampledArgs { batch, records, sensitivity, noise, releases, .. } = *args;
    if !args.describes_tests() {
        return Err(input("--paper takes --batch, --records, --sensitivity, --noise and --releases only".to_owned()));
    }
    if releases == Some(0) {
        return Err(input("--releases is 0: it must be at least 1".to_owned()));
    }
    let steps = releases.map_or(EXPERIMENT.steps, |count| count as f64);
    match (batch, records, sensitivity, noise) {
        (None, None, Some(bound), Some(sd)) => whole(bound, sd, steps, delta),
        (None, None, None, None) => sampled(SampledTests { steps, ..EXPERIMENT }, delta),
        (Some(size), Some(records), None, None) => sampled(SampledTests { size, records, steps }, delta),
        _ => Err(input("--paper heikkila takes either --batch and --records, or --sensitivity and --noise".to_owned())),
    }
}

/// Returns Corollary 1 beside the cost of the same Gaussian releases.
fn whole(bound: f64, sd: f64, steps: f64, delta: f64) -> Result<Account, Fault> {
    for (option, value) in [("--sensitivity", bound), ("--noise", sd)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(input(format!("{option} is {value}: give a number above 0")));
        }
    }
    let claimed = corollary_1(bound, sd * sd, steps, delta);
    let mu = 2.0 * bound / sd * steps.sqrt();
    let exact = gaussian_dp::epsilon(mu, delta);
    let object = json!({
        "paper": "heikkila", "theorem": 1, "steps": steps, "bound": bound, "variance": sd * sd,
        "epsilon": claimed.epsilon, "order": claimed.order, "mu": mu, "epsilon_gdp": exact,
    });
    let lines = [
        format!(
            "{steps} tests on all records, log ratios of at most {bound}, noise of standard deviation {sd}, delta = {delta:?}:"
        ),
        format!(
            "  Theorem 1 and Corollary 1                              epsilon = {}, at order {:.1}",
            claimed.epsilon, claimed.order
        ),
        format!("  Gaussian differential privacy (used by ledgers)        epsilon = {exact}, from mu = {mu}"),
    ];
    Ok((object, lines.join("\n")))
}

/// Returns Corollary 2 beside the composed privacy losses of fixed noise, and the curves of figures 1a and 1b.
fn sampled(chain: SampledTests, delta: f64) -> Result<Account, Fault> {
    let SampledTests { size, records, steps } = chain;
    if !(size >= 1.0 && records.is_finite() && size <= records) {
        return Err(input(format!("--batch is {size} of --records {records}: it must be at least 1 and at most --records")));
    }
    let Some(claimed) = chain.corollary_2(delta) else {
        return Err(input(format!("--batch is {size}: Theorem 2 needs an order below a fifth of it, so more than 10 records")));
    };
    let composed = composed(chain, delta)?;
    let by_rate = curves(&RATES, |n, rate| SampledTests { size: rate * n * records, records: n * records, steps }, delta);
    let by_steps = curves(&TESTS, |n, more| SampledTests { size: n * size, records: n * records, steps: more * steps }, delta);
    let object = json!({
        "paper": "heikkila", "theorem": 2, "steps": steps, "batch": size, "records": records,
        "epsilon": claimed.epsilon, "order": claimed.order, "epsilon_composed": composed,
        "figure_1a": points(&by_rate), "figure_1b": points(&by_steps),
    });
    let mut lines = Vec::new();
    lines.push(format!(
        "{steps} tests on {size} of {records} records, log ratios of at most sqrt({size})/{records}, delta = {delta:?}:"
    ));
    lines.push(format!(
        "  Theorem 2 and Corollary 2                              epsilon = {}, at order {}",
        claimed.epsilon, claimed.order
    ));
    let exact = composed.map_or_else(|| "outside the computable range".to_owned(), |epsilon| format!("epsilon = {epsilon}"));
    lines.push(format!("  composed privacy losses, noise of variance 1           {exact}"));
    print_curves(&mut lines, "Figure 1a: epsilon by Corollary 2 against the sampling rate q", &by_rate, |chain| {
        format!("q = {}", (1e9 * chain.size / chain.records).round() / 1e9)
    });
    print_curves(&mut lines, "Figure 1b: epsilon by Corollary 2 against the number of tests T", &by_steps, |chain| {
        format!("T = {}", chain.steps)
    });
    Ok((object, lines.join("\n")))
}

/// Returns epsilon of the same tests by their privacy losses. The noise of a ratio has variance 1, the least that Theorem 2
/// allows, and a sample moves the ratio by at most `1/sqrt(size)`.
fn composed(chain: SampledTests, delta: f64) -> Result<Option<f64>, Fault> {
    let release = SubsampledArgs {
        probability: Some(chain.size / chain.records),
        noise_multiplier: Some(chain.size.sqrt()),
        ..SubsampledArgs::default()
    }
    .release()?;
    Ok(release.losses(chain.steps as u64, delta).map_err(|e| fault(&e))?.epsilon(delta))
}

/// A point of a figure: its tests, and the bound where the theorem gives one.
type Point = (SampledTests, Option<Bound>);

/// Returns the figure's rows: a value of the horizontal axis, with a point for each number of records.
fn curves(axis: &[f64], chain: impl Fn(f64, f64) -> SampledTests, delta: f64) -> Vec<Vec<Point>> {
    let point = |n: f64, at: f64| {
        let chain = chain(n, at);
        (chain, chain.corollary_2(delta))
    };
    axis.iter().map(|at| SIZES.iter().map(|n| point(*n, *at)).collect()).collect()
}

fn points(rows: &[Vec<Point>]) -> Value {
    let one = |(chain, bound): &Point| {
        json!({
            "records": chain.records, "batch": chain.size, "steps": chain.steps,
            "epsilon": bound.map(|bound| bound.epsilon), "order": bound.map(|bound| bound.order),
        })
    };
    rows.iter().flatten().map(one).collect()
}

fn print_curves(lines: &mut Vec<String>, title: &str, rows: &[Vec<Point>], label: impl Fn(&SampledTests) -> String) {
    lines.push(format!("{title}, by number of records N:"));
    let Some(first) = rows.first() else { return };
    let heads: String = first.iter().map(|(chain, _)| format!("{:>14}", format!("N = {}", chain.records))).collect();
    lines.push(format!("  {:<14}{heads}", ""));
    for row in rows {
        let cell = |(_, bound): &Point| bound.map_or_else(|| "-".to_owned(), |bound| format!("{:.4}", bound.epsilon));
        let cells: String = row.iter().map(|point| format!("{:>14}", cell(point))).collect();
        lines.push(format!("  {:<14}{cells}", row.first().map_or_else(String::new, |(chain, _)| label(chain))));
    }
}

#[cfg(test)]
#[path = "tests/paper.rs"]
mod tests;
