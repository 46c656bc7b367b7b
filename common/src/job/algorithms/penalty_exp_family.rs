//! `algorithm = "penalty-exp-family"`: settings that follow from the model's statistic.

use super::declaration::{Declaration, PENALTY, ReleasedQuantity, noise_of_answers};
use crate::job::error::JobError;
use crate::job::limits::{CALIBRATE_SHARE, MAX_CHAINS};
use crate::job::sampler_spec::{Radius, Warmup};
use crate::job::spec::JobSpec;
use crate::model::statistic_noise;
use conclave_privacy::accounting::{LEAST_CHARGE_UNITS, PrivacyFilter, mu_squared};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::StatisticGrid;

/// Largest relative excess of the sum of charges over the exact cost: each charge is rounded up.
const ROUNDING: f64 = 1e-6;

pub(super) const PENALTY_EXP_FAMILY: Declaration = Declaration {
    name: "penalty-exp-family",
    asks: |kind| matches!(kind, QueryKind::Statistic { .. }),
    releases: |_| vec!["statistic"],
    query_description: |_| "sums of the model's statistic, one number at a time, round after round".to_owned(),
    released_quantity: |_| ReleasedQuantity { words: "one component of the model's statistic", fits_any_model: false },
    noise: |_, sd| noise_of_answers(sd, "widths of a component’s range", PENALTY),
    unused: |_| vec![("sampler.force", "none of its jobs is refused for lack of a usable answer")],
    resolve,
    ..Declaration::OF_RATIOS
};

/// Checks that the model has a statistic to release. With `noise_sd = "auto"` it spreads the budget evenly over the job's rounds and
/// the components. A `noise_sd` set by the analyst, in widths of a component's range, is kept.
///
/// # Errors
/// The model has no bounded statistic; the job sets a clip; a message has too many releases; the budget does not hold all releases at
/// the least charge.
fn resolve(mut spec: JobSpec, auto_noise: bool) -> Result<JobSpec, JobError> {
    let wrong = |message: String| JobError::new("algorithm", message);
    let model = spec.build_model();
    let kind = spec.model.kind();
    let family = model.exponential_family().ok_or_else(|| {
        if spec.incomplete_rows && !spec.statistic_spares_inert_rows() {
            return wrong(counts_inert(kind));
        }
        wrong(format!("the model `{kind}` is no exponential family with a bounded statistic: use algorithm = \"penalty\""))
    })?;
    if spec.privacy.clip.is_some() {
        let message =
            "a statistic is clamped to its public range, never clipped: leave the clip out, or use algorithm = \"penalty\"";
        return Err(JobError::new("privacy.clip", message));
    }
    let grids =
        family.ranges().into_iter().map(StatisticGrid::new).collect::<Result<Vec<_>, _>>().map_err(|e| wrong(e.to_string()))?;
    let (chains, components) = (u64::from(spec.sampler.chains), grids.len() as u64);
    if chains * components > u64::from(MAX_CHAINS) {
        let message = format!(
            "{chains} chains release {components} numbers each per round, {} in all, and a message holds {MAX_CHAINS}: run fewer chains \
             or leave out predictors",
            chains * components
        );
        return Err(JobError::new("sampler.chains", message));
    }
    if auto_noise {
        let filter = PrivacyFilter::new(&spec.privacy.budget).map_err(|e| JobError::new("privacy", e.to_string()))?;
        let budget = mu_squared(filter.limit_units()) * (1.0 - search_share(&spec)) * (1.0 - ROUNDING);
        check_least_charges(&spec, budget, components)?;
        // In a secure job the opened sum has the noise of all honest parties, for the price of one party's.
        let each = budget * f64::from(spec.honest().get()) / releases(&spec) as f64;
        spec.privacy.noise = statistic_noise(&grids, each).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
    }
    Ok(spec)
}

/// Returns the reason why a model's statistic cannot be released if rows may be inert.
pub(super) fn counts_inert(kind: &str) -> String {
    format!(
        "the sum of the statistic of `{kind}` does not determine the number of usable rows: use algorithm = \"penalty\", or leave \
         model.incomplete_rows out"
    )
}

