//! Gradients that are asked twice: what they say of each party's noise, at no further charge.
//!
//! After a rejection the momentum is turned round, and the middle of the next step is that of one before, up to its last bits. The two answers
//! of a party then differ by two independent draws of its noise, whatever its records are: a party that gives its first answer again, that
//! adds another noise than it charges for, or whose records change while chains run, is seen.

use crate::sampler::quadratic_fit::ChiSquare;
use serde::Serialize;

/// How far apart, in posterior sds, two middles may be that are the same.
const SAME: f64 = 1e-9;
/// Middles that a chain can come back to at once: that of the step that was taken last, and that of the one rejected since.
const KEPT: usize = 2;
/// The probability, for each party and job, that right noise raises an alarm.
const ALARM: f64 = 1e-7;

/// The middles of a chain's latest questions, with what every party answered.
#[derive(Default)]
pub(crate) struct Asked(Vec<(Vec<f64>, Vec<Vec<i64>>)>);

impl Asked {
    /// Takes note of a question at `u` and of the parties' answers; gives the answers before, where it is one that was asked before.
    pub(crate) fn note(&mut self, u: &[f64], released: Vec<Vec<i64>>) -> Option<[Vec<Vec<i64>>; 2]> {
        let near = |at: &[f64]| at.iter().zip(u).all(|(a, b)| (a - b).abs() <= SAME);
        let before = self.0.iter().position(|(at, _)| near(at)).map(|place| self.0.remove(place).1);
        self.0.insert(0, (u.to_vec(), released.clone()));
        self.0.truncate(KEPT);
        before.map(|before| [before, released])
    }
}

/// One party's answers to questions that came twice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Pairs {
    equal: u64,
    /// Sum of the squared differences, in units of twice the noise's variance.
    squares: f64,
}

/// All opened answers to questions that came twice.
pub(crate) struct Repeats {
    /// Of each party, or of all together where their sum alone is opened.
    opened: Vec<Pairs>,
    /// Parties whose noise is in an opened answer.
    noises: f64,
    pairs: u64,
    numbers: u64,
}

/// What the answers to questions that came twice say of a party's noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatedAnswers {
    /// Name; of a sum of several parties, their names.
    pub party: String,
    /// Answers that were the same as the one before to the last bit: 0 of a party that adds fresh noise.
    pub equal: u64,
    /// Sum of the squared differences over twice the variance of the noise.
    pub chi2: f64,
    /// Numbers that were compared: the mean of `chi2`.
    pub degrees_of_freedom: u64,
    /// The probability of a `chi2` as far from its mean, to either side.
    pub p_value: f64,
}

impl Repeats {
    pub(crate) fn new(parties: usize, opened: usize) -> Self {
        let noises = parties as f64 / opened.max(1) as f64;
        Self { opened: vec![Pairs::default(); opened], noises, pairs: 0, numbers: 0 }
    }

    /// Takes a pair of the opened answers to the same question, where each party's noise has this sd in lattice units.
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

    /// Pairs so far.
    pub(crate) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// What they say of each party, in the job's order; where their sum alone is opened, of all of them together.
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
    /// What is wrong with the party's noise, in a sentence.
    pub(crate) fn word(&self) -> Option<String> {
        let Self { party, equal, chi2, degrees_of_freedom, p_value } = self;
        if *equal > 0 {
            return Some(format!(
                "{party} gave the same answer, noise and all, to {equal} of the questions that came a second time: it repeats itself, the draws are \
                 too narrow, and its owner has to be asked"
            ));
        }
        (*p_value < ALARM).then(|| {
            format!(
                "the noise of {party} is not what it charges for: answers to the same questions differ by {:.2} times the variance that they should \
                 (chi-square {chi2:.0} on {degrees_of_freedom} degrees of freedom)",
                chi2 / *degrees_of_freedom as f64
            )
        })
    }
}
