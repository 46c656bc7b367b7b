//! Advice on how to change a job for more effective draws.
//!
//! An estimate gives the first figure of a remedy. The planner then runs at the figure as it is printed, and the figure grows until
//! the plan there has what the advice promises.

use super::forecast::{Known, Needed, PlanForecast, WANTED, forecast};
use super::outcome::{Plan, kappa};
use super::samples;
use super::stand_in::Guess;
use crate::figures::rounded_up;
use conclave_common::job::{Algorithm, JobSpec, ProposalKind};
use conclave_privacy::accounting::{Budget, gaussian_dp};

/// Advice mentions a total noise that differs from the optimum by more than this factor.
const NOISE_FACTOR: f64 = 1.25;
/// Factors by which an estimate grows until a plan confirms it. Each takes a plan of its own.
const TRIED: [f64; 5] = [1.0, 1.05, 1.15, 1.35, 1.7];
/// Advice mentions a share of the budget before the first kept draw above this.
const WARMUP_SHARE: f64 = 0.4;

/// The job and the guess that a plan is made for.
pub(super) struct Asked<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) guess: &'a Guess,
}

impl Asked<'_> {
    /// Returns the least figure with one decimal, from an estimate on, at which the plan of `at` has what is wanted; `None` if none
    /// is found.
    fn confirmed(&self, estimate: f64, at: impl Fn(f64) -> (JobSpec, Guess), has: impl Fn(&PlanForecast) -> bool) -> Option<f64> {
        TRIED.into_iter().map(|times| rounded_up(times * estimate)).find(|figure| {
            let (spec, guess) = at(*figure);
            forecast(&spec, &guess).is_ok_and(|forecast| has(&forecast))
        })
    }

    /// Returns the least epsilon at which the plan has what is wanted.
    fn epsilon(&self, estimate: f64, has: impl Fn(&PlanForecast) -> bool) -> Option<f64> {
        let at = |epsilon: f64| {
            let mut spec = self.spec.clone();
            spec.privacy.budget = Budget { epsilon, ..spec.privacy.budget };
            (spec, self.guess.clone())
        };
        self.confirmed(estimate, at, has)
    }

    /// Returns the least multiple of the number of records at which the plan has what is wanted.
    fn records(&self, estimate: f64, has: impl Fn(&PlanForecast) -> bool) -> Option<f64> {
        let at = |times: f64| {
            let more = self.guess.records.iter().map(|records| (*records as f64 * times).ceil() as u64).collect();
            (self.spec.clone(), self.guess.clone().with_records(more))
        };
        self.confirmed(estimate, at, has)
    }
}

/// Returns true if a plan has [`WANTED`] effective draws of every parameter, once its number of draws is what its budget affords.
fn has_wanted(forecast: &PlanForecast) -> bool {
    let PlanForecast { plan, known } = forecast;
    let times = (known.affordable as f64 / plan.draws.max(1) as f64).max(1.0);
    plan.draws > 0 && plan.ess.iter().filter(|row| row.ess.is_finite()).all(|row| row.ess * times >= WANTED)
}