/// Checks that `budget` (mu²) holds all releases at the least charge, which even the noisiest release has. Otherwise the run would end
/// before its draws.
fn check_least_charges(spec: &JobSpec, budget: f64, components: u64) -> Result<(), JobError> {
    let affordable = budget / mu_squared(LEAST_CHARGE_UNITS) / components as f64;
    if releases(spec) as f64 <= affordable {
        return Ok(());
    }
    let steps = (affordable / f64::from(spec.sampler.chains)) as u64;
    let most = steps.saturating_sub(warmup_steps(spec));
    let remedy = if most == 0 {
        "run fewer chains, shorten the warm-up, or raise epsilon".to_owned()
    } else {
        format!("ask for at most {most} draws, run fewer chains, or raise epsilon")
    };
    let message = format!(
        "each of the statistic's {components} components is charged at least mu² = 2^-24 per release, and the budget does not hold {} \
         draws of {} chains and their warm-up: {remedy}",
        spec.sampler.draws, spec.sampler.chains
    );
    Err(JobError::new("sampler.draws", message))
}

/// Returns the share of the budget spent before the chains start.
fn search_share(spec: &JobSpec) -> f64 {
    match (spec.sampler.locate_share, &spec.sampler.radius) {
        (share, _) if share > 0.0 => share,
        (_, Radius::Auto) => CALIBRATE_SHARE,
        _ => 0.0,
    }
}

/// Returns the largest number of warm-up steps of a chain.
fn warmup_steps(spec: &JobSpec) -> u64 {
    let sweeps = match spec.sampler.warmup {
        Warmup::Sweeps(n) | Warmup::UntilRhat { max: n, .. } => n,
    };
    sweeps.saturating_mul(spec.dimension() as u64)
}

/// Returns the largest number of releases of the whole statistic while the chains run.
fn releases(spec: &JobSpec) -> u64 {
    warmup_steps(spec).saturating_add(spec.sampler.draws).saturating_mul(u64::from(spec.sampler.chains))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(draws: u64, epsilon: f64) -> Result<JobSpec, JobError> {
        JobSpec::parse(&format!(
            "name = \"l\"\nalgorithm = \"penalty-exp-family\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
             predictors = [\"u\"]\nsd = 0.2\n[columns]\ny = {{ min = -1, max = 1 }}\nu = {{ min = -1, max = 1 }}\n[sampler]\n\
             chains = 4\nwarmup = 10\ndraws = {draws}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
        ))
    }

    #[test]
    fn releases_beyond_the_least_charge_are_refused_with_the_draws_that_fit() {
        let error = job(10_000_000, 1.0).unwrap_err();
        assert_eq!(error.key, "sampler.draws");
        let most = error.message.split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(job(most + 1, 1.0).unwrap_err().key, "sampler.draws");
        let spec = job(most, 1.0).unwrap();
        // The charge of all components, with the least charge, is within the budget after the search.
        let family_components = 4; // u, u², y, u y; the intercept's square is the same for every record
        let filter = PrivacyFilter::new(&spec.privacy.budget).unwrap();
        let unit = conclave_privacy::accounting::PrivacyUnit::default();
        let model = spec.build_model();
        let grids = StatisticGrid::of_ranges(model.exponential_family().unwrap().ranges()).unwrap();
        assert_eq!(grids.len(), family_components);
        let charge: u64 = grids
            .iter()
            .map(|grid| {
                let kind = conclave_privacy::mechanism::QueryKind::Statistic { component: 0 };
                unit.charge_of_kind(kind, grid.sensitivity(), spec.protected(spec.privacy.noise)).unwrap()
            })
            .sum();
        let spent = u128::from(charge) * u128::from(releases(&spec));
        assert!(spent as f64 <= filter.limit_units() as f64 * (1.0 - search_share(&spec)), "{spent} of {}", filter.limit_units());
    }
}
