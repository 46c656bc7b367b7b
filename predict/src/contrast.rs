//! Contrasts: every row against the first.

use crate::covariates::Row;
use crate::interval::Level;
use crate::posterior::Posterior;
use crate::predictor::Predictor;
use crate::summary::Summary;

/// The contrast of a row with the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// The row's number, from 0.
    pub row: usize,
    /// The difference of each quantity, the first row's subtracted.
    pub differences: Vec<Summary>,
    /// The ratio on the scale of the link; `None` without a logit or log link.
    pub ratio: Option<Ratio>,
}

/// The exponential of a difference on the scale of the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// `odds_ratio`, `rate_ratio` or `hazard_ratio`.
    pub kind: &'static str,
    /// The ratio, the first row's odds, rate or hazard in the denominator.
    pub summary: Summary,
}

impl Predictor<'_> {
    /// Contrasts every row with the first, draw by draw.
    #[must_use]
    pub fn contrasts(&self, posterior: &Posterior, rows: &[Row], level: Level) -> Vec<Contrast> {
        let Some((first, others)) = rows.split_first() else { return Vec::new() };
        let base: Vec<Vec<f64>> =
            self.quantities().iter().map(|quantity| self.values(posterior, first, quantity.figure)).collect();
        let contrast = |(at, row): (usize, &Row)| {
            let difference = |(quantity, base): (&crate::Quantity, &Vec<f64>)| {
                let values = self.values(posterior, row, quantity.figure);
                Summary::new(values.iter().zip(base).map(|(value, base)| value - base).collect(), level)
            };
            let ratios = posterior.draws().iter().filter_map(|theta| {
                let difference = self.link(theta, row)? - self.link(theta, first)?;
                Some(libm::exp(difference))
            });
            let ratio = self.ratio().map(|kind| Ratio { kind, summary: Summary::new(ratios.collect(), level) });
            Contrast { row: at + 1, differences: self.quantities().iter().zip(&base).map(difference).collect(), ratio }
        };
        others.iter().enumerate().map(contrast).collect()
    }
}
