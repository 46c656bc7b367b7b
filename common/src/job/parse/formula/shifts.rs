//! The shifts of scaled columns, which a formula's other terms must absorb.

use super::declared::Columns;
use super::design::Lowered;
use crate::formula::FormulaError;
use crate::schema::{Feature, Product, spanned};

/// Checks that the model is the one that the formula writes.
///
/// A numeric column enters less the middle of its bounds. In a product the shift moves the product of the other factors, and of a single
/// column the constant. Where the terms do not span these, the model with scaled columns is another one than that with the columns
/// themselves.
pub(super) fn check(lowered: &Lowered, columns: &Columns) -> Result<(), FormulaError> {
    let Lowered { design, spans, .. } = lowered;
    check_names(lowered)?;
    let products: Vec<Product> = design.features.iter().map(product).collect();
    for (feature, whole) in design.features.iter().zip(&products) {
        let shifted = |name: &str| columns.get(name).is_some_and(|column| column.centre() != 0.0);
        for factor in feature.factors.iter().filter(|factor| factor.level.is_none() && shifted(&factor.column)) {
            let rest: Product = whole.iter().filter(|other| *other != factor).cloned().collect();
            if spanned(design.intercept, &products, &rest).is_none() {
                let others: Vec<&str> = rest.iter().map(|other| other.column.as_str()).collect();
                let (without, remedy) = match others.as_slice() {
                    [] => ("an intercept".to_owned(), "keep the intercept".to_owned()),
                    others => (format!("`{}`", others.join(":")), format!("add `{}`", others.join(":"))),
                };
                let message = format!(
                    "`{}` without {without}: a job has `{}` less the middle of its bounds, so this would be another model than the formula's; \
                     {remedy}",
                    design.terms[feature.term], factor.column
                );
                return Err(FormulaError::new(spans[feature.term], message));
            }
        }
    }
    Ok(())
}

/// Checks that no derived column is taken for a column of the owners' data.
fn check_names(Lowered { design, spans, .. }: &Lowered) -> Result<(), FormulaError> {
    let sources = design.derived.iter().flat_map(|derived| &derived.columns).map(String::as_str);
    for name in sources.chain(design.offset.iter().map(|offset| offset.column())) {
        if design.derived.iter().any(|derived| derived.name == name) {
            let message = format!("`{name}` is a term of this formula, and no column of the data: write out what it is");
            return Err(FormulaError::new(spans.first().copied().unwrap_or_default(), message));
        }
    }
    Ok(())
}

fn product(feature: &Feature) -> Product {
    feature.factors.iter().cloned().collect()
}