pub(super) fn advice(asked: &Asked<'_>, forecast: &PlanForecast) -> Vec<String> {
    let (spec, PlanForecast { plan, known }) = (asked.spec, forecast);
    let Known { sigma, affordable, .. } = *known;
    let mut out = Vec::new();
    out.extend(length(asked, plan, affordable, known.needed));
    out.extend(effective(asked, plan));
    let best = spec.sampler.proposal.total_noise_sd();
    // Algorithm 3's noise is relative to the range of a statistic, which says nothing about the noise of a ratio.
    let of_ratios = spec.algorithm == Algorithm::Penalty;
    if known.uncorrelated {
        out.push(
            "the guess of the posterior contains no correlations, so the parameters are planned as independent: correlated parameters get \
             fewer effective draws. Rehearse the job, or set plan.correlations."
                .to_owned(),
        );
    }
    if of_ratios && (sigma > best * NOISE_FACTOR || sigma < best / NOISE_FACTOR) {
        out.push(format!(
            "the noise of all parties together has sd {sigma:.2}; {} moves use a budget best near {best}: leave noise_sd at \"auto\".",
            spec.sampler.proposal.as_str()
        ));
    }
    if spec.sampler.proposal != ProposalKind::Guided {
        let gain = kappa(ProposalKind::Guided) / kappa(spec.sampler.proposal);
        out.push(format!("proposal = {{ kind = \"guided\" }} gives about {gain:.1} times the effective draws at the same cost."));
    }
    if plan.warmup_share > WARMUP_SHARE {
        out.push(format!(
            "{:.0}% of the budget is spent before the first kept draw: shorten the warm-up, or set starting values and radii from a rehearsal.",
            100.0 * plan.warmup_share
        ));
    }
    out.extend(samples::advice(spec));
    out
}

fn length(asked: &Asked<'_>, plan: &Plan, affordable: u64, needed: Needed) -> Option<String> {
    let spec = asked.spec;
    if plan.stopped_by == "budget" {
        return Some(if plan.draws == 0 {
            let first = asked.epsilon(needed.first, |forecast| forecast.plan.draws > 0);
            let first = first.map(|epsilon| format!("epsilon = {epsilon:.1} would keep the first ones"));
            let known = needed.wanted.is_finite();
            let wanted = [
                known
                    .then(|| asked.epsilon(needed.wanted, has_wanted))
                    .flatten()
                    .map(|epsilon| format!("epsilon = {epsilon:.1}")),
                known
                    .then(|| asked.records(needed.records, has_wanted))
                    .flatten()
                    .map(|times| format!("{times:.1} times the records")),
            ];
            let wanted: Vec<String> = wanted.into_iter().flatten().collect();
            let enough = (!wanted.is_empty())
                .then(|| format!("{} would give about {WANTED:.0} effective draws of every parameter", wanted.join(" or ")));
            let remedies: Vec<String> = first.into_iter().chain(enough).collect();
            format!("the budget ends before the first kept draw: {}; a shorter warm-up helps too.", remedies.join(", "))
        } else {
            format!("the budget ends the run after {} of {} draws per chain.", plan.draws, spec.sampler.draws)
        });
    }
    let more = affordable as f64 / plan.draws.max(1) as f64;
    (more > 1.1).then(|| {
        format!(
            "all {} draws per chain take {:.0}% of the budget: draws = {affordable} would use it all and give {more:.1} times the \
             effective draws.",
            plan.draws,
            100.0 * plan.budget_share
        )
    })
}

fn effective(asked: &Asked<'_>, plan: &Plan) -> Option<String> {
    let least = plan.ess.iter().filter(|row| row.ess.is_finite()).min_by(|a, b| a.ess.total_cmp(&b.ess))?;
    if least.ess >= WANTED || plan.draws == 0 {
        return None;
    }
    // The number of kept draws, and so of effective draws, is proportional to the mu^2 that remains after the warm-up.
    let budget = &asked.spec.privacy.budget;
    let mu = gaussian_dp::mu(budget.epsilon, budget.delta);
    let sampling = (plan.budget_share - plan.warmup_share).max(1e-9);
    let needed = mu * (plan.warmup_share + sampling * WANTED / least.ess.max(1e-9)).sqrt();
    let estimate = gaussian_dp::epsilon(needed, budget.delta);
    let remedy = asked.epsilon(estimate, has_wanted).map(|epsilon| {
        format!(
            "{WANTED:.0} need epsilon = {epsilon:.1}, with as many draws as that affords, fewer parameters or larger shards: "
        )
    });
    Some(format!(
        "{} gets {:.0} effective draws; {}effective draws grow with the square of mu and with the number of records, and fall with the number \
         of parties.",
        least.name,
        least.ess,
        remedy.unwrap_or_default()
    ))
}
