//! Which answers make the fit: all that lie where the posterior is.
//!
//! A quadratic describes a log likelihood near its mode, and a search begins a prior's width away from it.
//! So an answer counts where both places that it compares lie within [`REACH`] sds of the middle of the
//! chains' draws, coordinate by coordinate. The sd is the draws' own, or that given the other coordinates
//! if it is larger. Answers of the search, which are few, are kept one by one and looked at one by one;
//! those of the warm-up are summed in blocks, each twice as long as the one before it, and a block counts
//! as a whole; those of the sampling always count. The places alone decide, never what was answered there.

use super::normal_equations::NormalEquations;
use super::terms::Terms;
use conclave_common::query::Phase;

/// Greatest distance of an answer's places from the middle of the draws, in sds. A search's last steps reach
/// out 4 to 12: with all of them (14) means of regressions at 30,000 records gain 8%, and at 1,000 the far ones, where
/// no log likelihood is a quadratic, take it back and widen sds by 3% (measured).
const REACH: f64 = 8.0;
/// Answers in the first block of the warm-up.
const FIRST_BLOCK: u64 = 64;
/// The middle that coordinates are counted from is chosen anew when the sampling begins, where the chains
/// have gone further than this from it, in sds: powers of a long way are numbers without digits.
const FAR: f64 = 4.0;
/// Coordinates beyond which nothing is kept: sums grow as the fourth power of their number.
pub(super) const MOST_COORDINATES: usize = 20;

/// One released log likelihood ratio.
#[derive(Debug, Clone)]
pub(in crate::sampler) struct Answer {
    /// Coordinates of theta.
    pub(in crate::sampler) from: Vec<f64>,
    /// Coordinates of theta'.
    pub(in crate::sampler) to: Vec<f64>,
    /// Its log likelihood ratio over all parties, noisy.
    pub(in crate::sampler) ratio: f64,
    /// Variance of the noise, of all parties together.
    pub(in crate::sampler) variance: f64,
}

/// The slope of the log likelihood at a place, along one direction.
#[derive(Debug, Clone, Copy)]
pub(in crate::sampler) struct Slope<'a> {
    /// Coordinates of the place.
    pub(in crate::sampler) at: &'a [f64],
    /// The direction, in the same coordinates.
    pub(in crate::sampler) direction: &'a [f64],
    /// The slope over all parties, noisy.
    pub(in crate::sampler) slope: f64,
    /// Variance of the noise, of all parties together.
    pub(in crate::sampler) variance: f64,
}

/// Answers that were summed, and where they are.
#[derive(Debug, Clone)]
struct Block {
    sums: NormalEquations,
    least: Vec<f64>,
    greatest: Vec<f64>,
    /// Sums of the chains' coordinates, and of their squares.
    place: Vec<f64>,
    square: Vec<f64>,
}

impl Block {
    fn new(terms: Terms) -> Self {
        let d = terms.dimension;
        Self {
            sums: NormalEquations::new(terms.count()),
            least: vec![f64::INFINITY; d],
            greatest: vec![f64::NEG_INFINITY; d],
            place: vec![0.0; d],
            square: vec![0.0; d],
        }
    }

    /// Mean and sd of a coordinate over the chains' places.
    fn moments(&self, j: usize) -> (f64, f64) {
        let n = self.sums.answers.max(1) as f64;
        let mean = self.place[j] / n;
        (mean, (self.square[j] / n - mean * mean).max(0.0).sqrt())
    }
}

/// A place in coordinates as they are counted here: from a middle, in sds given the others.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    pub(super) centre: Vec<f64>,
    pub(super) scale: Vec<f64>,
}

impl Frame {
    /// The sampler's own coordinates, as counted here.
    pub(super) fn counted(&self, u: &[f64]) -> Vec<f64> {
        u.iter().zip(&self.centre).zip(&self.scale).map(|((u, c), s)| (u - c) / s).collect()
    }

    /// The sampler's own coordinates.
    pub(super) fn coordinates(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.centre).zip(&self.scale).map(|((x, c), s)| c + s * x).collect()
    }
}

/// Answers that make the fit, summed.
pub(super) struct Chosen {
    pub(super) frame: Frame,
    pub(super) sums: NormalEquations,
}

/// The fit as answers come in.
#[derive(Debug, Clone)]
pub(in crate::sampler) struct QuadraticFit {
    terms: Terms,
    frame: Frame,
    searched: Vec<Answer>,
    warmup: Vec<Block>,
    sampling: Option<Block>,
    answers: u64,
    factors: Vec<(usize, f64)>,
    /// What an answer is, in a word.
    what: &'static str,
}

impl QuadraticFit {
    /// No answer yet; each will be a ratio.
    pub(in crate::sampler) fn new(dimension: usize) -> Self {
        Self::of("ratio", dimension)
    }

    /// No answer yet; each will be what the word says.
    pub(in crate::sampler) fn of(what: &'static str, dimension: usize) -> Self {
        Self {
            what,
            terms: Terms { dimension },
            frame: Frame::default(),
            searched: Vec::new(),
            warmup: Vec::new(),
            sampling: None,
            answers: 0,
            factors: Vec::new(),
        }
    }

