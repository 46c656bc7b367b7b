//! The linear predictor of a regression, `eta = offset + intercept + sum_j theta_j x_j`: its values on a shard, its public range over the
//! declared columns, and its coefficients in the data's own units. Written once for all regressions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::reach::Edges;
use super::softplus::positive_part;
use super::weighted::{CoefficientStep, Direction, WeightedSum};
use crate::schema::{ColumnSpec, Design, Factor, Offset};
use conclave_privacy::pass::tile::ColumnRef;

/// A linear predictor on declared columns.
#[derive(Clone)]
pub(super) struct LinearPredictor {
    pub(super) intercept: bool,
    pub(super) features: Vec<FeatureRange>,
    /// Range of the offset on the scale of `eta`, and what its value is multiplied by to get there.
    offset: Option<((f64, f64), f64)>,
    spares_inert: bool,
    /// What the columns allow, worked out once.
    pub(super) edges: OnceLock<Option<Arc<Edges>>>,
}

/// What is public about one number `x_j` of a record.
#[derive(Clone)]
pub(super) struct FeatureRange {
    pub(super) range: (f64, f64),
    /// 0 or 1 for every record.
    pub(super) indicator: bool,
    pub(super) term: usize,
    /// Whether its term has levels: then at most one of the term's features is not 0.
    pub(super) exclusive: bool,
    factors: Vec<ScaledFactor>,
}

/// A factor is `(value - centre) / half_width`.
#[derive(Clone)]
struct ScaledFactor {
    of: Factor,
    centre: f64,
    half_width: f64,
}

/// Over the declared columns, where the linear predictor lies before and after a step, and how far it moves. Least and greatest values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// The least of both ends.
    pub low: f64,
    /// The greatest of both ends.
    pub high: f64,
    /// The furthest that a record's linear predictor moves up, at least 0.
    pub up: f64,
    /// The furthest that one moves down, at least 0.
    pub down: f64,
}

impl Span {
    /// The greatest magnitude of the move. 0 only where no record's linear predictor moves.
    pub(super) fn furthest(self) -> f64 {
        self.up.max(self.down)
    }
}

impl LinearPredictor {
    /// `column` gives the declared columns; an offset's values are divided by `unit`.
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

    /// Number of coefficients, the intercept's included.
    pub(super) fn len(&self) -> usize {
        usize::from(self.intercept) + self.features.len()
    }

    pub(super) fn has_intercept(&self) -> bool {
        self.intercept
    }

    /// The range of the offset on the scale of `eta`, and what its value is multiplied by to get there.
    pub(super) fn offset(&self) -> Option<((f64, f64), f64)> {
        self.offset
    }

    /// Whether a record may be inert and adds exactly nothing then: a column with levels may hold a value that is none of them, and
    /// where the job says so any column may hold none.
    pub(super) fn spares_inert(&self) -> bool {
        self.spares_inert
    }

    /// The same predictor where a record may be inert because the job says so.
    pub(super) fn sparing_inert(self, incomplete_rows: bool) -> Self {
        Self { spares_inert: self.spares_inert || incomplete_rows, ..self }
    }

