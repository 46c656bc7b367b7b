//! The figures of an answer, and their place in the result: at its top, or under `inadequate`.

use conclave_inference::diagnostics::{self, Summary};
use conclave_inference::sampler::{FittedPosterior, RunReport, Stage, Weighted};
use serde::Serialize;

pub use crate::new_party::NewParty;
pub use crate::ratios::Ratio;
pub use crate::survival::SurvivalCurve;

/// The figures of an answer.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// The posterior on the scale that priors are declared on.
    pub posterior: Vec<Row<PosteriorRow>>,
    /// The posterior in the data's own units.
    pub posterior_original: Vec<Row<PosteriorRow>>,
    /// Odds, rate or hazard ratios per unit of each predictor, in the data's own units; none for other models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Row<Ratio>>,
    /// Predictions of the parameters that vary by party, at a party that is not in the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_party: Vec<Row<NewParty>>,
    /// Survival curves of a survival model with predictors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survival: Vec<Row<SurvivalCurve>>,
}

/// A row of figures with its mark, which stays with a row that is copied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row<T> {
    /// The figures.
    #[serde(flatten)]
    pub of: T,
    /// False for a row that cannot be relied on.
    #[serde(skip_serializing_if = "is_true")]
    pub usable: bool,
}

fn is_true(usable: &bool) -> bool {
    *usable
}

impl<T> Row<T> {
    pub(crate) fn all(rows: Vec<T>) -> Vec<Self> {
        rows.into_iter().map(|of| Self { of, usable: true }).collect()
    }

    fn marked(rows: Vec<Self>, usable: bool) -> Vec<Self> {
        rows.into_iter().map(|row| Self { usable, ..row }).collect()
    }
}

impl Figures {
    /// Marks every row as one that can or cannot be relied on.
    pub(crate) fn marked(self, usable: bool) -> Self {
        Self {
            posterior: Row::marked(self.posterior, usable),
            posterior_original: Row::marked(self.posterior_original, usable),
            ratios: Row::marked(self.ratios, usable),
            new_party: Row::marked(self.new_party, usable),
            survival: Row::marked(self.survival, usable),
        }
    }
}

/// All figures of an answer that is not adequate.
#[derive(Debug, Clone, Serialize)]
pub struct Inadequate {
    /// The figures of the draws.
    #[serde(flatten)]
    pub figures: Figures,
    /// The quadratic fitted to the releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surrogate: Option<FittedPosterior>,
    /// The weights of the records, with the frame and the point at which they were computed, which the result's own section then lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted: Option<Weighted>,
    /// The releases by stage, with the estimates after each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Stage>,
}

impl Inadequate {
    /// Takes the estimates out of a run's report and releases.
    pub(crate) fn take(figures: Figures, report: &mut RunReport, releases: &mut Vec<Stage>) -> Self {
        let weighted = report.weighted.clone();
        if let Some(weighted) = &mut report.weighted {
            (weighted.frame, weighted.at) = (Vec::new(), Vec::new());
        }
        Self { figures: figures.marked(false), surrogate: report.surrogate.take(), weighted, releases: std::mem::take(releases) }
    }
}

/// One parameter's summary. Undefined numbers (R-hat of too few draws) are `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PosteriorRow {
    /// The parameter.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// The fit whose parameter it is: `plain`, or `weighted` where records with unusual predictors or residuals count less. Only for a
    /// run that infers from few releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimand: Option<&'static str>,
    /// The fraction of its variance due to the noise; `null` if the releases do not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_share: Option<Option<f64>>,
    /// Its sd without the noise; `null` as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd_data: Option<Option<f64>>,
}

impl PosteriorRow {
    pub(crate) fn new(name: &str, chains: &[&[f64]]) -> Self {
        let draws = chains.iter().map(|chain| chain.len()).sum();
        let summary = diagnostics::summarise(chains).published(draws);
        Self { name: name.to_owned(), summary, estimand: None, noise_share: None, sd_data: None }
    }

    pub(crate) fn with_noise_share(self, share: Option<f64>) -> Self {
        let sd_data = share.map(|share| self.summary.sd * (1.0 - share).sqrt());
        Self { noise_share: Some(share), sd_data: Some(sd_data), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Antithetic chains have an effective sample size beyond their length.
    #[test]
    fn the_effective_sample_size_is_capped_by_the_draws() {
        let swing: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } + 0.01 * f64::from(i * 37 % 101)).collect();
        assert!(diagnostics::ess_bulk(&[&swing, &swing]) > 400.0);
        let row = PosteriorRow::new("x", &[&swing, &swing]);
        assert!(row.summary.ess_bulk <= 400.0 && row.summary.ess_tail <= 400.0 && row.summary.mcse_mean > 0.0);
    }

    /// With few effective draws the Monte Carlo error of an sd is no figure.
    #[test]
    fn an_error_of_the_sd_needs_effective_draws() {
        let draws = |count: u32| -> Vec<f64> { (0..count).map(|i| f64::from(i * 7919 % 1009)).collect() };
        let error = |count: u32| PosteriorRow::new("x", &[&draws(count), &draws(count)]).summary.mcse_sd;
        assert!(error(20).is_nan() && error(200) > 0.0);
    }

    #[test]
    fn an_undefined_number_is_null() {
        let json = serde_json::to_value(PosteriorRow::new("age", &[&[1.0, 1.0], &[1.0, 1.0]])).unwrap_or_default();
        assert!(json["rhat"].is_null() && json["mcse_mean"].is_null() && json["ess_q5"].is_null());
        assert_eq!((&json["name"], &json["mean"]), (&"age".into(), &1.0.into()));
    }

    /// A row carries its mark, and a row that can be relied on is written as before.
    #[test]
    fn a_row_that_is_not_usable_says_so() {
        let rows = Row::all(vec![PosteriorRow::new("age", &[&[1.0, 2.0]])]);
        let of = |figures: &Figures| serde_json::to_value(figures).unwrap_or_default()["posterior"][0].clone();
        let figures = Figures { posterior: rows, ..Figures::default() };
        assert!(of(&figures)["usable"].is_null());
        let marked = of(&figures.marked(false));
        assert_eq!((&marked["usable"], &marked["name"], &marked["mean"]), (&false.into(), &"age".into(), &1.5.into()));
    }
}
