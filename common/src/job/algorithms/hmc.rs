//! `algorithm = "hmc"`: the settings of its chains, and the models that it supports.

use super::declaration::{ANY_MODEL, Declaration, OwnSettings, ReleasedQuantity, SEARCH_BY_SCORES};
use super::unused::unused_with_gradients;
use super::weighted_chains;
use crate::job::error::JobError;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::{HmcSpec, HmcTest, Warmup};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// Largest step, in posterior sds: from there on the momenta have no stationary distribution.
const MOST_STEP: f64 = 2.0;
pub(super) const MOST_FRICTION: f64 = 100.0;
/// Default sd of the noise of a trajectory's test, over all parties. About half of the trajectory's cost is then that of its gradients
/// (`sampler/hmc/dp_hmc/law.rs`).
const RATIO_SD: f64 = 1.25;
/// Largest number of integers in a party's answer to one message.
const MOST_INTEGERS: usize = 7168;

pub(super) const HMC: Declaration = Declaration {
    name: "hmc",
    asks: |kind| matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. } | QueryKind::Remainder { .. }),
    releases: |spec| {
        let of_steps = match spec.sampler.hmc.test {
            HmcTest::Remainder => vec!["score", "remainder"],
            HmcTest::Ratio { .. } => vec!["score", "ratio"],
            HmcTest::None => vec!["score"],
        };
        // The search of a frame counts records by how unusual they are.
        of_steps.into_iter().chain(spec.weighs_chains().then_some("table")).collect()
    },
    follows_gradients: true,
    own_keys: &["step", "friction", "test", "refresh"],
    protocol: |spec| if spec.sampler.hmc.test == HmcTest::Remainder { 4 } else { 5 },
    query_description: |spec| {
        let steps = "for each chain and each step, the gradient at the middle of the step, one number per parameter";
        let step = match spec.sampler.hmc.test {
            HmcTest::Remainder => format!(
                "{steps}, and one more number: how much better the step's end explains the records than its start, minus the part predicted by \
                 the gradient"
            ),
            HmcTest::Ratio { kicks } => format!(
                "{steps}, and after every {kicks} of them one more number: how much better the trajectory's end explains the records than its \
                 start"
            ),
            HmcTest::None => steps.to_owned(),
        };
        format!("{SEARCH_BY_SCORES}{}; then, {step}. {ANY_MODEL}", weighted_chains::of_search(spec))
    },
    released_quantity: |spec| {
        let words = if spec.runs_dp_hmc() {
            "the slope of the log likelihood at a setting of the model, or of how much better one setting explains a record than another"
        } else {
            "the slope of the log likelihood at a setting of the model, or of how much better one setting explains a record than \
             another, minus the part predicted by slopes"
        };
        ReleasedQuantity { words, fits_any_model: true }
    },
    noise: |spec, sd| {
        let words = match spec.sampler.hmc.test {
        HmcTest::Ratio { .. } => format!(
            "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every gradient \
             with a scale set by the job’s budget, and with standard deviation {sd} log-likelihood units in the test of every \
             trajectory. The test rejects the energy added by the gradients’ noise and corrects for its own noise (the penalty method \
             of Ceperley & Dewing, 1999; Räisä, Koskela & Honkela, 2021): the draws follow the posterior of the pooled records."
        ),
        HmcTest::None => "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of \
                          every gradient, with a scale set by the job’s budget. It drives the chains, whose friction dissipates it, and \
                          no test corrects the discretisation error: the draws follow the posterior of the pooled records \
                          approximately."
            .to_owned(),
        HmcTest::Remainder => "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of \
                               every gradient and in the test of every step; its scale follows from the job’s budget. The noise of the \
                               gradients drives the chains, whose friction dissipates it, and the test corrects for its own noise (the \
                               penalty method of Ceperley & Dewing, 1999): the draws follow the posterior of the pooled records."
            .to_owned(),
    };
        words + weighted_chains::of_noise(spec)
    },
    unused: unused_with_gradients,
    settings: |raw| Ok(OwnSettings { hmc: settings(raw)?, ..OwnSettings::default() }),
    check,
    resolve,
    ..Declaration::OF_RATIOS
};

fn settings(raw: &RawSampler) -> Result<HmcSpec, JobError> {
    let warmup = warmup(raw)?;
    Ok(HmcSpec {
        step: below("step", raw.step, MOST_STEP)?,
        friction: below("friction", raw.friction.filter(|friction| *friction != 0.0), MOST_FRICTION)?,
        warmup,
        locate_share: below("locate_share", raw.locate_share, 1.0)?,
        test: test(raw)?,
    })
}

