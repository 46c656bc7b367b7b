//! `[release]`, and the keys of other tables that a job that releases once does not use.

use super::exp_family::counts_inert;
use super::ops;
use super::unused::Unused;
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::privacy_spec::{Clamping, ReleaseSpec};
use crate::job::raw::{AutoOr, RawJob, RawRelease, RawStages};
use crate::job::spec::JobSpec;
use crate::schema::ModelSpec;

/// Maximum number of stages.
const MOST_STAGES: usize = 16;
/// Maximum number of parameters. Gradient and curvature are in one answer, which holds 7168 integers.
pub(super) const MOST_PARAMETERS: usize = 118;
/// Permitted distance of the sum of stage shares from 1.
const SLIP: f64 = 1e-9;

/// Refuses keys that the algorithm does not use, by name. The author of an ignored key would assume that it applies.
pub(super) fn refuse_unused(algorithm: Algorithm, raw: &RawJob) -> Result<(), JobError> {
    let name = algorithm.as_str();
    if algorithm != Algorithm::NoisyStatistics && raw.release.is_some() {
        let message = format!("applies to algorithm = \"noisy-statistics\" only, but this job's is \"{name}\"");
        return Err(JobError::new("release", message));
    }
    let own = match algorithm {
        Algorithm::NoisyStatistics => of_noisy_statistics(raw),
        Algorithm::Augmentation => of_augmentation(raw),
        _ if algorithm.follows_gradients() => of_gradients_alone(raw),
        Algorithm::Ops => ops::unused(raw),
        _ => Vec::new(),
    };
    let force = algorithm == Algorithm::PenaltyExpFamily && raw.sampler.force.is_some();
    let unforced = ("sampler.force", force, "its jobs are never refused by a forecast");
    let moves = "its chains are not driven by gradients";
    let (of_hmc, of_gradients) = (algorithm == Algorithm::Hmc, algorithm.follows_gradients());
    let heavy = matches!(algorithm, Algorithm::Hmc | Algorithm::Sghmc | Algorithm::Sgnht);
    let still = if of_gradients { "its chains have no momentum" } else { moves };
    let unmoved = [
        ("sampler.step", raw.sampler.step.is_some() && !of_gradients, moves),
        ("sampler.friction", raw.sampler.friction.is_some() && !heavy, still),
        ("sampler.test", raw.sampler.test.is_some() && !of_hmc, "only hmc has tests of steps"),
        ("sampler.refresh", raw.sampler.refresh.is_some() && !of_hmc, "only hmc without friction uses it"),
        ("sampler.correction", raw.sampler.correction.is_some() && algorithm != Algorithm::Barker, "only barker uses it"),
        ("sampler.polish", raw.sampler.polish.is_some() && !algorithm.is_unadjusted(), "only chains without a test use it"),
        ("sampler.candidates", raw.sampler.candidates.is_some() && algorithm != Algorithm::Ops, "only ops uses it"),
    ];
    let ratios = (algorithm.walks_on_ratios() || algorithm == Algorithm::PenaltyExpFamily) && raw.sampler.locate.is_none();
    let unmultiplied = (
        "privacy.noise_multiplier",
        raw.privacy.noise_multiplier.is_some() && ratios,
        "the noise of ratios is `privacy.noise_sd`",
    );
    match own.into_iter().chain([unforced, unmultiplied]).chain(unmoved).find(|(_, written, _)| *written) {
        Some((key, _, why)) => Err(JobError::new(key, format!("algorithm = \"{name}\" does not use it ({why}): leave it out"))),
        None => Ok(()),
    }
}

fn of_noisy_statistics(raw: &RawJob) -> Vec<Unused> {
    let none = "nothing is proposed to the parties: draws are made from the releases";
    let own = [
        ("sampler.proposal", raw.sampler.proposal.is_some(), none),
        ("sampler.locate_share", raw.sampler.locate_share.is_some(), "the shares of stages are in `release.stages`"),
        ("sampler.starts", raw.sampler.starts.is_some(), "set `sampler.start`, the point of the first stage"),
    ];
    own.into_iter().chain(of_releases(raw)).collect()
}

fn of_augmentation(raw: &RawJob) -> Vec<Unused> {
    let none = "records are imputed, and the parameters drawn given them: nothing is proposed to the parties";
    let own = [
        ("sampler.proposal", raw.sampler.proposal.is_some(), none),
        ("sampler.locate_share", raw.sampler.locate_share.is_some(), "there is one release, and no mode is searched for"),
        ("sampler.starts", raw.sampler.starts.is_some(), "set `sampler.start`, or nothing: starting values are dispersed"),
        ("sampler.records_guess", raw.sampler.records_guess.is_some(), "numbers of records that are not public are imputed"),
        ("privacy.clip_watch_share", raw.privacy.clip_watch_share.is_some(), "nothing is clipped"),
    ];
    own.into_iter().chain(of_releases(raw)).collect()
}

