//! The outcome of a new record.

use conclave_common::schema::ModelSpec;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::covariates::Row;
use crate::error::PredictError;
use crate::interval::Level;
use crate::posterior::Posterior;
use crate::predictor::Predictor;
use crate::summary::Summary;

/// Outcomes that are drawn at a row, at least: the ends of a 95% interval then rest on 250 outcomes beyond each.
const OUTCOMES: usize = 10_000;

impl Predictor<'_> {
    /// Summarises the outcome of a new record at each row: outcomes are drawn from the model at each draw of the posterior, at least
    /// 10,000 in all, with a stream of numbers per row. They are the model's, and not clamped to the outcome's bounds.
    ///
    /// # Errors
    /// A categorical outcome, which has no interval.
    pub fn outcomes(&self, posterior: &Posterior, rows: &[Row], level: Level, seed: u64) -> Result<Vec<Summary>, PredictError> {
        if matches!(self.spec.model, ModelSpec::Multinomial { .. } | ModelSpec::NaiveBayes { .. }) {
            let message = "a category has no interval: the probabilities of the levels describe a new record";
            return Err(PredictError::new(message));
        }
        let per_draw = OUTCOMES.div_ceil(posterior.count().max(1));
        let at_row = |(number, row): (usize, &Row)| {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            rng.set_stream(number as u64);
            let (mut outcomes, mut discrete) = (Vec::with_capacity(per_draw * posterior.count()), false);
            for theta in posterior.draws() {
                let law = self.law(theta, row);
                discrete = law.is_discrete();
                outcomes.extend((0..per_draw).map(|_| law.draw(&mut rng)));
            }
            if discrete { Summary::of_counts(outcomes, level) } else { Summary::new(outcomes, level) }
        };
        Ok(rows.iter().enumerate().map(at_row).collect())
    }
}
