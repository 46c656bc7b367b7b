//! The report of a run's fit.

use serde::{Serialize, Serializer};

use super::answers::{Frame, MOST_COORDINATES, QuadraticFit};
use super::chi_square::ChiSquare;
use super::mapping::{Figures, mapped};
use super::prior::PriorTerms;
use super::solution::{Defect, Estimate, Solution, solve};
use crate::sampler::target::Target;

/// Number of sds from the mean within which the parameter box must not end.
const CLEAR: f64 = 3.0;

/// The posterior from a quadratic fit to all released log ratios of a run, or to all components of its gradients; or the reason
/// why there is none.
///
/// The log prior is not part of the released ratios. The fitted likelihood is multiplied by it: exactly if it is normal in the
/// walk's coordinates, and otherwise by the normal distribution closest to the product. The parameter box does not enter: a
/// posterior that it truncates within three sds is suppressed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedPosterior {
    /// Parameters on the scale of the priors, in the model's order; empty if suppressed.
    #[serde(serialize_with = "by_name")]
    pub parameters: Vec<FittedParameter>,
    /// The same parameters in the data's own units.
    #[serde(serialize_with = "by_name")]
    pub parameters_original: Vec<FittedParameter>,
    /// Number of fitted log ratios or gradient components.
    pub answers: u64,
    /// Number of answers that were left out because their points are far from the posterior.
    pub answers_left_out: u64,
    /// Chi-square statistic of adding a cubic term for each coordinate to the quadratic; `None` if it could not be computed.
    pub chi2: Option<f64>,
    /// Degrees of freedom of `chi2`: the number of coordinates.
    pub degrees_of_freedom: u64,
    /// Probability of a `chi2` at least as large if the log likelihood is quadratic.
    pub p_value: Option<f64>,
    /// Reason why the figures are suppressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
}

/// The posterior of one parameter from the fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedParameter {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior sd, including the noise.
    pub sd: f64,
    /// The noise's share of the sd: the standard error of `mean` as an estimate of the posterior mean without noise.
    pub noise_sd: f64,
}

fn by_name<S: Serializer>(parameters: &[FittedParameter], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parameters.iter().map(|parameter| (&parameter.name, parameter)))
}

impl QuadraticFit {
    /// Fits the posterior to the answers so far. `clipped` says that an explicit clip may have distorted them.
    pub(in crate::sampler) fn posterior(&self, target: &Target, clipped: bool) -> FittedPosterior {
        let d = self.terms().dimension;
        let mut report = FittedPosterior {
            parameters: Vec::new(),
            parameters_original: Vec::new(),
            answers: 0,
            answers_left_out: self.answers(),
            chi2: None,
            degrees_of_freedom: d as u64,
            p_value: None,
            suppressed: None,
        };
        let outcome = if clipped {
            Err("an explicit clip may have clipped log likelihood ratios, so the released ratios may not be those of the likelihood".to_owned())
        } else if self.has_too_many_coordinates() {
            Err(format!("the fit supports at most {MOST_COORDINATES} coordinates, and this posterior has {d}"))
        } else {
            self.fill(target, &mut report)
        };
        report.suppressed = outcome.err();
        report
    }

    fn fill(&self, target: &Target, report: &mut FittedPosterior) -> Result<(), String> {
        let chosen = self.chosen().ok_or_else(|| format!("no {} was released for a kept draw", self.kind().name()))?;
        let (frame, sums) = (&chosen.frame, &chosen.sums);
        (report.answers, report.answers_left_out) = (sums.answers, self.answers() - sums.answers);
        let space = &target.space;
        let log_density = |x: &[f64]| {
            let u = frame.coordinates(x);
            space.log_prior(&target.spec, &u, &space.theta(&u))
        };
        let prior = PriorTerms {
            log_density: &log_density,
            location: frame.counted(&space.location),
            precision: space.precision.iter().zip(&frame.scale).map(|(p, s)| p * s * s).collect(),
        };
        let Solution { cubic, estimate } = solve(self.terms(), sums, &prior, self.kind());
        (report.chi2, report.p_value) = (cubic.map(|test| test.value), cubic.map(ChiSquare::p_value));
        let name = |coordinate: usize| target.model.parameter_names()[space.parameters[coordinate]].as_str();
        let estimate = estimate.map_err(|defect| sentence(&defect, (sums.answers, self.kind().name()), cubic, name))?;
        if let Some(coordinate) = cut(&estimate, frame, target) {
            return Err(format!("the box of {} ends within {CLEAR} sds of the posterior's mean", name(coordinate)));
        }
        let theta = |x: &[f64]| space.theta(&frame.coordinates(x));
        let original = |x: &[f64]| target.model.to_original(&theta(x));
        report.parameters = named(target, mapped(&estimate, &theta));
        report.parameters_original = named(target, mapped(&estimate, &original));
        Ok(())
    }
}

/// Finds a coordinate along which the parameter box ends within [`CLEAR`] sds of the mean.
fn cut(estimate: &Estimate, frame: &Frame, target: &Target) -> Option<usize> {
    let mean = &estimate.normal.mean;
    let inside = |j: usize, sds: f64| {
        let mut x = mean.clone();
        x[j] += sds * (estimate.normal.covariance[(j, j)] + estimate.noise[(j, j)]).sqrt();
        target.spec.in_support(&target.space.theta(&frame.coordinates(&x)))
    };
    (0..mean.len()).find(|j| !(inside(*j, CLEAR) && inside(*j, -CLEAR)))
}

fn named(target: &Target, figures: Vec<Figures>) -> Vec<FittedParameter> {
    let one =
        |(name, Figures { mean, sd, noise_sd }): (&String, Figures)| FittedParameter { name: name.clone(), mean, sd, noise_sd };
    target.model.parameter_names().iter().zip(figures).map(one).collect()
}

fn sentence<'a>(
    defect: &Defect,
    (answers, what): (u64, &str),
    cubic: Option<ChiSquare>,
    name: impl Fn(usize) -> &'a str,
) -> String {
    let shown = |test: ChiSquare| format!("chi-square {:.1} on {} degrees of freedom", test.value, test.degrees_of_freedom);
    match defect {
        Defect::TooFewAnswers { needed } => format!(
            "{answers} released {what}s are near the posterior, and a fit of this many coefficients needs at least {needed}"
        ),
        Defect::Undetermined => format!("the released {what}s do not determine a normal distribution"),
        Defect::Weak { coordinate, errors, needed } => format!(
            "the released {what}s do not determine the posterior's width: in a direction mostly along {} its precision is only {errors:.1} standard \
             errors above 0, and at least {needed} are needed",
            name(*coordinate)
        ),
        Defect::Skewed => format!(
            "the log likelihood is not quadratic where the chains are: it has cubic terms ({})",
            cubic.map(shown).unwrap_or_default()
        ),
        Defect::Bent(test) => {
            format!("the log likelihood is not quadratic where the chains are: it has quartic terms ({})", shown(*test))
        }
        Defect::Scattered(test) => {
            format!("the released {what}s deviate from every quadratic by more than their noise ({})", shown(*test))
        }
    }
}
