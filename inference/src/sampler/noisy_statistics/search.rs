//! The search for the answer by score stages: released numbers in, the next question out.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::adequacy::cubic;
use super::gaussian::{Fit, GaussianPrior, factor, largest_eigenvalue, positive_part};
use super::information::Information;
use super::intercept::Intercept;
use super::locate::{Located, locate};
use super::schedule::{Ask, FARTHEST, Schedule, Shares, Standing};
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;

/// Least and greatest share of the last stage's curvature.
const CURVATURE: (f64, f64) = (0.05, 0.3);
/// What the last stage's curvature is to bring rho to, see `adequacy`.
const RHO_WANTED: f64 = 0.15;
/// Steps that are tried to say what the last one will leave out.
const TRIED: usize = 64;

/// What is public of the model at a point, in coordinates.
pub(crate) trait Landscape {
    /// The greatest `|x'direction|` of a record near a point.
    fn reach(&self, at: &[f64], direction: &[f64]) -> f64;

    /// The covariance of a score's noise, were the whole mu² spent on it, in the frame that suits this covariance.
    fn score_noise(&self, at: &[f64], weight: &Matrix) -> Matrix;

    /// The sd of the noise of an entry of the information, were the whole mu² spent on it.
    fn information_sd(&self, at: &[f64]) -> f64;
}

/// The search as a state machine.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    prior: GaussianPrior,
    intercept: Option<Intercept>,
    schedule: Schedule,
    /// The covariance that is expected where the next question is asked.
    weight: Matrix,
    asked: Ask,
    /// What the last stage keeps of the budget for its curvature.
    kept: f64,
    /// The stages before the last.
    stages: Vec<ScoreStage>,
    /// The last stage's score with its noise, at its point.
    score: Option<(Vec<f64>, Vec<f64>, Matrix)>,
    /// The last stage's information.
    information: Vec<Information>,
    answer: Option<(ScoreStage, Fit)>,
    located: Option<Located>,
    done: bool,
}

impl Search {
    /// A search from `start`, where `weight` is the covariance to expect.
    pub(crate) fn new(
        shares: Shares,
        prior: GaussianPrior,
        start: Vec<f64>,
        intercept: Option<Intercept>,
        weight: Matrix,
        landscape: &dyn Landscape,
    ) -> Self {
        let mut schedule = Schedule::new(shares);
        let curvature = last_curvature(&weight, 1.0, landscape.information_sd(&start));
        let (asked, kept) = schedule.first(start, curvature);
        Self {
            prior,
            intercept,
            schedule,
            weight,
            asked,
            kept,
            stages: Vec::new(),
            score: None,
            information: Vec::new(),
            answer: None,
            located: None,
            done: false,
        }
    }

    /// What to ask now.
    pub(crate) fn ask(&self) -> &Ask {
        &self.asked
    }

    /// The covariance that the score's frame is to suit.
    pub(crate) fn weight(&self) -> &Matrix {
        &self.weight
    }

    /// Whether everything is released.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// The stage that the posterior is given, and its fit; `None` before anything is released.
    pub(crate) fn answer(&self) -> Option<&(ScoreStage, Fit)> {
        self.answer.as_ref()
    }

    /// Where the answer lies, by the stages before the last.
    pub(crate) fn located(&self) -> Option<&Located> {
        self.located.as_ref()
    }

    /// Takes a stage in and decides where to ask next.
    pub(crate) fn take_stage(&mut self, stage: ScoreStage, landscape: &dyn Landscape) {
        let near = stage.at.clone();
        let reach = |direction: &[f64]| landscape.reach(&near, direction);
        self.stages.push(stage.clone());
        let (fit, located) = self.learnt(self.stages.len() - 1, landscape);
        self.answer = Some((stage.clone(), fit));
        let step: Vec<f64> = located.mean.iter().zip(&stage.at).map(|(to, at)| to - at).collect();
        let step = match &self.intercept {
            Some(rule) if self.stages.len() == 1 => rule.mended(&stage, step),
            _ => step,
        };
        let at = moved(&stage.at, &step, &reach);
        let information = self.information_near(&at, landscape).unwrap_or(stage.information);
        self.weight = factor(&positive_part(&information.matrix).plus(&self.prior.matrix(), 1.0)).inverse();
        let left = self.schedule.left();
        let curvature = last_curvature(&self.weight, left, landscape.information_sd(&at));
        let noise = landscape.score_noise(&at, &self.weight).scaled(1.0 / (left * (1.0 - curvature)));
        let standing = Standing {
            moved: reach(&step),
            cubic: cubic(&step, &located.covariance, &reach),
            expected: expected_cubic(&located.noise, &self.weight, &noise, &|direction| landscape.reach(&at, direction)),
            curvature,
        };
        self.located = Some(located);
        (self.asked, self.kept) = self.schedule.next(at, standing);
    }

    /// A stage's own fit, and where the answer lies by it and those before it.
    fn learnt(&self, stage: usize, landscape: &dyn Landscape) -> (Fit, Located) {
        let reach = |direction: &[f64]| landscape.reach(&self.stages[stage].at, direction);
        let fit = self.stages[stage].fit(&self.prior, &reach);
        let located = locate(&self.stages[..=stage], &self.prior, &fit.mean, &reach);
        (fit, located)
    }