/// Lists the keys that gradient-driven chains do not use.
fn of_gradients_alone(raw: &RawJob) -> Vec<Unused> {
    let noise = "the noise of gradients moves its chains: `sampler.step` and `sampler.friction` set its amount";
    let asks_ratios = raw.sampler.friction == Some(0.0) || raw.sampler.polish.is_some_and(|sweeps| sweeps > 0);
    vec![
        ("sampler.proposal", raw.sampler.proposal.is_some(), "gradients propose: set `sampler.step` and `sampler.friction`"),
        // Without friction it is the noise of the test on ratios; for polished chains, that of the sweeps.
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some() && !asks_ratios, noise),
        ("privacy.clip", raw.privacy.clip.is_some(), "contributions are held to public lengths"),
    ]
}

/// Lists the keys that no job that releases once uses.
fn of_releases(raw: &RawJob) -> [Unused; 4] {
    let spent = "the whole budget is spent once, in a few releases: epsilon alone sets the noise";
    [
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some(), spent),
        ("privacy.clip", raw.privacy.clip.is_some(), "contributions are held to public ranges and lengths"),
        ("sampler.until", raw.sampler.until.is_some(), "draws cost nothing: `sampler.draws` sets their number"),
        ("extends", raw.extends.is_some(), "more draws from the same releases cost nothing: raise `sampler.draws`"),
    ]
}

/// Reads and checks the table.
pub(super) fn release(algorithm: Algorithm, raw: Option<RawRelease>) -> Result<ReleaseSpec, JobError> {
    let Some(raw) = raw.filter(|_| algorithm == Algorithm::NoisyStatistics) else { return Ok(ReleaseSpec::default()) };
    match raw.clip {
        None => {}
        Some(AutoOr::Word(word)) if word == "auto" => {}
        Some(_) => {
            let message = "must be \"auto\": the public length of a record's contribution";
            return Err(JobError::new("release.clip", message));
        }
    }
    let curvature_share = raw.curvature_share;
    if let Some(share) = curvature_share.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(JobError::new("release.curvature_share", format!("must lie strictly between 0 and 1, not {share}")));
    }
    let clamping = match raw.clamping.as_deref() {
        None | Some("modelled") => Clamping::Modelled,
        Some("ignored") => Clamping::Ignored,
        Some(other) => {
            return Err(JobError::new("release.clamping", format!("must be \"modelled\" or \"ignored\", not \"{other}\"")));
        }
    };
    Ok(ReleaseSpec { stages: stages(raw.stages)?, curvature_share, clamping })
}

fn stages(raw: Option<RawStages>) -> Result<Option<Vec<f64>>, JobError> {
    let wrong = |message: String| Err(JobError::new("release.stages", message));
    match raw {
        None => Ok(None),
        Some(RawStages::Word(word)) if word == "auto" => Ok(None),
        Some(RawStages::Word(word)) => wrong(format!("must be \"auto\" or a list of shares of the budget, not \"{word}\"")),
        Some(RawStages::Shares(shares)) => {
            if shares.is_empty() || shares.len() > MOST_STAGES {
                return wrong(format!("must hold 1 to {MOST_STAGES} shares, not {}", shares.len()));
            }
            if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
                return wrong(format!("holds {share}: a share lies above 0, up to 1"));
            }
            let sum: f64 = shares.iter().sum();
            if (sum - 1.0).abs() > SLIP { wrong(format!("shares add up to {sum}, not 1")) } else { Ok(Some(shares)) }
        }
    }
}

/// Checks that the job's model has a release.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if spec.algorithm != Algorithm::NoisyStatistics {
        return Ok(());
    }
    let model = spec.build_model();
    let kind = spec.model.kind();
    if spec.model.is_bent() {
        let message = format!(
            "the posterior of the model `{kind}` is curved, and a score released once only describes a normal one: use algorithm = \"penalty\" or \"hmc\""
        );
        return Err(JobError::new("algorithm", message));
    }
    if let Some(scores) = model.scores() {
        let most = MOST_PARAMETERS;
        if scores.parameters() > most {
            let message = format!("has {} parameters; algorithm = \"noisy-statistics\" takes up to {most}", scores.parameters());
            return Err(JobError::new("model.predictors", message));
        }
        if scores.moments_outcome().is_some() && spec.power != 1.0 {
            let message = "a linear regression raised to a power has no release of second moments: use algorithm = \"penalty\"";
            return Err(JobError::new("model.power", message));
        }
        return Ok(());
    }
    let has_family = matches!(
        spec.model,
        ModelSpec::Bernoulli { .. }
            | ModelSpec::PoissonMean { .. }
            | ModelSpec::GaussianMean { .. }
            | ModelSpec::Multinomial { .. }
    );
    if has_family && spec.incomplete_rows {
        return Err(JobError::new("algorithm", counts_inert(kind)));
    }
    if has_family && spec.power == 1.0 {
        return Ok(());
    }
    let why = if has_family { "raised to a power " } else { "" };
    let message = format!("the model `{kind}` {why}has no statistic or score to release once: use algorithm = \"penalty\"");
    Err(JobError::new("algorithm", message))
}