    /// The intercept (0 without one) and the coefficients of the features; whatever follows them in `theta` is not the predictor's.
    fn split<'t>(&self, theta: &'t [f64]) -> (f64, &'t [f64]) {
        let (first, rest) = if self.intercept { (theta[0], &theta[1..]) } else { (0.0, theta) };
        (first, &rest[..self.features.len()])
    }

    /// `eta` as a sum over a record's columns.
    pub(super) fn weighted(&self, theta: &[f64]) -> WeightedSum {
        let (intercept, coefficients) = self.split(theta);
        self.with_offset(intercept, coefficients.iter().copied())
    }

    /// The same without the offset.
    pub(super) fn weighted_without_offset(&self, weights: &[f64]) -> WeightedSum {
        let (intercept, weights) = self.split(weights);
        WeightedSum::new(intercept, weights.iter().enumerate().map(|(j, weight)| (*weight, ColumnRef::Predictor(j))))
    }

    /// Per coefficient, whether its predictor's 0 and 1 count as -1 and 1 where products of predictors are summed:
    /// an intercept keeps what that shifts.
    pub(super) fn coding(&self) -> Vec<bool> {
        let first = self.intercept.then_some(false);
        first.into_iter().chain(self.features.iter().map(|f| self.intercept && f.indicator && !f.exclusive)).collect()
    }

    /// Per coefficient, its predictor as it is coded; the intercept's is 1.
    pub(super) fn coded(&self) -> Vec<WeightedSum> {
        let features = (0..self.features.len()).zip(self.coding().into_iter().skip(usize::from(self.intercept)));
        let first = self.intercept.then(|| WeightedSum::new(1.0, []));
        let coded = |(j, coded): (usize, bool)| {
            let (constant, weight) = if coded { (-1.0, 2.0) } else { (0.0, 1.0) };
            WeightedSum::new(constant, [(weight, ColumnRef::Predictor(j))])
        };
        first.into_iter().chain(features.map(coded)).collect()
    }

    /// The greatest sum of squares of a record's predictors, the intercept's 1 included, where each lies in [-1, 1]:
    /// of a term with levels at most one is not 0.
    pub(super) fn most_squares(&self) -> u64 {
        let single = self.features.iter().filter(|f| !f.exclusive).count();
        let terms: BTreeSet<usize> = self.features.iter().filter(|f| f.exclusive).map(|f| f.term).collect();
        (usize::from(self.intercept) + single + terms.len()) as u64
    }

    /// The numbers of the coefficients, those of a term with levels together.
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

    /// Per column, the numbers of the predictors that are 1 at its levels but the first. `None` where a column is not categorical or
    /// has no predictors of its own, and where there is an offset or no intercept.
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
        let all_own = self.features.iter().flat_map(|f| &f.factors).all(|factor| own.contains_key(factor.of.column.as_str()));
        all_own.then(|| own.into_values().collect())
    }

    /// The design row of a record of these categories, the intercept's 1 first: `is_one` says of a column's own predictor whether it is
    /// 1, and interactions follow.
    pub(super) fn row_of_indicators(&self, is_one: &dyn Fn(usize) -> bool) -> Vec<f64> {
        let holds = |factor: &ScaledFactor| {
            let own = |f: &FeatureRange| matches!(f.factors.as_slice(), [only] if only.of == factor.of);
            self.features.iter().position(own).is_some_and(is_one)
        };
        let value = |feature: &FeatureRange| f64::from(u8::from(feature.factors.iter().all(holds)));
        self.intercept.then_some(1.0).into_iter().chain(self.features.iter().map(value)).collect()
    }

    fn with_offset(&self, intercept: f64, coefficients: impl Iterator<Item = f64>) -> WeightedSum {
        let offset = self.offset.map(|(_, factor)| (factor, ColumnRef::Auxiliary(0)));
        WeightedSum::new(
            intercept,
            offset.into_iter().chain(coefficients.enumerate().map(|(j, weight)| (weight, ColumnRef::Predictor(j)))),
        )
    }

    /// What a step comes to.
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

    /// Panics when shapes differ. They are public: a party checks the request, and its own loader makes the data.
    pub(super) fn check(&self, (predictors, auxiliary): (usize, usize)) {
        assert_eq!(predictors, self.features.len(), "a shard has one column per feature");
        assert_eq!(auxiliary, usize::from(self.offset.is_some()), "a shard has the offset's column");
    }

    /// Least and greatest `weight * offset + intercept + sum_j theta_j x_j` over the declared columns, of the records whose feature
    /// number `only` is 1 where one is given. Negating the weights gives exactly the negatives, swapped.
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
            // One of the features of a term with levels, or none of them.
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

    /// The one coefficient in which a step differs, by its number in `theta`, and its feature, `None` for the intercept.
    pub(super) fn moved(&self, from: &[f64], to: &[f64]) -> Option<(usize, Option<&(f64, f64)>)> {
        let mut different = (0..self.len()).filter(|j| from[*j] != to[*j]);
        let only = different.next().filter(|_| different.next().is_none())?;
        let feature = only.checked_sub(usize::from(self.intercept));
        Some((only, feature.map(|j| &self.features[j].range)))
    }

    /// The feature, by its number among features, that a step alone moves, where it is an indicator: a record moves only where it is 1.
    pub(super) fn indicator_moved(&self, from: &[f64], to: &[f64]) -> Option<usize> {
        let (only, _) = self.moved(from, to)?;
        only.checked_sub(usize::from(self.intercept)).filter(|j| self.features[*j].indicator)
    }

    /// Where the linear predictor of a record that moves lies, and how far it moves. The reverse step lies at the same place and swaps up
    /// and down, bit for bit.
    pub(super) fn span(&self, from: &[f64], to: &[f64]) -> Span {
        let only = self.indicator_moved(from, to);
        let step: Vec<f64> = from[..self.len()].iter().zip(to).map(|(from, to)| to - from).collect();
        let (a, b) = self.range(&step, 0.0, only);
        let ((low_from, high_from), (low_to, high_to)) = (self.range(from, 1.0, only), self.range(to, 1.0, only));
        Span { low: low_from.min(low_to), high: high_from.max(high_to), up: positive_part(b), down: positive_part(-a) }
    }

    /// Per coefficient, the greatest square of what it is multiplied by.
    pub(super) fn greatest_squares(&self) -> impl Iterator<Item = f64> {
        let square = |(low, high): (f64, f64)| (low * low).max(high * high);
        let intercept = self.intercept.then_some(1.0);
        intercept.into_iter().chain(self.features.iter().map(move |f| square(f.range)))
    }

    /// The public range of the product of two coefficients' features, by their numbers in `theta`.
    pub(super) fn product_range(&self, j: usize, k: usize) -> (f64, f64) {
        let (a, b) = (self.feature_range(j), self.feature_range(k));
        if j != k {
            return product(a, b);
        }
        let (low, high) = (a.0 * a.0, a.1 * a.1);
        let crosses = a.0 <= 0.0 && a.1 >= 0.0;
        (if crosses { 0.0 } else { low.min(high) }, low.max(high))
    }

    /// The public range of one coefficient's feature.
    pub(super) fn feature_range(&self, j: usize) -> (f64, f64) {
        j.checked_sub(usize::from(self.intercept)).map_or((1.0, 1.0), |j| self.features[j].range)
    }

    /// Whether a coefficient's feature is 0 or 1 for every record.
    pub(super) fn is_indicator(&self, j: usize) -> bool {
        j.checked_sub(usize::from(self.intercept)).is_some_and(|j| self.features[j].indicator)
    }

    /// Whether the features of two coefficients are never both other than 0: indicators of two levels of a column.
    pub(super) fn never_together(&self, j: usize, k: usize) -> bool {
        let feature = |j: usize| j.checked_sub(usize::from(self.intercept)).map(|j| &self.features[j]);
        let (Some(a), Some(b)) = (feature(j), feature(k)) else { return false };
        let mut pairs = a.factors.iter().flat_map(|f| b.factors.iter().map(move |g| (&f.of, &g.of)));
        pairs.any(|(f, g)| f.column == g.column && f.level != g.level)
    }

    /// The coefficients on the data's own scale.
    ///
    /// A feature is a product of `(value - centre) / half_width`. Multiplied out, each part belongs to the feature of the columns that it
    /// holds, the constant to the intercept. A part that the model has no coefficient for, without an intercept or with an
    /// interaction whose columns are not predictors themselves, is left out: what is reported is the slope around the centres.
    pub(super) fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        let (intercept, coefficients) = self.split(theta);
        let sets: Vec<BTreeSet<&Factor>> = self.features.iter().map(|f| f.factors.iter().map(|s| &s.of).collect()).collect();
        let mut constant = intercept;
        let mut original = vec![0.0; coefficients.len()];
        for (coefficient, feature) in coefficients.iter().zip(&self.features) {
            let per_unit = feature.factors.iter().fold(*coefficient, |b, f| b / f.half_width);
            for kept in 0..1_u32 << feature.factors.len() {
                let held = |at: usize| kept >> at & 1 == 1;
                let factors = feature.factors.iter().enumerate();
                let part = factors.clone().fold(per_unit, |b, (at, f)| if held(at) { b } else { b * -f.centre });
                let set: BTreeSet<&Factor> = factors.filter(|(at, _)| held(*at)).map(|(_, f)| &f.of).collect();
                if set.is_empty() {
                    constant += part;
                } else if let Some(at) = sets.iter().position(|s| *s == set) {
                    original[at] += part;
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