    /// What the same releases say under another prior; and where the answer lay after each stage before the last.
    pub(crate) fn under(&self, prior: GaussianPrior, landscape: &dyn Landscape) -> (Self, Vec<Located>) {
        let mut search = Self { prior, ..self.clone() };
        let located: Vec<Located> = (0..search.stages.len()).map(|stage| search.learnt(stage, landscape).1).collect();
        search.answer = self.answer.as_ref().map(|(stage, _)| {
            let fit = stage.fit(&search.prior, &|direction| landscape.reach(&stage.at, direction));
            (stage.clone(), fit)
        });
        search.located = located.last().cloned();
        (search, located)
    }

    /// Takes the last stage's score in; its information is asked for half way to where it says that the answer lies.
    pub(crate) fn take_score(&mut self, at: Vec<f64>, score: Vec<f64>, noise: Matrix, landscape: &dyn Landscape) {
        let known = self.information_near(&at, landscape);
        self.score = Some((at.clone(), score, noise));
        let to = match known {
            Some(information) => self.answered_by(information, landscape),
            None => at.clone(),
        };
        self.asked = Schedule::information(half_way(&at, &to, landscape), self.kept, false);
    }

    /// Takes a part of the last stage's information in.
    pub(crate) fn take_information(&mut self, information: Information, landscape: &dyn Landscape) {
        self.information.push(information);
        let Some(pooled) = Information::pooled(&self.information) else { return };
        let to = self.answered_by(pooled, landscape);
        let Some((at, ..)) = &self.score else { return };
        if matches!(self.asked, Ask::Information { last: true, .. }) {
            self.done = true;
        } else {
            self.asked = Schedule::information(half_way(at, &to, landscape), self.kept, true);
        }
    }

    /// Takes the last stage's score with this information for the answer; gives its mean.
    fn answered_by(&mut self, information: Information, landscape: &dyn Landscape) -> Vec<f64> {
        let Some((at, score, noise)) = self.score.clone() else { return Vec::new() };
        let stage = ScoreStage { at: at.clone(), score, score_noise: noise, information };
        let fit = stage.fit(&self.prior, &|direction| landscape.reach(&at, direction));
        let mean = fit.mean.clone();
        self.answer = Some((stage, fit));
        mean
    }

    fn information_near(&self, at: &[f64], landscape: &dyn Landscape) -> Option<Information> {
        let all: Vec<Information> = self.stages.iter().map(|stage| stage.information.clone()).collect();
        Information::near(&all, at, &|direction| landscape.reach(at, direction))
    }
}

/// A point a step further on, which moves no record's linear predictor by more than is allowed. A step that is no number
/// leaves it where it is.
fn moved(at: &[f64], step: &[f64], reach: &dyn Fn(&[f64]) -> f64) -> Vec<f64> {
    let reached = reach(step);
    let part = if reached.is_nan() { 0.0 } else { (FARTHEST / reached).min(1.0) };
    at.iter().zip(step).map(|(at, s)| if s.is_finite() { at + part * s } else { *at }).collect()
}

fn half_way(at: &[f64], to: &[f64], landscape: &dyn Landscape) -> Vec<f64> {
    let half: Vec<f64> = to.iter().zip(at).map(|(to, at)| 0.5 * (to - at)).collect();
    moved(at, &half, &|direction| 2.0 * landscape.reach(at, direction))
}

/// The curvature's share of a last stage with this share of the budget: what brings rho to [`RHO_WANTED`].
fn last_curvature(weight: &Matrix, share: f64, information_sd: f64) -> f64 {
    let rho = 2.0 * information_sd * (weight.order() as f64).sqrt() * largest_eigenvalue(weight) / share.sqrt();
    let wanted = rho / RHO_WANTED * (rho / RHO_WANTED);
    if wanted.is_nan() { CURVATURE.1 } else { wanted.clamp(CURVATURE.0, CURVATURE.1) }
}

/// What a quadratic will leave out of the last step, in posterior sds: the median over steps from a place known with
/// this noise to an answer that a score with that noise gives.
fn expected_cubic(place: &Matrix, weight: &Matrix, noise: &Matrix, reach: &dyn Fn(&[f64]) -> f64) -> f64 {
    let made = weight.times(noise).times(weight).symmetrised();
    let covariance = made.clone().plus(weight, 1.0);
    let steps = factor(&made.plus(place, 1.0).symmetrised());
    // Of no consequence to anybody's privacy or draws: the same ones always.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let mut tried: Vec<f64> = (0..TRIED)
        .map(|_| {
            let normals: Vec<f64> = (0..weight.order()).map(|_| StandardNormal.sample(&mut rng)).collect();
            cubic(&steps.lower().apply(&normals), &covariance, reach)
        })
        .collect();
    tried.sort_by(f64::total_cmp);
    tried[TRIED / 2]
}

#[cfg(test)]
#[path = "tests/search.rs"]
mod tests;
