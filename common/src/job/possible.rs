//! Boxes of the possible values of a parameter, derived from the declared bounds of the outcome.
//!
//! They are written into the job before it is signed, so that every reader uses the same ones. A job without them keeps the wide
//! default boxes of earlier versions.

use toml::Table;

use super::edit;
use super::spec::JobSpec;
use crate::parameter::{Interval, Prior};
use crate::schema::{ColumnSpec, Family, ModelSpec, Offset, Regression};
use crate::settings::is_written;

/// The factor from the largest best-fitting value to the end of a box, since few records leave the parameter uncertain.
const ROOM: f64 = 2.0;
/// The margin of a mean's box beyond the bounds, in standard deviations of a single outcome.
const SDS: f64 = 10.0;

impl JobSpec {
    /// Adds a box for each parameter that the outcome's bounds limit and for which the text has no box.
    ///
    /// Returns the text unchanged if there is no such parameter, if a prior has its centre outside the box, or if lines cannot be
    /// added to the text's tables.
    #[must_use]
    pub fn with_possible_boxes(text: &str) -> String {
        let (Ok(spec), Ok(file)) = (Self::parse(text), edit::read(text)) else { return text.to_owned() };
        let lines: Vec<String> = spec
            .possible_boxes(&file)
            .into_iter()
            .map(|(name, Interval { min, max })| {
                let min = if min == 0.0 { String::new() } else { format!("min = {min:?}, ") };
                format!("{name} = {{ {min}max = {max:?} }} # all that is possible within the outcome's bounds")
            })
            .collect();
        if lines.is_empty() {
            return text.to_owned();
        }
        let written = edit::with_lines(text, "parameters", &lines);
        if Self::parse(&written).is_ok() { written } else { text.to_owned() }
    }

    fn possible_boxes(&self, file: &Table) -> Vec<(String, Interval)> {
        let named = |name: &str| is_written(file, &format!("parameters.{name}"));
        let Some(outcome) = self.columns.get(self.model.outcome()) else { return Vec::new() };
        let (name, possible) = match &self.model {
            ModelSpec::Regression(regression) => match regression.family {
                Family::Linear { sd: None } | Family::StudentT { .. } => ("sigma", self.scatter(regression, outcome)),
                _ => return Vec::new(),
            },
            ModelSpec::PoissonMean { .. } => match *outcome {
                ColumnSpec::Numeric { min, max } => ("rate", Interval { min: min / ROOM, max: ROOM * max }),
                _ => return Vec::new(),
            },
            ModelSpec::GaussianMean { sd, .. } => {
                let most = (1.0 + SDS * sd / outcome.half_width()).max(ROOM);
                ("mean", Interval { min: -most, max: most })
            }
            _ => return Vec::new(),
        };
        let place = self.model.parameter_names().iter().position(|known| known == name);
        let narrower = place.is_some_and(|at| possible.max < self.support[at].max && has_its_place(&self.priors[at], possible));
        if narrower && !named(name) { vec![(name.to_owned(), possible)] } else { Vec::new() }
    }

    /// Returns the possible values of sigma. The outcomes' distances from the regression are at most the bounds plus the offset's
    /// range.
    fn scatter(&self, regression: &Regression, outcome: &ColumnSpec) -> Interval {
        let greatest = |column: &str| match self.columns.get(column) {
            Some(ColumnSpec::Numeric { min, max }) => min.abs().max(max.abs()),
            _ => 1.0,
        };
        let offset = match &regression.design.offset {
            Some(Offset::Value(column)) => greatest(column) + outcome.centre().abs(),
            Some(Offset::Exposure(column)) => match self.columns.get(column) {
                Some(ColumnSpec::Numeric { min, max }) => {
                    libm::log(*min).abs().max(libm::log(*max).abs()) + outcome.centre().abs()
                }
                _ => 0.0,
            },
            None => 0.0,
        };
        Interval { min: 0.0, max: ROOM * (1.0 + offset / outcome.half_width()) }
    }
}

