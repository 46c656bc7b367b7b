//! What a run reports of its fit.

use serde::{Serialize, Serializer};

use super::answers::{Frame, MOST_COORDINATES, QuadraticFit};
use super::chi_square::ChiSquare;
use super::mapping::{Figures, mapped};
use super::prior::PriorTerms;
use super::solution::{Doubt, Estimate, Solution, solve};
use crate::sampler::target::Target;

/// Sds from the mean within which the parameter box may not end.
const CLEAR: f64 = 3.0;

/// The posterior by the quadratic that all released log ratios of a run make, or all components of its gradients, or why there is none.
///
/// The log prior is no part of the released ratios: it is multiplied with the fitted likelihood, as it is
/// where it is normal in the coordinates walked in, and otherwise by the normal distribution nearest to the
/// product. The parameter box is not: a posterior that it cuts within three sds is not shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedPosterior {
    /// On the scale that priors are declared on, in the model's order; empty where suppressed.
    #[serde(serialize_with = "by_name")]
    pub parameters: Vec<FittedParameter>,
    /// The same in the data's own units.
    #[serde(serialize_with = "by_name")]
    pub parameters_original: Vec<FittedParameter>,
    /// Released log ratios, or components of gradients, that were fitted.
    pub answers: u64,
    /// Those left out, since they are of places far from the posterior.
    pub answers_left_out: u64,
    /// What a cubic term of each coordinate adds to the quadratic, in chi-square units; `None` where that
    /// could not be computed.
    pub chi2: Option<f64>,
    /// Its degrees of freedom: the number of coordinates.
    pub degrees_of_freedom: u64,
    /// The probability of a `chi2` at least as large where the log likelihood is a quadratic.
    pub p_value: Option<f64>,
    /// Why no figures are shown, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
}

/// One parameter by the fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedParameter {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior sd, the noise included.
    pub sd: f64,
    /// The noise's part of it: standard error of `mean` as an estimate of the posterior's without noise.
    pub noise_sd: f64,
}

fn by_name<S: Serializer>(parameters: &[FittedParameter], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parameters.iter().map(|parameter| (&parameter.name, parameter)))
}

impl QuadraticFit {
    /// The posterior by the answers so far; `clipped` tells that they may not be the likelihood's.
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
            Err("an explicit clip may cut log likelihood ratios, so what was released may not be the likelihood's".to_owned())
        } else if self.too_many() {
            Err(format!("it is made for at most {MOST_COORDINATES} coordinates, and this posterior has {d}"))
        } else {
            self.fill(target, &mut report)
        };
        report.suppressed = outcome.err();
        report
    }

    fn fill(&self, target: &Target, report: &mut FittedPosterior) -> Result<(), String> {
        let chosen = self.chosen().ok_or_else(|| format!("no {} was released for a kept draw", self.what()))?;
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
        let Solution { cubic, estimate } = solve(self.terms(), sums, &prior);
        (report.chi2, report.p_value) = (cubic.map(|test| test.value), cubic.map(ChiSquare::p_value));
        let name = |coordinate: usize| target.model.parameter_names()[space.parameters[coordinate]].as_str();
        let estimate = estimate.map_err(|doubt| sentence(&doubt, (sums.answers, self.what()), cubic, name))?;
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

/// A coordinate along which the parameter box ends within [`CLEAR`] sds of the mean.
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
    doubt: &Doubt,
    (answers, what): (u64, &str),
    cubic: Option<ChiSquare>,
    name: impl Fn(usize) -> &'a str,
) -> String {
    let shown = |test: ChiSquare| format!("chi-square {:.1} on {} degrees of freedom", test.value, test.degrees_of_freedom);
    match doubt {
        Doubt::Few { needed } => format!("{answers} released {what}s count, and a fit of so many coefficients takes {needed}"),
        Doubt::Undetermined => format!("the released {what}s do not determine a normal distribution"),
        Doubt::Weak { coordinate, errors } => format!(
            "the released {what}s do not tell the posterior's width: in a direction mostly of {} its precision is {errors:.1} standard \
             errors above 0, and 3 are asked for",
            name(*coordinate)
        ),
        Doubt::Skewed => format!(
            "the log likelihood is no quadratic where the chains are: cubic terms are there ({})",
            cubic.map(shown).unwrap_or_default()
        ),
        Doubt::Bent(test) => {
            format!("the log likelihood is no quadratic where the chains are: quartic terms are there ({})", shown(*test))
        }
        Doubt::Scattered(test) => {
            format!("the released {what}s lie further from any quadratic than their noise ({})", shown(*test))
        }
    }
}
