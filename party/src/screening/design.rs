//! Screens the records for a job's model: no usable record, predictors that are constant or determined by others, outcomes that
//! the predictors determine without error.

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_privacy::pass::ModelData;

use super::concern::Concern;
use super::records::Records;
use super::separation::{Classes, Separation, cholesky};
use conclave_vault::data::{Binding, DataError, Kind};

/// Share of its own variance below which a predictor is determined by the others.
const OWN_SHARE: f64 = 1e-3;
/// Maximum number of predictors for pairwise comparison, whose cost per row is quadratic.
const MOST_COMPARED: usize = 128;

const LOOK: &str = "its coefficient will reflect the prior only; inform the analyst";

pub(super) fn concerns(shard: &dyn Records, spec: &JobSpec, binding: &Binding) -> Result<Vec<Concern>, DataError> {
    let is_binary = matches!(spec.columns.get(spec.model.outcome()), Some(ColumnSpec::Binary));
    let features = spec.model.design().map(|design| design.features.as_slice()).unwrap_or_default();
    let mut seen = DesignSums::new(features.len(), is_binary);
    shard.look_at_designs(binding, &mut |data| seen.take(data))?;
    if seen.count == 0.0 {
        let found = format!("none of {} rows contributes to the job", shard.file_rows());
        let remedy = "each has an unusable value or a level that the job does not list: correct the file, or ask the analyst for \
                      levels that fit";
        return Ok(vec![Concern::grave(found, remedy)]);
    }
    let mut found = Vec::new();
    let constant: Vec<bool> = (0..features.len()).map(|at| seen.variance(at, at) <= 1e-12 * seen.count).collect();
    for (feature, at) in features.iter().zip(0..).filter(|(_, at)| constant[*at]) {
        let levelled = feature.factors.iter().any(|factor| factor.level.is_some());
        if levelled && seen.sums[at] == 0.0 {
            found.push(Concern::new(format!("no usable record has {}", feature.name), LOOK));
        } else if feature.factors.iter().all(|factor| sources(spec, &factor.column).any(|column| varies(shard, column))) {
            found.push(Concern::new(format!("{} is the same for the job in every usable record", feature.name), LOOK));
        }
    }
    let varying: Vec<usize> = (0..features.len()).filter(|at| !constant[*at]).collect();
    let name = |at: usize| features[at].name.as_str();
    if varying.len() <= MOST_COMPARED {
        found.extend(collinear(&seen, &varying).into_iter().map(|(at, partner)| {
            let others = partner.map_or("the other predictors", &name);
            let remedy =
                "the two can't be distinguished, and their coefficients will reflect the prior and the noise; inform the analyst";
            Concern::new(format!("{} is determined by {others}", name(at)), remedy)
        }));
    }
    if let Some(classes) = &seen.classes {
        let outcome = spec.model.outcome();
        let remedy = "only the prior limits the coefficient; check whether the column was recorded after the outcome";
        found.extend(classes.separation(shard, binding, &varying)?.into_iter().map(|separation| match separation {
            Separation::One(at) => {
                Concern::new(format!("{} alone determines {outcome}: one of its values separates 0 from 1", name(at)), remedy)
            }
            Separation::Level(at) => {
                Concern::new(format!("{} determines {outcome}: the outcome is the same wherever it holds", name(at)), remedy)
            }
            Separation::Joint => Concern::new(format!("the predictors together determine every {outcome}"), remedy),
        }));
    }
    Ok(found)
}

/// Yields the columns of the data that a column of the model is computed from: itself, unless it is derived.
fn sources<'a>(spec: &'a JobSpec, name: &'a str) -> impl Iterator<Item = &'a str> {
    let derived = spec.model.design().and_then(|design| design.derived.iter().find(|derived| derived.name == name));
    let own = derived.is_none().then_some(name);
    own.into_iter().chain(derived.into_iter().flat_map(|derived| derived.columns.iter().map(String::as_str)))
}

/// Returns true if a column is not constant; a constant one has its own concern.
fn varies(shard: &dyn Records, name: &str) -> bool {
    match shard.kind(name) {
        Some(Kind::Texts(words)) => words.len() > 1,
        _ => super::columns::Ends::of(shard, name).is_ok_and(|ends| ends.low.value < ends.high.value),
    }
}

/// Sums over the usable records.
struct DesignSums {
    count: f64,
    sums: Vec<f64>,
    /// Sums of products by predictor; the lower triangle.
    products: Vec<Vec<f64>>,
    classes: Option<Classes>,
}

impl DesignSums {
    fn new(features: usize, is_binary: bool) -> Self {
        let compared = if features <= MOST_COMPARED { features } else { 0 };
        let products = (0..features).map(|at| vec![0.0; if at < compared { at + 1 } else { 0 }]).collect();
        Self {
            count: 0.0,
            sums: vec![0.0; features],
            products,
            classes: (is_binary && features > 0).then(|| Classes::new(features)),
        }
    }

    fn take(&mut self, data: &ModelData) {
        let usable: Vec<usize> = (0..data.outcome.len()).filter(|row| !data.outcome[*row].is_nan()).collect();
        self.count += usable.len() as f64;
        let columns: Vec<Vec<f64>> =
            data.predictors.iter().map(|column| usable.iter().map(|row| column[*row]).collect()).collect();
        for (at, column) in columns.iter().enumerate() {
            self.sums[at] += column.iter().sum::<f64>();
            for (product, other) in self.products[at].iter_mut().zip(&columns) {
                *product += column.iter().zip(other).map(|(x, y)| x * y).sum::<f64>();
            }
        }
        if let Some(classes) = &mut self.classes {
            let outcomes: Vec<bool> = usable.iter().map(|row| data.outcome[*row] > 0.5).collect();
            classes.take(&outcomes, &columns);
        }
    }

    /// Returns the sum of products of two predictors' deviations from their means, the second not after the first. With too many
    /// predictors none are compared, and all count as varying.
    fn variance(&self, at: usize, other: usize) -> f64 {
        let product = self.products[at].get(other).copied();
        product.map_or(f64::INFINITY, |product| product - self.sums[at] * self.sums[other] / self.count)
    }
}

/// Finds predictors determined by earlier ones, with the earlier one if it is a single one.
fn collinear(seen: &DesignSums, varying: &[usize]) -> Vec<(usize, Option<usize>)> {
    let scale: Vec<f64> = varying.iter().map(|at| seen.variance(*at, *at).sqrt()).collect();
    let correlation = |i: usize, j: usize| seen.variance(varying[i], varying[j]) / (scale[i] * scale[j]);
    let correlations: Vec<Vec<f64>> = (0..varying.len()).map(|i| (0..=i).map(|j| correlation(i, j)).collect()).collect();
    let (_, own) = cholesky(&correlations, OWN_SHARE);
    let follows = (0..varying.len()).filter(|i| own[*i] < OWN_SHARE);
    follows
        .map(|i| {
            let partner = (0..i).find(|j| 1.0 - correlations[i][*j].powi(2) < OWN_SHARE);
            (varying[i], partner.map(|j| varying[j]))
        })
        .collect()
}
