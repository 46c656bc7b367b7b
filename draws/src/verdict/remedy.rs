//! The next step towards an answer that is fit to publish, by the planner's figures.

use conclave_common::job::{Algorithm, JobSpec, Wanted};
use conclave_inference::planner::{self, MARGIN};
use conclave_inference::sampler::Expected;
use conclave_privacy::accounting::gaussian_dp;

use super::ended::Ended;
use crate::outcome::Outcome;

/// Margin on the number of draws, for the chance in this run's own figures.
const SPARE: f64 = 1.2;
/// R-hat minus 1 that an extension aims at, below the limit of 0.01 for the same reason.
const RHAT_EXCESS: f64 = 0.008;
/// Longest extension that is suggested, as a multiple of the run: beyond it the run's figures are too poor to extrapolate from.
const LONGEST: f64 = 200.0;

/// Returns the next step; `None` if no figure supports one.
pub(super) fn remedy(run: &Ended<'_>) -> Option<String> {
    let other = other_algorithm(run);
    let steps: Vec<String> = match run.is_released() {
        true if run.adequacy.adequate => more_draws(run).into_iter().collect(),
        true => larger_release(run.spec, &records(run.outcome)?).into_iter().collect(),
        false => extension(run).into_iter().chain(other).collect(),
    };
    (!steps.is_empty()).then(|| steps.join("; or "))
}

/// Suggests more draws from the same releases, which cost nothing.
fn more_draws(run: &Ended<'_>) -> Option<String> {
    let wanted = Wanted::usual(4);
    let (ess, rhat) = (run.ess().max(1.0), run.rhat());
    let excess = if rhat.is_finite() { (rhat - 1.0) / RHAT_EXCESS } else { 1.0 };
    let draws = rounded_up((SPARE * (wanted.ess / ess).max(excess).max(1.0) * run.draws as f64).min(1e6));
    let of = format!("--draws {draws} --chains {}", run.spec.sampler.chains.max(4));
    (run.spec.algorithm == Algorithm::NoisyStatistics).then(|| match &run.outcome.refit_of {
        Some(_) => format!("the same refit with `{of}` makes more draws from the same releases, at no charge"),
        None => format!("`conclave refit {} {of}` makes more draws from the same releases, at no charge", run.job),
    })
}

/// Returns the public numbers of records, unless one is unknown.
fn records(outcome: &Outcome) -> Option<Vec<u64>> {
    outcome.parties.iter().map(|party| party.metadata.and_then(|metadata| metadata.records())).collect()
}

/// Suggests the extension whose own draws would meet the limits, at this run's cost per effective draw.
fn extension(run: &Ended<'_>) -> Option<String> {
    let strict = Wanted::usual(run.spec.sampler.chains);
    let (ess, rhat) = (run.ess(), run.rhat());
    let extends =
        run.spec.algorithm.proposes() && !run.spec.is_polished() && run.spec.sites.is_none() && !run.spec.weighs_chains();
    if !extends || run.is_untested() || run.spec.sampler.chains == 1 || !(ess > 0.0 && rhat.is_finite()) {
        return None;
    }
    let factor = SPARE * (strict.ess / ess).max((rhat - 1.0) / RHAT_EXCESS).max(1.0);
    if factor > LONGEST {
        return None;
    }
    let draws = rounded_up(factor * run.draws as f64);
    let spent = run.outcome.parties.iter().map(|party| party.spent.mu_squared()).fold(0.0, f64::max);
    // An extension has no warm-up. Only the search of chains that follow gradients is repeated.
    let kept = match run.spec.algorithm.follows_gradients() {
        true => 1.0,
        false => (run.draws as f64 / run.outcome.iterations.max(1) as f64).min(1.0),
    };
    let epsilon = two_digits_up(gaussian_dp::epsilon((spent * kept * factor).sqrt(), run.spec.privacy.budget.delta));
    Some(format!(
        "`conclave extend {} --draws {draws} --epsilon {epsilon}` continues the chains: at this run's cost per draw its own draws would meet the \
         limits{}",
        run.job,
        if_admitted(run.spec, epsilon)
    ))
}

/// Returns the condition under which a job may ask for this epsilon. The owners have admitted that of this job, and the coordinator does
/// not know their limits beyond it; `conclave budget` asks them.
fn if_admitted(spec: &JobSpec, epsilon: f64) -> String {
    let admitted = spec.privacy.budget.epsilon;
    match epsilon > admitted {
        true => format!(
            " (epsilon {epsilon} is more than the {admitted} of this job: `conclave budget` shows whether the owners admit it)"
        ),
        false => String::new(),
    }
}

/// Suggests inference from noisy statistics for the same budget, where the planner expects an answer of it.
fn other_algorithm(run: &Ended<'_>) -> Option<String> {
    let spec = run.spec.by(Algorithm::NoisyStatistics).ok().filter(|_| run.spec.algorithm != Algorithm::NoisyStatistics)?;
    let records = records(run.outcome)?;
    let found = planner::expect(&spec, &records).ok().flatten().filter(|found| !found.refused)?;
    let worst = MARGIN * found.expected_error;
    (worst <= 1.0).then(|| {
        format!(
            "a new job with `algorithm = \"noisy-statistics\"` at the same epsilon: its means are expected within {:.2} posterior sds",
            found.expected_error.max(0.01)
        )
    })
}

/// Suggests the epsilon or the number of records of a release whose noise would hardly widen the answer.
fn larger_release(spec: &JobSpec, records: &[u64]) -> Option<String> {
    let Expected { expected_error, epsilon_for_half, records_for_half, .. } = planner::expect(spec, records).ok().flatten()?;
    // A job that was expected to answer and does not has data unlike the best case, by a factor that is not known.
    (expected_error > 0.5 && epsilon_for_half.is_finite()).then(|| {
        let epsilon = two_digits_up(epsilon_for_half);
        format!(
            "in the best case epsilon {epsilon} at these records, or {} records at this epsilon, suffice; narrower bounds and fewer predictors \
             need less{}",
            rounded_up(records_for_half),
            if_admitted(spec, epsilon)
        )
    })
}

/// Rounds up to two significant digits.
fn rounded_up(count: f64) -> u64 {
    let unit = libm::pow(10.0, (libm::log10(count.max(1.0)).floor() - 1.0).max(0.0));
    ((count / unit).ceil() * unit) as u64
}

/// Rounds up to two significant digits.
fn two_digits_up(value: f64) -> f64 {
    let unit = libm::pow(10.0, libm::log10(value.max(1e-6)).floor() - 1.0);
    let steps = (value / unit - 1e-9).ceil();
    // A product by a power of ten below 1 is not the decimal that is meant.
    if unit < 1.0 { steps / (1.0 / unit).round() } else { steps * unit }
}
