//! Repeated gradient queries, and their evidence about each party's noise, at no further charge.
//!
//! After a rejection the momentum is reversed, and the next step has an earlier midpoint, up to its last bits. The two answers of
//! a party then differ by two independent draws of its noise, whatever its records are. This detects a party that returns its
//! first answer again, that adds other noise than it charges for, or whose records change while chains run.

use crate::sampler::quadratic_fit::ChiSquare;
use serde::Serialize;

/// Largest distance, in posterior sds, of two midpoints that count as equal.
const SAME: f64 = 1e-9;
/// Number of midpoints that a chain can revisit: that of the last accepted step, and that of the step rejected since.
const KEPT: usize = 2;
/// False alarm probability of correct noise, for all parties of a job together.
const ALARM: f64 = 1e-6;

/// The midpoints of a chain's latest queries, with every party's answers.
#[derive(Default)]
pub(crate) struct QueryHistory(Vec<(Vec<f64>, Vec<Vec<i64>>)>);

impl QueryHistory {
    /// Records a query at `u` and the parties' answers. If `u` was queried before, returns the earlier and the present answers.
    pub(crate) fn note(&mut self, u: &[f64], released: Vec<Vec<i64>>) -> Option<[Vec<Vec<i64>>; 2]> {
        let near = |at: &[f64]| at.iter().zip(u).all(|(a, b)| (a - b).abs() <= SAME);
        let before = self.0.iter().position(|(at, _)| near(at)).map(|place| self.0.remove(place).1);
        self.0.insert(0, (u.to_vec(), released.clone()));
        self.0.truncate(KEPT);
        before.map(|before| [before, released])
    }
}

/// One party's answers to repeated queries.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Pairs {
    equal: u64,
    /// Sum of the squared differences, in units of twice the noise's variance.
    squares: f64,
}

/// All opened answers to repeated queries.
pub(crate) struct Repeats {
    /// Pairs of each party, or of the sum of all if only that is opened.
    opened: Vec<Pairs>,
    /// Number of parties whose noise is in an opened answer.
    noises: f64,
    pub(super) pairs: u64,
    numbers: u64,
}

/// The evidence about a party's noise from the answers to repeated queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatedAnswers {
    /// Name of the party, or the names of all parties for their sum.
    pub party: String,
    /// Number of answers identical to the earlier one: 0 for a party that adds fresh noise.
    pub equal: u64,
    /// Sum of the squared differences over twice the variance of the noise.
    pub chi2: f64,
    /// Number of compared values, which is the mean of `chi2`.
    pub degrees_of_freedom: u64,
    /// Two-sided probability of a `chi2` at least as far from its mean.
    pub p_value: f64,
}

impl Repeats {
    pub(crate) fn new(parties: usize, opened: usize) -> Self {
        let noises = parties as f64 / opened.max(1) as f64;
        Self { opened: vec![Pairs::default(); opened], noises, pairs: 0, numbers: 0 }
    }

    /// Adds a pair of opened answers to the same query, where each party's noise has this sd in lattice units.
    pub(crate) fn take(&mut self, [before, now]: &[Vec<Vec<i64>>; 2], sd: f64) {
        self.pairs += 1;
        self.numbers += now.first().map_or(0, Vec::len) as u64;
        let sd = sd * self.noises.sqrt();
        for (of, (before, now)) in self.opened.iter_mut().zip(before.iter().zip(now)) {
            of.equal += u64::from(before == now);
            let square = |(a, b): (&i64, &i64)| ((i128::from(*a) - i128::from(*b)) as f64 / sd).powi(2);
            of.squares += 0.5 * before.iter().zip(now).map(square).sum::<f64>();
        }
    }

    /// Returns the evidence about each party, in the job's order, or about all of them together if only their sum is opened.
    pub(crate) fn report(&self, names: &[String]) -> Vec<RepeatedAnswers> {
        let all = [names.join(" + ")];
        let names = if self.opened.len() == names.len() { names } else { &all };
        let one = |(name, of): (&String, &Pairs)| {
            let upper = ChiSquare { value: of.squares, degrees_of_freedom: self.numbers }.p_value();
            RepeatedAnswers {
                party: name.clone(),
                equal: of.equal,
                chi2: of.squares,
                degrees_of_freedom: self.numbers,
                p_value: if self.numbers == 0 { 1.0 } else { (2.0 * upper.min(1.0 - upper)).clamp(0.0, 1.0) },
            }
        };
        names.iter().zip(&self.opened).map(one).collect()
    }
}

impl RepeatedAnswers {
    /// Returns a warning if the party's noise is wrong. `parties` is the number of those that the job judges.
    pub(crate) fn warning(&self, parties: usize) -> Option<String> {
        let Self { party, equal, chi2, degrees_of_freedom, p_value } = self;
        if *equal > 0 {
            return Some(format!(
                "{party} returned an identical noisy answer to {equal} of the repeated queries: it reuses its noise, so the draws are too narrow; \
                 ask its owner"
            ));
        }
        (*p_value < ALARM / parties.max(1) as f64).then(|| {
            format!(
                "the noise of {party} does not match its charge: answers to the same queries differ by {:.2} times the expected variance \
                 (chi-square {chi2:.0} on {degrees_of_freedom} degrees of freedom)",
                chi2 / *degrees_of_freedom as f64
            )
        })
    }
}
