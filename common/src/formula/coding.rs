//! The coding of categorical factors: which of them have an indicator for every level, and which for all but the reference.
//!
//! Each term adds the space of its factors that no earlier term has, as in R, patsy and formulaic. A categorical factor without its
//! reference level spans its contrasts; with it, contrasts and constant. The rule `x + x:(a without reference) = x:(a with all
//! levels)` joins spaces.

/// A factor of a coded product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodedFactor {
    /// The number of the factor in the formula.
    pub(crate) factor: usize,
    /// True for a number, and for a column with an indicator for every level.
    pub(crate) is_full: bool,
}

type Product = Vec<CodedFactor>;

/// Returns the products that each term adds. A term is given by its factors, `(number, true if it is categorical)`, in order.
pub(crate) fn full_rank(terms: &[Vec<(usize, bool)>], intercept: bool) -> Vec<Vec<Product>> {
    let mut spanned: Vec<Product> = if intercept { vec![Vec::new()] } else { Vec::new() };
    terms
        .iter()
        .map(|term| {
            let new: Vec<Product> = spaces(term).into_iter().filter(|space| !spanned.contains(space)).collect();
            spanned.extend(new.iter().cloned());
            let in_order = |mut product: Product| {
                product.sort_by_key(|coded| term.iter().position(|(factor, _)| *factor == coded.factor));
                product
            };
            joined(new).into_iter().map(in_order).collect()
        })
        .collect()
}

/// Returns the spaces of a term: each categorical factor as contrasts or constant, the last varying fastest.
fn spaces(term: &[(usize, bool)]) -> Vec<Product> {
    let mut spaces: Vec<Product> = vec![Vec::new()];
    for (factor, is_categorical) in term {
        let coded = CodedFactor { factor: *factor, is_full: !is_categorical };
        let extend = |space: Product| {
            let with: Product = space.iter().copied().chain([coded]).collect();
            if *is_categorical { vec![with, space] } else { vec![with] }
        };
        spaces = spaces.into_iter().flat_map(extend).collect();
    }
    spaces.iter_mut().for_each(|space| space.sort_unstable());
    spaces
}

/// Joins spaces by the rule, until none can be joined.
fn joined(mut spaces: Vec<Product>) -> Vec<Product> {
    spaces.sort_by_key(Vec::len);
    let mut kept: Vec<Product> = Vec::new();
    for space in spaces {
        match kept.iter().enumerate().find_map(|(at, smaller)| Some((at, added(smaller, &space)?))) {
            Some((at, factor)) => {
                kept.remove(at);
                let raise = |coded: &CodedFactor| CodedFactor { is_full: coded.is_full || coded.factor == factor, ..*coded };
                let mut product: Product = space.iter().map(raise).collect();
                product.sort_unstable();
                kept.push(product);
                kept = joined(kept);
            }
            None if !kept.contains(&space) => kept.push(space),
            None => {}
        }
    }
    kept
}

/// Returns the factor without its reference level that a space has beyond a smaller one, if that is the only difference.
fn added(smaller: &Product, space: &Product) -> Option<usize> {
    let new: Vec<&CodedFactor> = space.iter().filter(|coded| !smaller.contains(coded)).collect();
    match new.as_slice() {
        [only] if space.len() == smaller.len() + 1 && !only.is_full => Some(only.factor),
        _ => None,
    }
}
