//! The linear predictor of a regression, `eta = offset + intercept + sum_j theta_j x_j`: its values on a shard, its public range
//! over the declared columns, and its coefficients in the data's units. All regressions share this code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::reach::Edges;
use super::softplus::positive_part;
use super::weighted::{CoefficientStep, Direction, WeightedSum};
use crate::schema::{ColumnSpec, Design, Factor, Offset, Product, spanned};
use conclave_privacy::pass::tile::ColumnRef;

/// A linear predictor on declared columns.
#[derive(Clone)]
pub struct LinearPredictor {
    pub(super) intercept: bool,
    pub(super) features: Vec<FeatureRange>,
    /// The range of the offset on the scale of `eta`, and the factor from its values to that scale.
    offset: Option<((f64, f64), f64)>,
    spares_inert: bool,
    /// The extreme records of the columns, computed once.
    pub(super) edges: OnceLock<Option<Arc<Edges>>>,
}

/// The public facts about one feature `x_j`.
#[derive(Clone)]
pub(super) struct FeatureRange {
    pub(super) range: (f64, f64),
    /// True if the feature is 0 or 1 for every record.
    pub(super) indicator: bool,
    pub(super) term: usize,
    /// True if the term has levels. At most one of its features is then nonzero.
    pub(super) exclusive: bool,
    factors: Vec<ScaledFactor>,
}

/// A factor `(value - centre) / half_width`.
#[derive(Clone)]
struct ScaledFactor {
    of: Factor,
    centre: f64,
    half_width: f64,
}

/// The range of the linear predictor before and after a step, and of its movement, over the declared columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// The least value at both ends.
    pub low: f64,
    /// The greatest value at both ends.
    pub high: f64,
    /// The largest upward movement of a record's linear predictor, at least 0.
    pub up: f64,
    /// The largest downward movement, at least 0.
    pub down: f64,
}

impl Span {
    /// Returns the largest magnitude of the movement. It is 0 only if no record's linear predictor moves.
    pub(super) fn furthest(self) -> f64 {
        self.up.max(self.down)
    }
}

impl LinearPredictor {
    /// Creates the predictor. `column` returns the declared columns; an offset's values are divided by `unit`.
    pub(super) fn new(design: &Design, unit: f64, column: &dyn Fn(&str) -> ColumnSpec) -> Self {
        let features: Vec<FeatureRange> = design
            .features
            .iter()
            .map(|feature| {
                let scaled = |factor: &Factor| {
                    let spec = column(&factor.column);
                    ScaledFactor { of: factor.clone(), centre: spec.centre(), half_width: spec.half_width() }
                };
                let range = |factor: &Factor| if factor.level.is_some() { (0.0, 1.0) } else { column(&factor.column).range() };
                let exclusive = feature.factors.iter().any(|f| f.level.is_some());
                let range = feature.factors.iter().map(range).reduce(product).unwrap_or((0.0, 0.0));
                let indicator = feature.factors.iter().all(|f| f.level.is_some() || column(&f.column) == ColumnSpec::Binary);
                FeatureRange {
                    range,
                    indicator,
                    term: feature.term,
                    exclusive,
                    factors: feature.factors.iter().map(scaled).collect(),
                }
            })
            .collect();
        let offset = design.offset.as_ref().map(|offset| {
            let spec = column(offset.column());
            let (low, high) = (spec.centre() - spec.half_width(), spec.centre() + spec.half_width());
            let (low, high) = match (offset, &spec) {
                (Offset::Value(_), ColumnSpec::Numeric { min, max }) => (*min, *max),
                (Offset::Exposure(_), ColumnSpec::Numeric { min, max }) => (libm::log(*min), libm::log(*max)),
                _ => (low, high),
            };
            ((low / unit, high / unit), unit.recip())
        });
        let spares_inert = design.columns().any(|name| matches!(column(name), ColumnSpec::Levels(_)));
        Self { intercept: design.intercept, features, offset, spares_inert, edges: OnceLock::new() }
    }

    /// Returns the number of coefficients, including the intercept.
    pub(super) fn len(&self) -> usize {
        usize::from(self.intercept) + self.features.len()
    }

    pub(super) fn has_intercept(&self) -> bool {
        self.intercept
    }

    /// Returns the range of the offset on the scale of `eta`, and the factor from its values to that scale.
    pub(super) fn offset(&self) -> Option<((f64, f64), f64)> {
        self.offset
    }

    /// Returns whether a record may be inert and then contributes exactly zero. A column with levels may hold a value that is not
    /// a level, and if the job permits it, any column may lack a value.
    pub(super) fn spares_inert(&self) -> bool {
        self.spares_inert
    }