/// Returns whether much of a prior's density lies in this box. A prior centred elsewhere implies another meaning of the
/// parameter.
fn has_its_place(prior: &Prior, within: Interval) -> bool {
    match prior {
        // Their densities are greatest at 0.
        Prior::HalfNormal { .. } | Prior::HalfStudentT { .. } | Prior::HalfCauchy { .. } | Prior::Exponential { .. } => true,
        other => within.contains(other.location()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(model: &str, columns: &str, rest: &str) -> String {
        format!(
            "# mine\nname = \"p\"\nparties = [\"a\"]\n[model]\noutcome = \"y\"\n{model}\n[columns]\n{columns}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{rest}"
        )
    }

    fn boxes(text: &str) -> Vec<(f64, f64)> {
        JobSpec::parse(text).unwrap().support.iter().map(|i| (i.min, i.max)).collect()
    }

    const LINEAR: (&str, &str) =
        ("kind = \"linear\"\npredictors = [\"u\"]", "y = { min = 20, max = 60 }\nu = { min = 0, max = 1 }");

    /// The logarithm of an exposure shifts the outcomes of a linear regression as an offset does.
    #[test]
    fn an_exposure_widens_the_box_of_sigma() {
        let text = "name = \"p\"\nparties = [\"a\"]\n[model]\nformula = \"y ~ u + offset(log(e))\"\nfamily = \"gaussian\"\n[columns]\n\
                    y = { min = -1, max = 1 }\nu = { min = 0, max = 1 }\ne = { min = 1, max = 20.085536923187668 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        let sigma = *boxes(&JobSpec::with_possible_boxes(text)).last().unwrap();
        assert!((sigma.1 - 8.0).abs() < 1e-9, "{sigma:?}");
    }

    /// Whatever the outcomes within their bounds and whatever the coefficients that fit them best, their sd is at most half of
    /// the width: 1 on the model's scale.
    #[test]
    fn what_bounds_limit_has_a_box() {
        let linear = job(LINEAR.0, LINEAR.1, "");
        let boxed = JobSpec::with_possible_boxes(&linear);
        assert_eq!(boxes(&linear).last(), Some(&(1e-6, 1000.0)), "a job without the line keeps what it had");
        assert_eq!(boxes(&boxed).last(), Some(&(1e-6, 2.0)));
        assert!(boxed.starts_with("# mine\n") && boxed.contains("[parameters]\nsigma = { max = 2.0 } #"), "{boxed}");
        assert_eq!(JobSpec::with_possible_boxes(&boxed), boxed);
        assert_eq!(boxes(&boxed)[..2], boxes(&linear)[..2]);
        for (model, columns, expected) in [
            ("kind = \"student_t\"\ndf = 4\npredictors = [\"u\"]", LINEAR.1, (1e-6, 2.0)),
            ("kind = \"linear\"\npredictors = [\"u\"]\noffset = \"u\"", LINEAR.1, (1e-6, 2.0 * (1.0 + 41.0 / 20.0))),
            ("kind = \"poisson_mean\"", "y = { min = 4, max = 12 }", (2.0, 24.0)),
            ("kind = \"poisson_mean\"", "y = { min = 0, max = 12 }", (1e-6, 24.0)),
            ("kind = \"gaussian_mean\"\nsd = 2.0", "y = { min = 20, max = 60 }", (-2.0, 2.0)),
            ("kind = \"gaussian_mean\"\nsd = 40.0", "y = { min = 20, max = 60 }", (-21.0, 21.0)),
        ] {
            assert_eq!(boxes(&JobSpec::with_possible_boxes(&job(model, columns, ""))).last(), Some(&expected), "{model}");
        }
    }

    #[test]
    fn a_job_keeps_what_it_says() {
        for rest in [
            "[parameters]\nsigma = { max = 900 }\n",
            "[parameters]\nsigma = { min = 0.1 }\n",
            "[prior]\nsigma = \"lognormal(3, 0.1)\"\n",
            "[sampler]\nstart = { intercept = 0, u = 0, sigma = 5 }\n",
            "[parameters.sigma]\nmax = 50\n",
        ] {
            let text = job(LINEAR.0, LINEAR.1, rest);
            assert_eq!(JobSpec::with_possible_boxes(&text), text);
        }
        let beside = job(
            LINEAR.0,
            LINEAR.1,
            "[parameters] # the analyst's\nu = { min = -5, max = 5 }\n[prior]\nsigma = \"half_normal(8)\"\n",
        );
        assert_eq!(boxes(&JobSpec::with_possible_boxes(&beside))[1..], [(-5.0, 5.0), (1e-6, 2.0)]);
        // No bound of the outcome limits these.
        for (model, columns) in [
            ("kind = \"logistic\"\npredictors = [\"u\"]", "y = { binary = true }\nu = { min = 0, max = 1 }"),
            ("kind = \"linear\"\nsd = 2.0\npredictors = [\"u\"]", LINEAR.1),
            ("kind = \"weibull\"\nevent = \"u\"", "y = { min = 1, max = 60 }\nu = { binary = true }"),
        ] {
            let text = job(model, columns, "");
            assert_eq!(JobSpec::with_possible_boxes(&text), text);
        }
        assert_eq!(JobSpec::with_possible_boxes("nonsense"), "nonsense");
    }
}
