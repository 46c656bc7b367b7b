//! The price of a vector query: a gradient, a curvature, second moments or cell counts.
//!
//! The price does not depend on a query's numbers. These only scale a record's contribution before it is held to its public
//! length: a wrong scale costs accuracy, never privacy.

use crate::model::{Model, Remainder, Summand};
use crate::parameter::LEAST_MAGNITUDE;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{GRADIENT_UNITS, MechanismError, QueryKind, Sensitivity, sensitivity};
use conclave_privacy::pass::Frame;
use conclave_privacy::pass::hold::Moves;

/// The largest scale of a curvature. It keeps a record's scaled information from becoming subnormal, since arithmetic on
/// subnormal numbers takes a time that depends on the record.
pub const MOST_SCALE: f64 = 1.0 / LEAST_MAGNITUDE;

/// The number of lattice units in a product of two numbers of magnitude 1.
const PRODUCT_UNITS: u64 = 1 << 32;

/// The price of a vector query.
pub(super) struct Price {
    pub(super) sensitivity: Sensitivity,
    /// The largest magnitude of a component of one unit's contribution, in lattice units.
    pub(super) greatest: u64,
    /// The size of the admissible set: the bound of a trace, or the number of tables; 0 for others.
    pub(super) size: u64,
}

/// Returns the price of a vector query.
///
/// Returns `None` if the model has no such vector, or if the query's number of parameters or scales does not fit it.
///
/// # Errors
/// [`MechanismError::TooWide`] beyond 2^50.
pub(super) fn price(
    model: &dyn Model,
    unit: PrivacyUnit,
    kind: QueryKind,
    (from, to): (&[f64], &[f64]),
) -> Result<Option<Price>, MechanismError> {
    let records = unit.records_per_person().unwrap_or(1);
    if let QueryKind::Table { cells } = kind {
        if !(from.is_empty() && to.is_empty()) {
            return Ok(None);
        }
        let (counted, tables) = match (model.tables(), model.outcome_table()) {
            (Some(tables), _) => (tables.cells(), tables.count()),
            (None, Some(table)) => (table.cells(), 1),
            (None, None) => return Ok(None),
        };
        let sensitivity = Moves::one_hot(tables, records).sensitivity(unit)?;
        let greatest = QueryKind::COUNT_UNIT * u64::from(records);
        return Ok((counted == cells as usize).then_some(Price { sensitivity, greatest, size: tables as u64 }));
    }
    let Some(scores) = model.scores() else { return Ok(None) };
    if let QueryKind::Remainder { parameters } = kind {
        let step = Remainder::new(from, to, parameters as usize).filter(|_| parameters as usize == scores.parameters());
        let bound = step.and_then(|step| Some(step.bound(scores.remainder_bound(step.points)?, scores.vector_rounding(&step))));
        return bound.map(|bound| Ok(Price::of_a_clamp(unit.sensitivity(sensitivity(bound, None)?)?))).transpose();
    }
    let fits = summand(kind, (from, to), Sensitivity::from_units(1)?, 0).is_some();
    let (order, own) = (scores.parameters() as u64, scores.parameters() - scores.coefficients());
    let products = |squares: u64| {
        let sensitivity = Moves::trace(squares, records).sensitivity(unit)?;
        Ok(Some(Price { sensitivity, greatest: PRODUCT_UNITS * u64::from(records), size: squares }))
    };
    match kind {
        QueryKind::Gradient { parameters } | QueryKind::SampledGradient { parameters }
            if fits && u64::from(parameters) == order =>
        {
            Ok(Some(Price::of_a_clamp(unit.sensitivity(Sensitivity::from_units(GRADIENT_UNITS)?)?)))
        }
        QueryKind::Curvature { parameters } if fits && u64::from(parameters) == order => {
            products(scores.most_squares() + own as u64)
        }
        QueryKind::Moments { order } if fits && order as usize == scores.coefficients() + 1 => {
            if scores.moments_outcome().is_some() { products(scores.most_squares() + 1) } else { Ok(None) }
        }
        _ => Ok(None),
    }
}

impl Price {
    /// The price of a contribution whose length is at most the sensitivity.
    fn of_a_clamp(sensitivity: Sensitivity) -> Self {
        Self { sensitivity, greatest: sensitivity.units(), size: 0 }
    }
}

/// Returns the sum that a vector or remainder query requests over the units of a shard. `clamp` bounds each unit's contribution
/// to a remainder, `size` is [`Price::size`]. Returns `None` if the numbers do not fit the kind.
pub(super) fn summand<'a>(
    kind: QueryKind,
    (from, to): (&'a [f64], &'a [f64]),
    clamp: Sensitivity,
    size: u64,
) -> Option<Summand<'a>> {
    match kind {
        QueryKind::Remainder { parameters } => {
            Remainder::new(from, to, parameters as usize).map(|step| Summand::Remainder { step, clamp })
        }
        QueryKind::Gradient { parameters } | QueryKind::SampledGradient { parameters } if from.len() == parameters as usize => {
            Some(Summand::Gradient { at: from, frame: Frame::new(to, from.len())? })
        }
        QueryKind::Curvature { parameters } if from.len() == parameters as usize => {
            let scales: [f64; 2] = to.try_into().ok()?;
            scales.iter().all(|scale| *scale > 0.0 && *scale <= MOST_SCALE).then_some(Summand::Curvature {
                at: from,
                scales,
                squares: size,
            })
        }
        QueryKind::Table { cells } if from.is_empty() && to.is_empty() => {
            Some(Summand::Table { tables: size as usize, cells: cells as usize })
        }
        QueryKind::Moments { order } if from.is_empty() && to.is_empty() => {
            Some(Summand::Moments { order: order as usize, squares: size })
        }
        _ => None,
    }
}
