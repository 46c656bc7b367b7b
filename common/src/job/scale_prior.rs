//! The prior of a survival model's scale, in units of the longest declared time.
//!
//! If most times are censored, the scale lies beyond the longest time, and the half-normal default of earlier versions pulls it
//! back. The analyst's program writes a prior on the logarithm of the scale into a job before it is signed: an earlier text keeps
//! its meaning.

use super::edit;
use super::spec::JobSpec;
use crate::schema::ModelSpec;
use crate::settings::is_written;

/// The prior: its median is the longest declared time, and 134 times that is two standard deviations away.
const SCALE: &str = "scale = \"lognormal(0, 2.5)\" # weak on either side of the longest declared time";

impl JobSpec {
    /// Adds a prior of the scale to a `weibull` job that states none. Returns any other text unchanged, and one to which no line
    /// can be added.
    #[must_use]
    pub fn with_scale_prior(text: &str) -> String {
        let (Ok(spec), Ok(file)) = (Self::parse(text), edit::read(text)) else { return text.to_owned() };
        if !matches!(spec.model, ModelSpec::Weibull { .. }) || is_written(&file, "prior.scale") {
            return text.to_owned();
        }
        let written = edit::with_lines(text, "prior", &[SCALE]);
        if Self::parse(&written).is_ok() { written } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::parameter::Prior;

    fn job(kind: &str, more: &str) -> String {
        format!(
            "name = \"t\"\nparties = [\"a\"]\n[model]\noutcome = \"y\"\n{kind}\n[columns]\ny = {{ min = 1, max = 60 }}\nd = {{ binary = true }}\n{more}\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        )
    }

    const TIMES: &str = "kind = \"weibull\"\nevent = \"d\"";

    /// Returns the slope of the prior's log density in the logarithm of the scale at ten times the longest time.
    fn pull(text: &str) -> f64 {
        let prior = JobSpec::parse(text).unwrap().priors[1];
        let log = |u: f64| prior.log_density(u.exp()) + u;
        (log(10_f64.ln() + 1e-4) - log(10_f64.ln() - 1e-4)) / 2e-4
    }

    /// With 300 events and a shape of 0.5 the log of the scale has an sd of 0.12, so a pull of 1 moves it by an eighth of an sd. The
    /// default of an earlier text moves it by two sds.
    #[test]
    fn a_scale_beyond_the_longest_time_is_not_pulled_back() {
        for text in [job(TIMES, ""), job(TIMES, "[prior] # mine\nshape = \"half_normal(2)\"\n")] {
            let written = JobSpec::with_scale_prior(&text);
            assert_eq!(JobSpec::parse(&written).unwrap().priors[1], Prior::LogNormal { location: 0.0, scale: 2.5 });
            assert!(pull(&text) < -14.0 && pull(&written).abs() < 1.0, "{} {}", pull(&text), pull(&written));
            assert_eq!(JobSpec::with_scale_prior(&written), written);
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            job(TIMES, "[prior]\nscale = \"half_normal(3)\"\n"),
            job("kind = \"poisson_mean\"", ""),
            job(TIMES, "").replace("name = ", "prior = {}\nname = "),
            "no job".to_owned(),
        ] {
            assert_eq!(JobSpec::with_scale_prior(&text), text);
        }
    }
}
