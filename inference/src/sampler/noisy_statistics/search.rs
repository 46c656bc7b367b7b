//! The search for the answer by score stages, as a function of released numbers.

use super::adequacy::cubic;
use super::gaussian::{Fit, GaussianPrior, factor, positive_part};
use super::guide::Guide;
use super::information::Information;
use super::intercept::Intercept;
use super::landscape::{Landscape, information_sds};
use super::last_stage::{LastScore, expected_cubic, last_curvature};
use super::locate::{Located, locate};
use super::schedule::{FARTHEST, Request, Schedule, SearchState, Shares};
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;

/// Largest change of the logarithm of a family's own parameter in one step of the search.
const FARTHEST_OWN: f64 = 1.0;

/// The answer by the stages so far, and the place of the next query.
pub(crate) struct Prospect {
    fit: Fit,
    located: Located,
    at: Vec<f64>,
    weight: Matrix,
    state: SearchState,
}

impl Prospect {
    /// Returns true if the next stage may be the last.
    pub(crate) fn is_found(&self) -> bool {
        self.state.is_found()
    }

    /// Returns the prospect of a search that continues even if this one has found its answer.
    pub(crate) fn unfound(self) -> Self {
        Self { state: SearchState { moved: f64::INFINITY, ..self.state }, ..self }
    }
}

/// The search as a state machine.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    prior: GaussianPrior,
    intercept: Option<Intercept>,
    /// The location by the releases of another search.
    guide: Option<(Guide, Information)>,
    /// Number of records of all parties, or a guess, times the power of their likelihood.
    records: f64,
    schedule: Schedule,
    /// Expected covariance at the point of the next query.
    weight: Matrix,
    request: Request,
    /// Share of the budget that the last stage reserves for its curvature.
    reserved: f64,
    /// Expected remainder of the quadratic on the next step, in posterior sds.
    expected: f64,
    /// Stages before the last.
    stages: Vec<ScoreStage>,
    /// The last stage's point, score and noise covariance.
    score: Option<(Vec<f64>, Vec<f64>, Matrix)>,
    /// The parts of the last stage's information.
    information: Vec<Information>,
    answer: Option<(ScoreStage, Fit)>,
    located: Option<Located>,
    done: bool,
}

impl Search {
    /// Starts a search at `start`, where `weight` is the expected covariance, with a share of the budget.
    pub(crate) fn new(
        (shares, remaining): (Shares, f64),
        prior: GaussianPrior,
        start: Vec<f64>,
        intercept: Option<Intercept>,
        records: f64,
        weight: Matrix,
        landscape: &dyn Landscape,
    ) -> Self {
        let mut schedule = Schedule::new(shares, remaining);
        let curvature = last_curvature(&weight, remaining, information_sds(landscape, &start));
        let (request, reserved) = schedule.first(start, curvature);
        Self {
            prior,
            intercept,
            guide: None,
            records,
            schedule,
            weight,
            request,
            reserved,
            expected: f64::INFINITY,
            stages: Vec::new(),
            score: None,
            information: Vec::new(),
            answer: None,
            located: None,
            done: false,
        }
    }

    /// Continues from the location of another search: with the last stage, where that is near enough to the answer, else with stages of
    /// its own. `information` is the one that the other search leads to expect there.
    pub(crate) fn led_by(mut self, guide: Guide, information: Information, remaining: f64, landscape: &dyn Landscape) -> Self {
        self.schedule = Schedule::led(remaining, information.own_sd.is_some());
        let at = guide.mean.clone();
        let curvature = last_curvature(&self.weight, remaining, information_sds(landscape, &at));
        let noise = landscape.score_noise(&at, &self.weight).scaled(1.0 / (remaining * (1.0 - curvature)));
        let reach = |direction: &[f64]| landscape.reach(&at, direction);
        self.expected = expected_cubic(&guide.error, &self.weight, &noise, &reach);
        let state = SearchState { moved: 0.0, cubic: 0.0, expected: self.expected, curvature };
        (self.request, self.reserved) = self.schedule.next(at.clone(), state);
        self.guide = Some((guide, information));
        self
    }

    /// Returns the next query.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the covariance for the score's frame.
    pub(crate) fn weight(&self) -> &Matrix {
        &self.weight
    }

    /// Returns true once everything is released.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the stage that the posterior is conditioned on, and its fit; `None` before the first release.
    pub(crate) fn answer(&self) -> Option<&(ScoreStage, Fit)> {
        self.answer.as_ref()
    }

    /// Returns the point of the first stage; `None` before its release.
    pub(crate) fn start(&self) -> Option<&[f64]> {
        self.stages.first().map(|stage| stage.at.as_slice())
    }