    /// What an answer is, in a word.
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    /// The terms that are fitted.
    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether there are too many coordinates for a fit.
    pub(super) fn too_many(&self) -> bool {
        self.terms.dimension > MOST_COORDINATES
    }

    /// Number of answers taken in, whether they count or not.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// The chains start around `centre`, where each coordinate's posterior sd given the others is about
    /// `scale`. Both only say how coordinates are counted; what they are wrong by costs digits.
    pub(in crate::sampler) fn begin(&mut self, centre: Vec<f64>, scale: &[f64]) {
        let sound = |s: &f64| if s.is_finite() && *s > 0.0 { *s } else { 1.0 };
        let scale = (0..centre.len()).map(|j| scale.get(j).map_or(1.0, sound)).collect();
        self.frame = Frame { centre, scale };
    }

    /// Takes in an answer to a search.
    pub(in crate::sampler) fn search_answered(&mut self, answer: Answer) {
        self.answers += 1;
        if !self.too_many() {
            self.searched.push(answer);
        }
    }

    /// Takes in an answer to a chain's proposal.
    pub(in crate::sampler) fn chain_answered(&mut self, phase: Phase, answer: &Answer) {
        self.answers += 1;
        if self.too_many() {
            return;
        }
        self.begin_phase(phase);
        let (from, to) = (self.frame.counted(&answer.from), self.frame.counted(&answer.to));
        self.terms.of_step(&from, &to, &mut self.factors);
        self.sum(phase, (&from, &to), answer.ratio, answer.variance);
    }

    /// Takes in a slope that a chain was told.
    pub(in crate::sampler) fn slope_answered(&mut self, phase: Phase, slope: Slope<'_>) {
        self.answers += 1;
        if self.too_many() {
            return;
        }
        self.begin_phase(phase);
        let at = self.frame.counted(slope.at);
        let direction: Vec<f64> = slope.direction.iter().zip(&self.frame.scale).map(|(by, scale)| by / scale).collect();
        self.terms.of_slope(&at, &direction, &mut self.factors);
        self.sum(phase, (&at, &at), slope.slope, slope.variance);
    }

    fn begin_phase(&mut self, phase: Phase) {
        if phase == Phase::Sampling && self.sampling.is_none() {
            self.settle();
        }
    }

    /// Sums an answer whose factors are made, of these places.
    fn sum(&mut self, phase: Phase, (from, to): (&[f64], &[f64]), y: f64, variance: f64) {
        let terms = self.terms;
        let block = if phase == Phase::Sampling {
            self.sampling.get_or_insert_with(|| Block::new(terms))
        } else {
            let full = |block: &Block| block.sums.answers >= FIRST_BLOCK << (self.warmup.len() - 1).min(40);
            if self.warmup.last().is_none_or(full) {
                self.warmup.push(Block::new(terms));
            }
            let last = self.warmup.len() - 1;
            &mut self.warmup[last]
        };
        block.sums.add(&self.factors, y, variance);
        for (j, (from, to)) in from.iter().zip(to).enumerate() {
            block.least[j] = block.least[j].min(from.min(*to));
            block.greatest[j] = block.greatest[j].max(from.max(*to));
            block.place[j] += from;
            block.square[j] += from * from;
        }
    }

    /// The middle, chosen anew where the warm-up has led away from it; what was on the way is left out.
    fn settle(&mut self) {
        let Some(last) = self.warmup.last() else { return };
        let mean: Vec<f64> = (0..self.terms.dimension).map(|j| last.moments(j).0).collect();
        if mean.iter().any(|x| x.abs() > FAR) {
            self.frame.centre = self.frame.coordinates(&mean);
            self.warmup.clear();
        }
    }

    /// The answers that count, summed; `None` before the first draw.
    pub(super) fn chosen(&self) -> Option<Chosen> {
        let sampling = self.sampling.as_ref()?;
        let window: Vec<(f64, f64)> = (0..self.terms.dimension)
            .map(|j| {
                let (mean, sd) = sampling.moments(j);
                let width = REACH * sd.max(1.0);
                (mean - width, mean + width)
            })
            .collect();
        let holds = |x: &[f64]| x.iter().zip(&window).all(|(x, (low, high))| low <= x && x <= high);
        let mut sums = sampling.sums.clone();
        for block in self.warmup.iter().filter(|block| holds(&block.least) && holds(&block.greatest)) {
            sums.merge(&block.sums);
        }
        let mut factors = Vec::new();
        for answer in &self.searched {
            let (from, to) = (self.frame.counted(&answer.from), self.frame.counted(&answer.to));
            if holds(&from) && holds(&to) {
                self.terms.of_step(&from, &to, &mut factors);
                sums.add(&factors, answer.ratio, answer.variance);
            }
        }
        Some(Chosen { frame: self.frame.clone(), sums })
    }
}