    /// Returns the same predictor where the job permits inert records.
    pub(super) fn sparing_inert(self, incomplete_rows: bool) -> Self {
        Self { spares_inert: self.spares_inert || incomplete_rows, ..self }
    }

    /// Returns the intercept (0 without one) and the coefficients of the features. Later entries of `theta` do not belong to the
    /// predictor.
    fn split<'t>(&self, theta: &'t [f64]) -> (f64, &'t [f64]) {
        let (first, rest) = if self.intercept { (theta[0], &theta[1..]) } else { (0.0, theta) };
        (first, &rest[..self.features.len()])
    }

    /// Returns `eta` as a weighted sum of a record's columns.
    pub(super) fn weighted(&self, theta: &[f64]) -> WeightedSum {
        let (intercept, coefficients) = self.split(theta);
        self.with_offset(intercept, coefficients.iter().copied())
    }

    /// Returns the same sum without the offset.
    pub(super) fn weighted_without_offset(&self, weights: &[f64]) -> WeightedSum {
        let (intercept, weights) = self.split(weights);
        WeightedSum::new(intercept, weights.iter().enumerate().map(|(j, weight)| (*weight, ColumnRef::Predictor(j))))
    }

    /// Returns, for each coefficient, whether its 0/1 predictor is coded as -1 and 1 in products of predictors. The intercept
    /// absorbs the shift.
    pub(super) fn coding(&self) -> Vec<bool> {
        let first = self.intercept.then_some(false);
        first.into_iter().chain(self.features.iter().map(|f| self.intercept && f.indicator && !f.exclusive)).collect()
    }

    /// Returns each coefficient's coded predictor; the intercept's is 1.
    pub(super) fn coded(&self) -> Vec<WeightedSum> {
        let features = (0..self.features.len()).zip(self.coding().into_iter().skip(usize::from(self.intercept)));
        let first = self.intercept.then(|| WeightedSum::new(1.0, []));
        let coded = |(j, coded): (usize, bool)| {
            let (constant, weight) = if coded { (-1.0, 2.0) } else { (0.0, 1.0) };
            WeightedSum::new(constant, [(weight, ColumnRef::Predictor(j))])
        };
        first.into_iter().chain(features.map(coded)).collect()
    }

    /// Returns the largest sum of squares of a record's predictors, including the intercept's 1. Each predictor lies in [-1, 1],
    /// and at most one of a term with levels is nonzero.
    pub(super) fn most_squares(&self) -> u64 {
        let single = self.features.iter().filter(|f| !f.exclusive).count();
        let terms: BTreeSet<usize> = self.features.iter().filter(|f| f.exclusive).map(|f| f.term).collect();
        (usize::from(self.intercept) + single + terms.len()) as u64
    }

    /// Returns the indices of the coefficients, grouped by terms with levels.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
        let first = usize::from(self.intercept);
        let together = |a: &FeatureRange, b: &FeatureRange| a.exclusive && b.exclusive && a.term == b.term;
        let mut at = first;
        let of_features = self.features.chunk_by(together).map(|group| {
            at += group.len();
            (at - group.len()..at).collect()
        });
        self.intercept.then(|| vec![0]).into_iter().chain(of_features).collect()
    }

    /// Returns, for each column, the indices of the predictors that indicate its levels except the first. `None` if a column is
    /// not categorical or has no predictors of its own, if there is an offset, or if there is no intercept.
    pub(super) fn categorical(&self) -> Option<Vec<Vec<usize>>> {
        if !self.intercept || self.offset.is_some() || self.features.iter().any(|feature| !feature.indicator) {
            return None;
        }
        let mut own: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (j, feature) in self.features.iter().enumerate() {
            if let [factor] = feature.factors.as_slice() {
                own.entry(&factor.of.column).or_default().push(j);
            }
        }
        // A column without a reference level has no first level at which all its indicators are 0.
        let is_own = |factor: &ScaledFactor| own.contains_key(factor.of.column.as_str()) && factor.of.level != Some(0);
        let all_own = self.features.iter().flat_map(|f| &f.factors).all(is_own);
        all_own.then(|| own.into_values().collect())
    }

    /// Returns the design row of a record of these categories, with the intercept's 1 first. `is_one` states for each predictor
    /// of one column whether it is 1; interactions follow from it.
    pub(super) fn row_of_indicators(&self, is_one: &[bool]) -> Vec<f64> {
        let holds = |factor: &ScaledFactor| {
            let own = |f: &FeatureRange| matches!(f.factors.as_slice(), [only] if only.of == factor.of);
            self.features.iter().position(own).is_some_and(|j| is_one.get(j) == Some(&true))
        };
        let value = |(j, feature): (usize, &FeatureRange)| match feature.factors.as_slice() {
            [_] => f64::from(u8::from(is_one.get(j) == Some(&true))),
            several => f64::from(u8::from(several.iter().all(holds))),
        };
        self.intercept.then_some(1.0).into_iter().chain(self.features.iter().enumerate().map(value)).collect()
    }

    fn with_offset(&self, intercept: f64, coefficients: impl Iterator<Item = f64>) -> WeightedSum {
        let offset = self.offset.map(|(_, factor)| (factor, ColumnRef::Auxiliary(0)));
        WeightedSum::new(
            intercept,
            offset.into_iter().chain(coefficients.enumerate().map(|(j, weight)| (weight, ColumnRef::Predictor(j)))),
        )
    }

    /// Returns the values of a step's midpoint and movement as weighted sums.
    pub(super) fn moves(&self, from: &[f64], to: &[f64]) -> CoefficientStep {
        let ((a, from), (b, to)) = (self.split(from), self.split(to));
        let pairs = || from.iter().zip(to);
        let middle = self.with_offset(0.5 * a + 0.5 * b, pairs().map(|(from, to)| 0.5 * from + 0.5 * to));
        let moved: Vec<_> = pairs()
            .enumerate()
            .filter(|(_, (from, to))| from != to)
            .map(|(j, (from, to))| (to - from, ColumnRef::Predictor(j)))
            .collect();
        let along = match (moved.as_slice(), a == b) {
            ([], _) => Direction::Constant(b - a),
            ([(by, of)], true) => Direction::Column(*by, *of),
            _ => Direction::Several(WeightedSum::new(b - a, moved)),
        };
        CoefficientStep { middle, along }
    }

    /// Panics if the shapes differ. Shapes are public: a party checks the request, and its own loader makes the data.
    pub(super) fn check(&self, (predictors, auxiliary): (usize, usize)) {
        assert_eq!(predictors, self.features.len(), "a shard has one column per feature");
        assert_eq!(auxiliary, usize::from(self.offset.is_some()), "a shard has the offset's column");
    }

    /// Returns the range of `weight * offset + intercept + sum_j theta_j x_j` over the declared columns. With `only`, it covers
    /// the records whose feature of that number is 1. Negating the weights yields the exact negatives, swapped.
    pub(super) fn range(&self, theta: &[f64], weight: f64, only: Option<usize>) -> (f64, f64) {
        let (intercept, coefficients) = self.split(theta);
        let mut total = (intercept, intercept);
        if let Some((range, _)) = self.offset {
            total = sum(total, times(weight, range));
        }
        let only_term = only.map(|j| self.features[j].term);
        let mut open: Option<(usize, (f64, f64))> = None;
        for (j, (coefficient, feature)) in coefficients.iter().zip(&self.features).enumerate() {
            let part = match only {
                Some(fixed) if fixed == j => (*coefficient, *coefficient),
                _ if feature.exclusive && only_term == Some(feature.term) => (0.0, 0.0),
                _ => times(*coefficient, feature.range),
            };
            if !feature.exclusive || only_term == Some(feature.term) {
                total = sum(total, part);
                continue;
            }
            // At most one feature of a term with levels is nonzero.
            open = match open {
                Some((term, range)) if term == feature.term => Some((term, union(range, part))),
                _ => {
                    total = sum(total, open.map_or((0.0, 0.0), |(_, range)| range));
                    Some((feature.term, union((0.0, 0.0), part)))
                }
            };
        }
        sum(total, open.map_or((0.0, 0.0), |(_, range)| range))
    }

    /// If a step changes exactly one coefficient, returns its index in `theta` and the range of its feature, `None` for the
    /// intercept.
    pub(super) fn moved(&self, from: &[f64], to: &[f64]) -> Option<(usize, Option<&(f64, f64)>)> {
        let mut different = (0..self.len()).filter(|j| from[*j] != to[*j]);
        let only = different.next().filter(|_| different.next().is_none())?;
        let feature = only.checked_sub(usize::from(self.intercept));
        Some((only, feature.map(|j| &self.features[j].range)))
    }

    /// If a step changes exactly one coefficient and its feature is an indicator, returns the feature's index. A record then
    /// moves only if the feature is 1.
    pub(super) fn indicator_moved(&self, from: &[f64], to: &[f64]) -> Option<usize> {
        let (only, _) = self.moved(from, to)?;
        only.checked_sub(usize::from(self.intercept)).filter(|j| self.features[*j].indicator)
    }

    /// Returns the range of the linear predictor over records that move, and the range of their movement. The reverse step has
    /// the same range and swaps up and down, bit for bit.
    pub(super) fn span(&self, from: &[f64], to: &[f64]) -> Span {
        let only = self.indicator_moved(from, to);
        let step: Vec<f64> = from[..self.len()].iter().zip(to).map(|(from, to)| to - from).collect();
        let (a, b) = self.range(&step, 0.0, only);
        let ((low_from, high_from), (low_to, high_to)) = (self.range(from, 1.0, only), self.range(to, 1.0, only));
        Span { low: low_from.min(low_to), high: high_from.max(high_to), up: positive_part(b), down: positive_part(-a) }
    }

    /// Returns the largest squared feature of each coefficient.
    pub(super) fn greatest_squares(&self) -> impl Iterator<Item = f64> {
        let square = |(low, high): (f64, f64)| (low * low).max(high * high);
        let intercept = self.intercept.then_some(1.0);
        intercept.into_iter().chain(self.features.iter().map(move |f| square(f.range)))
    }

    /// Returns the public range of the product of two coefficients' features, by index in `theta`.
    pub(super) fn product_range(&self, j: usize, k: usize) -> (f64, f64) {
        let (a, b) = (self.feature_range(j), self.feature_range(k));
        if j != k {
            return product(a, b);
        }
        let (low, high) = (a.0 * a.0, a.1 * a.1);
        let crosses = a.0 <= 0.0 && a.1 >= 0.0;
        (if crosses { 0.0 } else { low.min(high) }, low.max(high))
    }

    /// Returns the public range of one coefficient's feature.
    pub(super) fn feature_range(&self, j: usize) -> (f64, f64) {
        j.checked_sub(usize::from(self.intercept)).map_or((1.0, 1.0), |j| self.features[j].range)
    }

    /// Returns whether a coefficient's feature is 0 or 1 for every record.
    pub(super) fn is_indicator(&self, j: usize) -> bool {
        j.checked_sub(usize::from(self.intercept)).is_some_and(|j| self.features[j].indicator)
    }

    /// Returns whether the features of two coefficients are never both nonzero: indicators of two levels of one column.
    pub(super) fn never_together(&self, j: usize, k: usize) -> bool {
        let feature = |j: usize| j.checked_sub(usize::from(self.intercept)).map(|j| &self.features[j]);
        let (Some(a), Some(b)) = (feature(j), feature(k)) else { return false };
        let mut pairs = a.factors.iter().flat_map(|f| b.factors.iter().map(move |g| (&f.of, &g.of)));
        pairs.any(|(f, g)| f.column == g.column && f.level != g.level)
    }

    /// Returns the coefficients on the data's own scale.
    ///
    /// A feature is a product of factors `(value - centre) / half_width`. Expanded, each term is a sum of features and the
    /// intercept, see [`spanned`], whose coefficients take it. A term that is none is dropped. This
    /// happens without an intercept, and for an interaction whose columns are not predictors themselves. The result is then the
    /// slope around the centres.
    pub(super) fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        let (intercept, coefficients) = self.split(theta);
        let products: Vec<Product> = self.features.iter().map(|f| f.factors.iter().map(|s| s.of.clone()).collect()).collect();
        let mut constant = intercept;
        let mut original = vec![0.0; coefficients.len()];
        for (coefficient, feature) in coefficients.iter().zip(&self.features) {
            let per_unit = feature.factors.iter().fold(*coefficient, |b, f| b / f.half_width);
            for kept in 0..1_u32 << feature.factors.len() {
                let held = |at: usize| kept >> at & 1 == 1;
                let factors = feature.factors.iter().enumerate();
                let part = factors.clone().fold(per_unit, |b, (at, f)| if held(at) { b } else { b * -f.centre });
                let product: Product = factors.filter(|(at, _)| held(*at)).map(|(_, f)| f.of.clone()).collect();
                for (place, weight) in spanned(self.intercept, &products, &product).unwrap_or_default() {
                    match place {
                        None => constant += weight * part,
                        Some(at) => original[at] += weight * part,
                    }
                }
            }
        }
        self.intercept.then_some(constant).into_iter().chain(original).collect()
    }
}

fn sum(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}

fn union(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}

fn times(factor: f64, (low, high): (f64, f64)) -> (f64, f64) {
    let (a, b) = (factor * low, factor * high);
    (a.min(b), a.max(b))
}

fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    union(times(a.0, b), times(a.1, b))
}
