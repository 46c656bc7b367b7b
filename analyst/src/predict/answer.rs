//! The predictions that a request asks for.

use conclave_common::job::JobSpec;
use conclave_common::text::{figure, one_line};
use conclave_predict::{
    AverageEffect, Clamped, Contrast, Covariates, Level, Posterior, PredictError, Predictor, Quantity, Site, Summary, Table,
    Value,
};

/// The request of a prediction.
pub(crate) struct Request {
    pub(crate) tables: Vec<Table>,
    pub(crate) party: Option<String>,
    pub(crate) new_party: bool,
    pub(crate) times: Vec<f64>,
    pub(crate) outcome: bool,
    pub(crate) contrast: bool,
    pub(crate) average: Vec<String>,
    pub(crate) level: Level,
    pub(crate) seed: Option<u64>,
}

/// Predictions, with everything needed to show them.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) model: &'static str,
    pub(super) quantities: Vec<Quantity>,
    /// The party that the predictions are for; `None` in a job whose parties share every parameter.
    pub(super) site: Option<String>,
    pub(super) level: Level,
    /// Number of draws of the posterior.
    pub(super) draws: usize,
    pub(super) seed: u64,
    /// The covariates of each row.
    pub(super) rows: Vec<Vec<(String, Value)>>,
    /// Each quantity at each row, `[row][quantity]`; empty for average effects.
    pub(super) expected: Vec<Vec<Summary>>,
    /// A new record's outcome at each row; empty unless asked for.
    pub(super) outcomes: Vec<Summary>,
    pub(super) contrasts: Vec<Contrast>,
    pub(super) averages: Vec<AverageEffect>,
    pub(super) clamped: Vec<Clamped>,
    /// The fit whose parameters the run estimates, if its result names it.
    pub(super) estimand: Option<String>,
    /// The warnings of the run's result, which hold for what is computed from its draws.
    pub(super) of_result: Vec<String>,
}

impl Answer {
    /// Returns the columns of the rows: a row may leave out the exposure.
    pub(super) fn columns(&self) -> Vec<&str> {
        let widest = self.rows.iter().max_by_key(|row| row.len());
        widest.map_or_else(Vec::new, |row| row.iter().map(|(name, _)| name.as_str()).collect())
    }

    /// Returns a sentence for each column with values that the bounds replace, and one on a level for which the draws are few.
    pub(super) fn warnings(&self) -> Vec<String> {
        let sentence = |clamped: &Clamped| {
            let Clamped { column, value, used, bounds, place, rows } = clamped;
            let more = match rows {
                1 => String::new(),
                2 => " (and in another row)".to_owned(),
                _ => format!(" (and in {} other rows)", rows - 1),
            };
            one_line(&format!(
                "{place}: {column} = {value} lies outside the declared bounds, {bounds}; the model clamps such records, and {} is used{more}",
                figure(*used)
            ))
        };
        self.clamped.iter().map(sentence).chain(self.level.few_draws(self.draws)).collect()
    }
}

/// Predicts from the kept draws, `[value][chain][draw]`.
///
/// # Errors
/// A request that does not fit the job.
pub(super) fn answer(spec: &JobSpec, samples: &[Vec<Vec<f64>>], request: &Request) -> Result<Answer, PredictError> {
    let predictor = Predictor::new(spec, &request.times)?;
    let (covariates, clamped) = covariates(spec, &request.tables)?;
    let seed = request.seed.unwrap_or(spec.sampler.seed);
    let site = match &request.party {
        Some(party) => Site::Party(party),
        None if request.new_party => Site::New { seed },
        None => Site::Mean,
    };
    let posterior = Posterior::new(spec, samples, site)?;
    let rows = predictor.rows(&covariates)?;
    if request.contrast && rows.len() < 2 {
        return Err(error("a contrast needs at least two rows: repeat --at"));
    }
    let average = |column: &String| predictor.average_effects(&posterior, &covariates, column, request.level);
    let averages = request.average.iter().map(average).collect::<Result<Vec<_>, _>>()?.concat();
    let each_row = request.average.is_empty();
    let named = |row: usize| covariates.row(spec, row).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Answer {
        model: spec.model.kind(),
        quantities: predictor.quantities().to_vec(),
        site: spec.sites.as_ref().map(|_| site_words(site)),
        level: request.level,
        draws: posterior.count(),
        seed,
        rows: (0..covariates.count()).map(named).collect(),
        expected: if each_row { predictor.expected(&posterior, &rows, request.level) } else { Vec::new() },
        outcomes: match request.outcome {
            true => predictor.outcomes(&posterior, &rows, request.level, seed)?,
            false => Vec::new(),
        },
        contrasts: if request.contrast { predictor.contrasts(&posterior, &rows, request.level) } else { Vec::new() },
        averages,
        clamped,
        estimand: None,
        of_result: Vec::new(),
    })
}

/// Reads the rows of a request; a model without predictors has one row of its own.
fn covariates(spec: &JobSpec, tables: &[Table]) -> Result<(Covariates, Vec<Clamped>), PredictError> {
    if !tables.is_empty() {
        return Covariates::read(spec, tables);
    }
    let needed = Covariates::needed(spec).join(", ");
    let missing = || error(format!("give rows to predict at, with --at or --data: the model has {needed}"));
    Covariates::without_rows(spec).map(|covariates| (covariates, Vec::new())).ok_or_else(missing)
}

fn site_words(site: Site<'_>) -> String {
    match site {
        Site::Mean => "the mean over the parties".to_owned(),
        Site::Party(party) => party.to_owned(),
        Site::New { .. } => "a new party".to_owned(),
    }
}

fn error(message: impl Into<String>) -> PredictError {
    PredictError::new(message)
}