    /// Returns the share of the budget that the last stage reserves for its information; 0 before it is due.
    pub(crate) fn reserved(&self) -> f64 {
        self.reserved
    }

    /// Returns the expected remainder of the quadratic on the next stage's step, in posterior sds: the median over simulated steps.
    /// Infinite before the first release.
    pub(crate) fn expected(&self) -> f64 {
        self.expected
    }

    /// Returns the location of the answer, estimated from the stages before the last.
    pub(crate) fn located(&self) -> Option<&Located> {
        self.located.as_ref()
    }

    /// Adds a stage and chooses the next query.
    pub(crate) fn take_stage(&mut self, stage: ScoreStage, landscape: &dyn Landscape) {
        self.stages.push(stage);
        if let Some(prospect) = self.prospect(landscape) {
            self.follow(prospect);
        }
    }

    /// Adds a stage without the choice of the next query, which [`Self::prospect`] and [`Self::follow`] make.
    pub(crate) fn add_stage(&mut self, stage: ScoreStage) {
        self.stages.push(stage);
    }

    /// Returns the prior, in coordinates.
    pub(crate) fn prior(&self) -> &GaussianPrior {
        &self.prior
    }

    /// Returns true once the last stage's score is released.
    pub(crate) fn is_in_last_stage(&self) -> bool {
        self.score.is_some()
    }

    /// Returns the location of the answer by the stages before the last; `None` before the first.
    pub(crate) fn located_now(&self, landscape: &dyn Landscape) -> Option<Located> {
        let last = self.stages.len().checked_sub(1)?;
        Some(self.fit_and_location(last, landscape).1)
    }

    /// Estimates the answer from the stages so far, and where the next query is best asked; `None` before the first stage.
    pub(crate) fn prospect(&self, landscape: &dyn Landscape) -> Option<Prospect> {
        let stage = self.stages.last()?;
        let near = stage.at.clone();
        let reach = |direction: &[f64]| landscape.reach(&near, direction);
        let (fit, located) = self.fit_and_location(self.stages.len() - 1, landscape);
        let step: Vec<f64> = located.mean.iter().zip(&stage.at).map(|(to, at)| to - at).collect();
        let step = match &self.intercept {
            Some(rule) if self.stages.len() == 1 => rule.corrected(stage, step),
            _ => step,
        };
        let (step, shortened) = within_own_reach(step, stage.information.own_sd.is_some());
        let at = moved(&stage.at, &step, &reach);
        let information = self.information_near(&at, landscape).unwrap_or_else(|| stage.information.clone());
        let weight = factor(&positive_part(&information.matrix).plus(&self.prior.matrix(), 1.0)).inverse();
        let remaining = self.schedule.remaining();
        let curvature = last_curvature(&weight, remaining, information_sds(landscape, &at));
        let noise = landscape.score_noise(&at, &weight).scaled(1.0 / (remaining * (1.0 - curvature)));
        let state = SearchState {
            // Where a scale is far off, the records carry little information, the posterior looks wide, and every step looks short.
            moved: if shortened { f64::INFINITY } else { reach(&step) },
            cubic: cubic(&step, &located.covariance, &reach),
            expected: expected_cubic(&located.noise, &weight, &noise, &|direction| landscape.reach(&at, direction)),
            curvature,
        };
        Some(Prospect { fit, located, at, weight, state })
    }

    /// Chooses the next query by a prospect.
    pub(crate) fn follow(&mut self, prospect: Prospect) {
        let Prospect { fit, located, at, weight, state } = prospect;
        self.answer = self.stages.last().map(|stage| (stage.clone(), fit));
        self.weight = weight;
        self.expected = state.expected;
        self.located = Some(located);
        (self.request, self.reserved) = self.schedule.next(at, state);
    }

    /// Replaces the prior, by which later steps of the search are chosen, and moves the next query for information accordingly.
    pub(crate) fn set_prior(&mut self, prior: GaussianPrior, landscape: &dyn Landscape) {
        self.prior = prior;
        if self.done {
            self.answer = self.answer.take().map(|(stage, _)| {
                let fit = stage.fit(&self.prior, &|direction| landscape.reach(&stage.at, direction));
                (stage, fit)
            });
        } else if self.score.is_some() {
            self.aim(landscape);
        }
    }

    /// Returns a stage's own fit, and the location of the answer from it and the stages before it.
    fn fit_and_location(&self, stage: usize, landscape: &dyn Landscape) -> (Fit, Located) {
        let reach = |direction: &[f64]| landscape.reach(&self.stages[stage].at, direction);
        let fit = self.stages[stage].fit(&self.prior, &reach);
        let located =
            locate(&self.stages[..=stage], (&self.prior, self.guide.as_ref().map(|(guide, _)| guide)), &fit.mean, &reach);
        (fit, located)
    }

