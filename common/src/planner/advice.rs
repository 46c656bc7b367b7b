//! What to change to get more.

use super::outcome::{Plan, kappa};
use crate::accounting::gaussian_dp;
use crate::job::{Algorithm, JobSpec, ProposalKind};

/// Effective draws that diagnostics ask for (Vehtari et al. 2021: 100 per chain of four).
const WANTED: f64 = 400.0;
/// A total noise off its best by more than this factor is worth a word.
const NOISE_FACTOR: f64 = 1.25;
/// A share of the budget before the first kept draw above this is worth a word.
const WARMUP_SHARE: f64 = 0.4;

/// `sigma` is the total noise sd of a release summed over parties, `affordable` the kept draws per chain
/// that the budget holds.
pub(super) fn advice(spec: &JobSpec, plan: &Plan, sigma: f64, affordable: u64) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(length(spec, plan, affordable));
    out.extend(effective(spec, plan));
    let best = spec.sampler.proposal.total_noise_sd();
    // Algorithm 3's noise is in widths of a statistic's range, which says nothing of a ratio's.
    let of_ratios = spec.algorithm == Algorithm::Penalty;
    if of_ratios && (sigma > best * NOISE_FACTOR || sigma < best / NOISE_FACTOR) {
        out.push(format!(
            "the noise of all parties together has sd {sigma:.2}; {} moves make the most of a budget near {best}: leave noise_sd at \"auto\".",
            spec.sampler.proposal.as_str()
        ));
    }
    if spec.sampler.proposal != ProposalKind::Guided {
        let gain = kappa(ProposalKind::Guided) / kappa(spec.sampler.proposal);
        out.push(format!("proposal = {{ kind = \"guided\" }} gives about {gain:.1} times the effective draws at the same cost."));
    }
    if plan.warmup_share > WARMUP_SHARE {
        out.push(format!(
            "{:.0}% of the budget goes before the first kept draw: shorten the warm-up, or give starting values and radii from a rehearsal.",
            100.0 * plan.warmup_share
        ));
    }
    out
}

fn length(spec: &JobSpec, plan: &Plan, affordable: u64) -> Option<String> {
    if plan.stopped_by == "budget" {
        return Some(if plan.draws == 0 {
            "the budget ends before the first kept draw: raise epsilon, or shorten the warm-up.".to_owned()
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

fn effective(spec: &JobSpec, plan: &Plan) -> Option<String> {
    let least = plan.ess.iter().filter(|row| row.ess.is_finite()).min_by(|a, b| a.ess.total_cmp(&b.ess))?;
    if least.ess >= WANTED || plan.draws == 0 {
        return None;
    }
    // Kept draws, and so effective ones, are in proportion to what is left of mu^2 after the warm-up.
    let budget = &spec.privacy.budget;
    let mu = gaussian_dp::mu(budget.epsilon, budget.delta);
    let sampling = (plan.budget_share - plan.warmup_share).max(1e-9);
    let needed = mu * (plan.warmup_share + sampling * WANTED / least.ess.max(1e-9)).sqrt();
    let epsilon = gaussian_dp::epsilon(needed, budget.delta);
    Some(format!(
        "{} gets {:.0} effective draws; {WANTED:.0} need epsilon = {epsilon:.1} (and as many more draws), narrower bounds of its column, fewer \
         parameters, or larger shards: effective draws grow as the square of mu, as the number of records, and fall as the number of parties.",
        least.name, least.ess
    ))
}
