//! The linear predictor of a formula's terms.

use super::declared::{Columns, declared};
use super::derive::{self, Names};
use crate::formula::{Effects, Formula, FormulaError, FormulaOffset, Quantity, Span, TermFactor, full_rank};
use crate::job::limits::MAX_COLUMNS;
use crate::job::parse::regression::{Coding, expand};
use crate::schema::{ColumnSpec, Derived, Design, Feature, Offset};
use crate::spelling::nearest;

/// A formula's linear predictor, and the names of the parameters that vary by party.
pub(super) struct Lowered {
    pub(super) design: Design,
    /// The place of each of the design's terms in the formula.
    pub(super) spans: Vec<Span>,
    pub(super) varying: Vec<String>,
}

/// Lowers a formula. Derived columns are added to `columns` with their bounds.
pub(super) fn lower(formula: &Formula, columns: &mut Columns) -> Result<Lowered, FormulaError> {
    let (outcome, outcome_span) = &formula.outcome;
    declared(outcome, *outcome_span, columns)?;
    let mut factors = Factors { outcome, known: Vec::new(), derived: Vec::new() };
    let mut terms = Vec::new();
    for term in &formula.terms {
        terms.push(term.factors.iter().map(|factor| factors.number(factor, columns)).collect::<Result<Vec<_>, _>>()?);
    }
    let categorical = |number: &usize| (*number, matches!(factors.known[*number].1, Kind::Levels(_)));
    let kinds: Vec<Vec<(usize, bool)>> = terms.iter().map(|term| term.iter().map(categorical).collect()).collect();
    let (mut names, mut spans, mut features) = (Vec::new(), Vec::new(), Vec::new());
    for (term, products) in formula.terms.iter().zip(full_rank(&kinds, formula.intercept)) {
        for product in products {
            let coded: Vec<_> = product.iter().map(|coded| (factors.names(coded.factor), coded.is_full)).collect();
            for columns_of_product in combinations(&coded) {
                features.extend(feature_list(names.len(), &columns_of_product, columns, term.span)?);
                spans.push(term.span);
                names.push(columns_of_product.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(":"));
                if features.len() > MAX_COLUMNS {
                    return Err(FormulaError::new(
                        term.span,
                        format!("the terms up to here have more than {MAX_COLUMNS} parameters"),
                    ));
                }
            }
        }
    }
    if !formula.intercept && features.is_empty() {
        return Err(FormulaError::new(*outcome_span, "a model without intercept needs at least one term"));
    }
    let offset = formula.offset.as_ref().map(|offset| lowered_offset(offset, outcome, columns)).transpose()?;
    let varying = formula.effects.iter().map(|effects| varying(effects, formula, &mut factors, columns));
    let varying = varying.collect::<Result<Vec<_>, _>>()?.concat();
    let design = Design { intercept: formula.intercept, terms: names, features, offset, derived: factors.derived };
    Ok(Lowered { design, spans, varying })
}

/// The columns of a factor.
enum Kind {
    /// A column with levels.
    Levels(String),
    /// One number, or several for a spline.
    Numbers(Vec<String>),
}

/// The factors of a formula, each once.
struct Factors<'a> {
    outcome: &'a str,
    /// A factor's text and its columns.
    known: Vec<(String, Kind)>,
    derived: Vec<Derived>,
}

impl Factors<'_> {
    /// Returns the number of a factor, which is added if it is new.
    fn number(&mut self, factor: &TermFactor, columns: &mut Columns) -> Result<usize, FormulaError> {
        if let Some(at) = self.known.iter().position(|(text, _)| *text == factor.text) {
            return Ok(at);
        }
        let kind = match &factor.quantity {
            Quantity::Column(name) => {
                self.not_the_outcome(name, factor.span)?;
                match declared(name, factor.span, columns)? {
                    ColumnSpec::Levels(_) => Kind::Levels(name.clone()),
                    _ => Kind::Numbers(vec![name.clone()]),
                }
            }
            _ => {
                let Names { names, derived } = derive::derive(factor, columns)?;
                for source in derived.iter().flat_map(|derived| &derived.columns) {
                    self.not_the_outcome(source, factor.span)?;
                }
                self.derived.extend(derived);
                Kind::Numbers(names)
            }
        };
        self.known.push((factor.text.clone(), kind));
        Ok(self.known.len() - 1)
    }

    fn not_the_outcome(&self, name: &str, span: Span) -> Result<(), FormulaError> {
        if name != self.outcome {
            return Ok(());
        }
        Err(FormulaError::new(span, format!("`{name}` is the outcome: it cannot be a predictor too")))
    }

    /// Returns the columns of a factor: several for a spline.
    fn names(&self, number: usize) -> Vec<String> {
        match &self.known[number].1 {
            Kind::Levels(name) => vec![name.clone()],
            Kind::Numbers(names) => names.clone(),
        }
    }
}

