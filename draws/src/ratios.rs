//! Odds, rate and hazard ratios: coefficients of logistic, count and survival regressions in the terms that studies report.

use conclave_common::job::JobSpec;
use conclave_common::schema::{Design, Family, Feature, ModelSpec};
use conclave_inference::diagnostics::Summary;
use serde::Serialize;

/// The factor by which one unit of a predictor, in the data's own units, multiplies the odds, the rate or the hazard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The coefficient.
    pub name: String,
    /// `odds_ratio`, `rate_ratio` or `hazard_ratio`.
    pub kind: &'static str,
    /// 5% quantile, positive.
    pub q5: f64,
    /// Median.
    pub median: f64,
    /// 95% quantile.
    pub q95: f64,
}

/// Computes the ratios from the posterior in the data's own units; none for a model without a logit or log link. The intercept and the log
/// hazards are excluded, since they give the odds, the rate or the hazard itself.
pub(crate) fn ratios(spec: &JobSpec, posterior_original: &[(&str, Summary)]) -> Vec<Ratio> {
    let (kind, first, design) = match &spec.model {
        ModelSpec::PiecewiseExponential(survival) => ("hazard_ratio", survival.intervals(), &survival.design),
        ModelSpec::Regression(regression) => {
            let kind = match regression.family {
                Family::Logistic => "odds_ratio",
                Family::Poisson | Family::NegativeBinomial => "rate_ratio",
                Family::Linear { .. } | Family::StudentT { .. } => return Vec::new(),
            };
            (kind, usize::from(regression.design.intercept), &regression.design)
        }
        _ => return Vec::new(),
    };
    let count = design.features.len();
    let is_whole = |at: usize| kind != "hazard_ratio" && is_whole(design, &design.features[at]);
    // Quantiles are preserved by the exponential, which is monotone.
    let ratio = |(name, summary): &(&str, Summary)| {
        let [q5, median, q95] = [summary.q5, summary.median, summary.q95].map(libm::exp);
        Ratio { name: (*name).to_owned(), kind, q5, median, q95 }
    };
    let step = spec.parties.len() + 1;
    let at_parties = spec.varying().iter().enumerate().filter(|(_, site)| (first..first + count).contains(&site.index));
    let places = at_parties.flat_map(|(at, _)| (0..spec.parties.len()).map(move |party| spec.dimension() + at * step + party));
    (first..first + count)
        .filter(|place| !is_whole(place - first))
        .chain(places)
        .filter_map(|place| posterior_original.get(place))
        .map(ratio)
        .collect()
}

/// Returns true for the indicator of a level in a model without an intercept whose term has all levels: its coefficient is the level's
/// odds, rate or mean itself, and no ratio or difference.
#[must_use]
pub fn is_whole(design: &Design, feature: &Feature) -> bool {
    let of_term = || design.features.iter().filter(|other| other.term == feature.term);
    let all_levels = of_term().any(|other| other.factors.iter().any(|factor| factor.level == Some(0)));
    !design.intercept && all_levels && feature.factors.iter().all(|factor| factor.level.is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_inference::diagnostics::summarise;

    fn names(kind: &str, more: &str) -> Vec<(String, &'static str, f64)> {
        let spec = JobSpec::parse(&format!(
            "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = [\"x\", \"w\"]\n{more}[columns]\n\
             {}\nx = {{ min = 0, max = 4 }}\nw = {{ levels = [\"p\", \"q\"] }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
            if kind == "logistic" { "y = { binary = true }" } else { "y = { min = 0, max = 9 }" }
        ));
        let spec = spec.unwrap();
        let value = [0.5, 0.25];
        let parameters = spec.model.parameter_names();
        let row = |(i, name)| {
            let name: &String = name;
            (name.as_str(), summarise(&[&[value[i % 2]; 4], &[value[i % 2]; 4]]))
        };
        let rows: Vec<(&str, Summary)> = parameters.iter().enumerate().map(row).collect();
        ratios(&spec, &rows).into_iter().map(|ratio| (ratio.name, ratio.kind, ratio.median)).collect()
    }

    #[test]
    fn only_coefficients_have_ratios() {
        let [x, w] = [("x".to_owned(), 0.25_f64.exp()), ("w[q]".to_owned(), 0.5_f64.exp())];
        for (model, kind) in [("logistic", "odds_ratio"), ("poisson", "rate_ratio"), ("negative_binomial", "rate_ratio")] {
            assert_eq!(names(model, ""), [(x.0.clone(), kind, x.1), (w.0.clone(), kind, w.1)]);
        }
        assert_eq!(names("logistic", "intercept = false\n").len(), 2);
        assert_eq!(names("linear", ""), []);
    }
}