    /// Repeats the inference from the same releases under another prior. Also returns the location after each stage before the
    /// last.
    pub(crate) fn with_prior(&self, prior: GaussianPrior, landscape: &dyn Landscape) -> (Self, Vec<Located>) {
        let mut search = Self { prior, ..self.clone() };
        let located: Vec<Located> = (0..search.stages.len()).map(|stage| search.fit_and_location(stage, landscape).1).collect();
        search.answer = self.answer.as_ref().map(|(stage, _)| {
            let fit = stage.fit(&search.prior, &|direction| landscape.reach(&stage.at, direction));
            (stage.clone(), fit)
        });
        search.located = located.last().cloned();
        (search, located)
    }

    /// Adds the last stage's score. Asks for its information half way to the answer that the score implies.
    pub(crate) fn take_score(&mut self, at: Vec<f64>, score: Vec<f64>, noise: Matrix, landscape: &dyn Landscape) {
        self.score = Some((at, score, noise));
        self.aim(landscape);
    }

    /// Aims the next query for information half way to the answer that the releases so far imply.
    fn aim(&mut self, landscape: &dyn Landscape) {
        let Some((at, ..)) = self.score.clone() else { return };
        let pooled = Information::pooled(&self.information);
        let first = pooled.is_some();
        let by_guide = || self.guide.as_ref().map(|(_, information)| information.clone());
        let place = match pooled.or_else(|| self.information_near(&at, landscape)).or_else(by_guide) {
            Some(information) if information.is_of_both_ends() => {
                self.answer_with(information, landscape);
                at
            }
            Some(information) => half_way(&at, &self.answer_with(information, landscape), landscape),
            None => at,
        };
        self.request = Schedule::information(place, self.reserved, first);
    }

    /// Adds a part of the last stage's information.
    pub(crate) fn take_information(&mut self, information: Information, landscape: &dyn Landscape) {
        self.information.push(information);
        if matches!(self.request, Request::Information { last: true, .. }) {
            self.done = true;
            if let Some(pooled) = Information::pooled(&self.information) {
                self.answer_with(pooled, landscape);
            }
        } else {
            self.aim(landscape);
        }
    }

    /// Makes the last stage's score with this information the answer, and returns its mean.
    fn answer_with(&mut self, information: Information, landscape: &dyn Landscape) -> Vec<f64> {
        let Some((at, score, noise)) = self.score.clone() else { return Vec::new() };
        let reach = |direction: &[f64]| landscape.reach(&at, direction);
        // At the answer, nothing of the score is left.
        let score = LastScore { at: at.clone(), left: score.clone(), score, noise, records: self.records };
        let (stage, fit) = score.with_information(&information, |stage| stage.fit(&self.prior, &reach));
        let mean = fit.mean.clone();
        self.answer = Some((stage, fit));
        mean
    }

    fn information_near(&self, at: &[f64], landscape: &dyn Landscape) -> Option<Information> {
        let all: Vec<Information> = self.stages.iter().map(|stage| stage.information.clone()).collect();
        Information::near(&all, at, &|direction| landscape.reach(at, direction))
    }
}

/// Returns a step that changes the logarithm of a family's own parameter by at most [`FARTHEST_OWN`]: a scale that is much too
/// small makes most records look like outliers, which carry no information about the answer. Also returns whether it was longer.
fn within_own_reach(mut step: Vec<f64>, own: bool) -> (Vec<f64>, bool) {
    let mut longer = false;
    if let Some(last) = step.last_mut().filter(|last| own && !last.is_nan()) {
        longer = last.abs() > FARTHEST_OWN;
        *last = last.clamp(-FARTHEST_OWN, FARTHEST_OWN);
    }
    (step, longer)
}

/// Returns the point after a step, shortened so that no record's linear predictor moves by more than the limit. Ignores a step
/// that is not finite.
fn moved(at: &[f64], step: &[f64], reach: &dyn Fn(&[f64]) -> f64) -> Vec<f64> {
    let reached = reach(step);
    let part = if reached.is_nan() { 0.0 } else { (FARTHEST / reached).min(1.0) };
    at.iter().zip(step).map(|(at, s)| if s.is_finite() { at + part * s } else { *at }).collect()
}

fn half_way(at: &[f64], to: &[f64], landscape: &dyn Landscape) -> Vec<f64> {
    let half: Vec<f64> = to.iter().zip(at).map(|(to, at)| 0.5 * (to - at)).collect();
    moved(at, &half, &|direction| 2.0 * landscape.reach(at, direction))
}

#[cfg(test)]
#[path = "tests/search.rs"]
mod tests;
