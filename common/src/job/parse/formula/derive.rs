//! The derived columns of a factor: expressions, and the bases of splines.

use super::declared::{Columns, declared};
use super::ranges;
use crate::formula::{FormulaError, Quantity, Span, Spline, TermFactor};
use crate::job::limits::{MAX_BOUND, MAX_COLUMNS, MAX_NAME};
use crate::parameter::LEAST_MAGNITUDE;
use crate::schema::{ColumnSpec, Derived, NaturalSpline, Operation, Range};

/// The least distance between two knots, and between a knot and a bound, as a share of the bounds' distance.
const LEAST_DISTANCE: f64 = 1e-6;

/// The columns of a factor.
pub(super) struct Names {
    pub(super) names: Vec<String>,
    pub(super) derived: Vec<Derived>,
}

/// Derives the columns of a factor and adds their bounds to `columns`.
pub(super) fn derive(factor: &TermFactor, columns: &mut Columns) -> Result<Names, FormulaError> {
    let derived: Vec<(Derived, Range)> = match &factor.quantity {
        Quantity::Arithmetic(arithmetic) => {
            let ranges::Lowered { sources, operations, range } = ranges::lower(arithmetic, columns)?;
            vec![(Derived { name: factor.text.clone(), columns: sources, operations }, range)]
        }
        Quantity::Linear(spline) => linear(spline, &knots(spline, columns)?),
        Quantity::Natural(spline) => natural(spline, &knots(spline, columns)?),
        Quantity::Column(_) => Vec::new(),
    };
    for (of, (min, max)) in &derived {
        check(of, (*min, *max), factor.span, columns)?;
        columns.insert(of.name.clone(), ColumnSpec::Numeric { min: *min, max: *max });
    }
    let derived: Vec<Derived> = derived.into_iter().map(|(of, _)| of).collect();
    Ok(Names { names: derived.iter().map(|of| of.name.clone()).collect(), derived })
}

/// Checks a derived column as a declared one is checked.
fn check(of: &Derived, (min, max): Range, span: Span, columns: &Columns) -> Result<(), FormulaError> {
    let name = &of.name;
    let fault = |message: String| Err(FormulaError::new(span, message));
    if name.len() > MAX_NAME {
        return fault(format!("the name of this term is longer than {MAX_NAME} bytes: store its values as a column of the data"));
    }
    if columns.contains_key(name) {
        return fault(format!(
            "a second column `{name}`: two splines of a column, or a declared column of that name, cannot be in one formula"
        ));
    }
    if columns.len() >= MAX_COLUMNS {
        return fault(format!("the columns up to here are more than {MAX_COLUMNS}"));
    }
    if max - min < MAX_BOUND.recip() {
        return fault("this is the same number for every record".to_owned());
    }
    Ok(())
}

/// Returns the boundary of a spline with its knots between.
fn knots(spline: &Spline, columns: &Columns) -> Result<Vec<f64>, FormulaError> {
    let column = &spline.column;
    let ColumnSpec::Numeric { min, max } = *declared(column, spline.column_span, columns)? else {
        let message = format!("a spline needs a numeric column: declare `{column} = {{ min = …, max = … }}`");
        return Err(FormulaError::new(spline.column_span, message));
    };
    let is_tiny = |x: f64| x != 0.0 && x.abs() < LEAST_MAGNITUDE;
    if let Some((_, span)) = spline.knots.iter().find(|(knot, _)| is_tiny(*knot) || is_tiny(min) || is_tiny(max)) {
        return Err(FormulaError::new(*span, format!("knots and bounds are 0, or at least {LEAST_MAGNITUDE:e} in magnitude")));
    }
    let mut all = vec![min];
    for (knot, span) in &spline.knots {
        let least = LEAST_DISTANCE * (max - min);
        let before = all.last().copied().unwrap_or(min);
        if *knot - before < least || max - *knot < least {
            let message = format!("knots increase, strictly between the bounds of `{column}`, {min} and {max}");
            return Err(FormulaError::new(*span, message));
        }
        all.push(*knot);
    }
    all.push(max);
    Ok(all)
}

/// Returns the column's parts between its knots: a coefficient is the slope there. The first part keeps the column's own origin.
fn linear(spline: &Spline, knots: &[f64]) -> Vec<(Derived, Range)> {
    let part = |(at, ends): (usize, &[f64])| {
        let origin = if at == 0 { 0.0 } else { ends[0] };
        let operation = Operation::Segment { from: ends[0], to: ends[1], origin };
        let range = operation.range(&[(ends[0], ends[1])]);
        (of_column(format!("ls({})[{}]", spline.column, at + 1), spline, operation), range)
    };
    knots.windows(2).enumerate().map(part).collect()
}

/// Returns the cardinal functions of all knots but the lower bound: a coefficient is the height at its knot over that at the lower
/// bound.
fn natural(spline: &Spline, knots: &[f64]) -> Vec<(Derived, Range)> {
    let function = |at: usize| {
        let function = NaturalSpline::cardinal(knots, at);
        let range = function.range();
        (of_column(format!("ns({})[{at}]", spline.column), spline, Operation::Natural(function)), range)
    };
    (1..knots.len()).map(function).collect()
}

fn of_column(name: String, spline: &Spline, operation: Operation) -> Derived {
    Derived { name, columns: vec![spline.column.clone()], operations: vec![Operation::Column(0), operation] }
}
