//! Products of factors as sums of a design's features.

use std::collections::BTreeSet;

use super::design::Factor;

/// A product of factors of different columns; empty for the constant 1.
pub type Product = BTreeSet<Factor>;

/// Returns a product as a sum of features with weights, each by its number, or `None` for the intercept. Returns no sum if the features do
/// not span it. `features` are the products of a design.
///
/// The indicators of all levels of a column sum to 1. So a product is the sum of its products with them, and the product with the first
/// level's indicator is the rest less the products with those of the others.
#[must_use]
pub fn spanned(intercept: bool, features: &[Product], product: &Product) -> Option<Vec<(Option<usize>, f64)>> {
    if product.is_empty() && intercept {
        return Some(vec![(None, 1.0)]);
    }
    if let Some(at) = features.iter().position(|feature| feature == product) {
        return Some(vec![(Some(at), 1.0)]);
    }
    let first_levels: BTreeSet<&Factor> = features.iter().flatten().filter(|factor| factor.level == Some(0)).collect();
    for first in &first_levels {
        if product.iter().any(|factor| factor.column == first.column) {
            continue;
        }
        let with = |level| product.iter().cloned().chain([Factor { column: first.column.clone(), level: Some(level) }]).collect();
        let places = levels(features, &first.column).into_iter().map(|level| {
            let with: Product = with(level);
            features.iter().position(|feature| *feature == with).map(|at| (Some(at), 1.0))
        });
        if let Some(sum) = places.collect::<Option<Vec<_>>>() {
            return Some(sum);
        }
    }
    let first = product.iter().find(|factor| factor.level == Some(0))?.clone();
    let rest: Product = product.iter().filter(|factor| **factor != first).cloned().collect();
    let mut sum = spanned(intercept, features, &rest)?;
    for level in levels(features, &first.column).into_iter().filter(|level| *level > 0) {
        let other: Product = rest.iter().cloned().chain([Factor { column: first.column.clone(), level: Some(level) }]).collect();
        sum.extend(spanned(intercept, features, &other)?.into_iter().map(|(place, weight)| (place, -weight)));
    }
    Some(sum)
}

/// Returns the levels of a column that the features have indicators of.
fn levels(features: &[Product], column: &str) -> BTreeSet<usize> {
    features.iter().flatten().filter(|factor| factor.column == column).filter_map(|factor| factor.level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(text: &str) -> Product {
        let factor = |part: &str| {
            let (column, level) = part.split_once('=').map_or((part, None), |(column, level)| (column, level.parse().ok()));
            Factor { column: column.to_owned(), level }
        };
        text.split(':').filter(|part| !part.is_empty()).map(factor).collect()
    }

    fn sum(intercept: bool, features: &[&str], of: &str) -> Option<Vec<(Option<usize>, f64)>> {
        let features: Vec<Product> = features.iter().map(|text| product(text)).collect();
        spanned(intercept, &features, &product(of))
    }

    #[test]
    fn products_are_sums_of_features() {
        let contrasts = ["w=1", "w=2", "x:w=0", "x:w=1", "x:w=2"];
        assert_eq!(sum(true, &contrasts, "w=0"), Some(vec![(None, 1.0), (Some(0), -1.0), (Some(1), -1.0)]));
        assert_eq!(sum(true, &contrasts, "w=2"), Some(vec![(Some(1), 1.0)]));
        assert_eq!(sum(true, &contrasts, "x"), Some(vec![(Some(2), 1.0), (Some(3), 1.0), (Some(4), 1.0)]));
        assert_eq!(sum(false, &["w=0", "w=1", "x"], ""), Some(vec![(Some(0), 1.0), (Some(1), 1.0)]));
        assert_eq!(sum(false, &["w=0:s=0", "w=0:s=1", "w=1:s=0", "w=1:s=1"], "w=1"), Some(vec![(Some(2), 1.0), (Some(3), 1.0)]));
        for (intercept, features, of) in
            [(false, &["x"][..], ""), (true, &["x:z"], "x"), (true, &["x", "x:w=1"], "w=1"), (false, &contrasts, "w=0")]
        {
            assert_eq!(sum(intercept, features, of), None, "{of}");
        }
    }
}