/// Returns each choice of one column from every factor, the last varying fastest.
fn combinations(factors: &[(Vec<String>, bool)]) -> Vec<Vec<(String, Coding)>> {
    let mut combinations: Vec<Vec<(String, Coding)>> = vec![Vec::new()];
    for (names, is_full) in factors {
        let coding = if *is_full { Coding::AllLevels } else { Coding::Contrasts };
        let extend = |chosen: &Vec<(String, Coding)>| {
            names.iter().map(|name| chosen.iter().cloned().chain([(name.clone(), coding)]).collect()).collect::<Vec<Vec<_>>>()
        };
        combinations = combinations.iter().flat_map(extend).collect();
    }
    combinations
}

fn feature_list(term: usize, names: &[(String, Coding)], columns: &Columns, span: Span) -> Result<Vec<Feature>, FormulaError> {
    let names: Vec<(&str, Coding)> = names.iter().map(|(name, coding)| (name.as_str(), *coding)).collect();
    expand(term, &names, columns).map_err(|error| FormulaError::new(span, error.message))
}

fn lowered_offset(offset: &FormulaOffset, outcome: &str, columns: &Columns) -> Result<Offset, FormulaError> {
    let FormulaOffset { column, is_logarithm, span } = offset;
    let fault = |message: String| Err(FormulaError::new(*span, message));
    if column == outcome {
        return fault(format!("`{column}` is the outcome: it cannot be an offset too"));
    }
    match (declared(column, *span, columns)?, is_logarithm) {
        (ColumnSpec::Numeric { min, .. }, true) if *min > 0.0 => Ok(Offset::Exposure(column.clone())),
        (ColumnSpec::Numeric { min, max }, true) => {
            let bounds = format!("whose bounds [{min}, {max}] are not above 0");
            fault(format!("unbounded: the logarithm of `{column}`, {bounds}; declare its `min` above 0"))
        }
        (ColumnSpec::Numeric { .. } | ColumnSpec::Binary, false) => Ok(Offset::Value(column.clone())),
        _ => fault(format!("an offset is a number: declare `{column} = {{ min = …, max = … }}`")),
    }
}

/// Returns the names of the parameters that vary by party.
fn varying(
    effects: &Effects,
    formula: &Formula,
    factors: &mut Factors<'_>,
    columns: &mut Columns,
) -> Result<Vec<String>, FormulaError> {
    let (group, group_span) = &effects.group;
    if group != "party" {
        return Err(FormulaError::new(*group_span, other_group(group, columns)));
    }
    if effects.intercept && !formula.intercept {
        let message = "the intercepts of the parties vary around a common one, which `0 +` leaves out: use `(0 + … || party)`, or keep the intercept";
        return Err(FormulaError::new(effects.span, message));
    }
    let mut names: Vec<String> = effects.intercept.then(|| "intercept".to_owned()).into_iter().collect();
    for term in &effects.terms {
        let [factor] = term.factors.as_slice() else {
            let message = "an interaction does not vary by party: only single numeric columns do";
            return Err(FormulaError::new(term.span, message));
        };
        if !formula.terms.iter().any(|known| known.factors.len() == 1 && known.factors[0].text == factor.text) {
            let message = format!("`{0}` varies around a common coefficient: add `{0}` as a term too", factor.text);
            return Err(FormulaError::new(term.span, message));
        }
        let number = factors.number(factor, columns)?;
        match &factors.known[number].1 {
            Kind::Numbers(numbers) if numbers.len() == 1 => names.extend_from_slice(numbers),
            Kind::Numbers(_) => {
                return Err(FormulaError::new(term.span, "a spline does not vary by party: only single numeric columns do"));
            }
            Kind::Levels(_) => {
                let message = "effects of levels do not vary by party: `||` would take their indicators for independent; only numeric columns vary";
                return Err(FormulaError::new(term.span, message));
            }
        }
    }
    Ok(names)
}

fn other_group(group: &str, columns: &Columns) -> String {
    match columns.get(group) {
        Some(ColumnSpec::Levels(_)) => format!(
            "effects of each `{group}` with a scale of their own are not available: a party releases sums for all levels jointly. Write `{group}` as a \
             term, which has a coefficient for each level, and shrink these by their priors, such as normal(0, 0.5) under [prior]"
        ),
        Some(_) => format!("`{group}` has no levels: effects vary by party, `(1 | party)`"),
        None => {
            let hint = nearest(group, ["party"].into_iter()).map(|near| format!("; the nearest is `{near}`")).unwrap_or_default();
            format!("`{group}` is no group{hint}: effects vary by party, `(1 | party)`")
        }
    }
}