/// Returns the number, if the file has one, after a check that it is above 0 and below `most`.
pub(super) fn below(key: &str, value: Option<f64>, most: f64) -> Result<Option<f64>, JobError> {
    match value {
        Some(value) if !(value > 0.0 && value < most) => {
            Err(JobError::new(format!("sampler.{key}"), format!("must be above 0 and below {most}, not {value}")))
        }
        value => Ok(value),
    }
}

/// Returns the number of warm-up steps, if the file has one.
pub(super) fn warmup(raw: &RawSampler) -> Result<Option<u64>, JobError> {
    match raw.warmup {
        None => Ok(None),
        Some(Warmup::Sweeps(steps)) => Ok(Some(steps)),
        Some(Warmup::UntilRhat { .. }) => {
            let message =
                "must be a number of steps or left out: all steps, warm-up included, are planned before the chains start";
            Err(JobError::new("sampler.warmup", message))
        }
    }
}

/// Returns the test of a step. Without friction a step is a trajectory of `refresh` kicks, and the test is on its whole log ratio.
fn test(raw: &RawSampler) -> Result<HmcTest, JobError> {
    let fault = |key: &str, message: &str| Err(JobError::new(format!("sampler.{key}"), message));
    let free = raw.friction == Some(0.0);
    match (free, raw.test) {
        (true, None | Some(HmcTest::Ratio { .. })) => Ok(HmcTest::Ratio { kicks: raw.refresh.unwrap_or(HmcTest::KICKS) }),
        (true, Some(_)) => {
            fault("test", "must be \"ratio\" or left out if friction is 0, as nothing dissipates the noise's energy")
        }
        (false, _) if raw.refresh.is_some() => fault(
            "refresh",
            "applies to chains without friction, whose momenta are redrawn after that number of kicks: set friction = 0, or leave it out",
        ),
        (false, Some(HmcTest::Ratio { .. })) => {
            fault("test", "\"ratio\" is the test of chains without friction: set friction = 0, or test = \"remainder\"")
        }
        (false, test) => Ok(test.unwrap_or_default()),
    }
}

/// Sets the noise of a trajectory's test if the job does not.
///
/// # Errors
/// The scale is out of range.
fn resolve(mut spec: JobSpec, auto_noise: bool) -> Result<JobSpec, JobError> {
    if auto_noise && spec.runs_dp_hmc() {
        let sd = RATIO_SD / (spec.parties.len() as f64).sqrt();
        spec.privacy.noise = NoiseScale::from_sd(sd).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
    }
    Ok(spec)
}

/// Checks that the model has gradients, and a public bound on the remainder of a step's log ratio.
///
/// # Errors
/// The model has none; the parameters or chains exceed the limits of a message.
fn check(spec: &JobSpec) -> Result<(), JobError> {
    let wrong = |message: String| Err(JobError::new("algorithm", message));
    let (model, kind) = (spec.build_model(), spec.model.kind());
    let Some(scores) = model.scores() else {
        return wrong(format!("the model `{kind}` has no gradient to release: use algorithm = \"penalty\""));
    };
    let theta: Vec<f64> = spec.support.iter().map(|box_| 0.0_f64.clamp(box_.min, box_.max)).collect();
    if scores.remainder_bound([&theta, &theta, &theta], None).is_none() {
        return wrong(format!(
            "no public bound is known for the model `{kind}` on the remainder of a step's log ratio (a parameter of scale or dispersion has \
             none): use algorithm = \"noisy-statistics\" or \"penalty\""
        ));
    }
    if spec.model.is_bent() && spec.sampler.hmc.test == HmcTest::None {
        let message = format!(
            "the posterior of the model `{kind}` is curved, and steps without a test suit only a normal posterior: leave it out"
        );
        return Err(JobError::new("sampler.test", message));
    }
    weighted_chains::check(spec, || spec.runs_dp_hmc().then_some("applies to chains with friction only"))?;
    sizes(spec, scores.parameters())
}

/// Checks that a message can contain a vector of this many parameters for each chain.
pub(super) fn sizes(spec: &JobSpec, order: usize) -> Result<(), JobError> {
    if order > QueryKind::MAX_ORDER as usize - 10 {
        let (name, most) = (spec.algorithm.as_str(), QueryKind::MAX_ORDER - 10);
        let message = format!("has {order} parameters; algorithm = \"{name}\" takes up to {most}");
        return Err(JobError::new("model.predictors", message));
    }
    if spec.sampler.chains as usize * order > MOST_INTEGERS {
        let message = format!("a message holds at most {MOST_INTEGERS} numbers, and each chain needs {order}: run fewer chains");
        return Err(JobError::new("sampler.chains", message));
    }
    Ok(())
}
