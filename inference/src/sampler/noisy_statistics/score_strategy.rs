//! The strategy of score stages: a gradient and an information matrix at each of a few points, the last of which gives the
//! answer.

mod apart;
mod elsewhere;

use std::any::Any;

use super::adequacy::ScoreChecks;
use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::coding::Coding;
use super::gaussian::{GaussianPrior, largest_eigenvalue, roots};
use super::histogram::PendingHistogram;
use super::information::Information;
use super::landscape::Landscape;
use super::obstacle::Obstacle;
use super::own_answer::{AnsweredQueries, OwnAnswerError};
use super::public::{Public, WholeBudgetNoise};
use super::refit::{RefitError, RetainedCoefficients};
use super::schedule::{Request, Shares};
use super::scores::{GradientQuery, PendingInformation, PendingScore, expected_covariance, information_scales};
use super::search::Search;
use super::stage::ScoreStage;
use super::starting_point::{StartingPoint, intercept};
use super::strategy::Strategy;
use super::weighted::ChainFrame;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::{JobSpec, ReleaseSpec};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::QueryKind;

/// Noise of the released information, in posterior sds, above which it determines the posterior's shape less well than public
/// bounds do.
const BLURRED: f64 = 0.5;

/// Noise of the released information, relative to it, above which the posterior's width without noise is not determined.
pub(super) const MOST_NOISE: f64 = 1.0;

/// Sds of a location's error by which the last stage is judged nearer to the start: one location in fifteen is nearer still.
const MARGIN: f64 = 1.5;

/// The point of a score, the score, and the covariance of its noise.
type ReceivedScore = (Vec<f64>, Vec<f64>, Matrix);

/// The location of a posterior, in coded coordinates.
#[derive(Clone)]
pub(crate) struct Found {
    /// The map to coded coordinates.
    pub(crate) coding: Coding,
    /// Number of records of all parties if each may subtract a centre from its gradient; else 0.
    pub(crate) centred: f64,
    /// Location, inside the parameter box.
    pub(crate) mean: Vec<f64>,
    /// Covariance of the posterior without privacy: from the release, or expected from public bounds.
    pub(crate) covariance: Matrix,
    /// Covariance of the location's error.
    pub(crate) error: Matrix,
    /// True if the posterior's covariance comes from the release.
    pub(crate) sharp: bool,
    /// The frame of weighted chains, if the posterior is that of a weighted fit.
    pub(crate) frame: Option<ChainFrame>,
}

/// The score stages of a job.
#[derive(Clone)]
pub(crate) struct ScoreStrategy {
    pub(super) coding: Coding,
    pub(super) prior: GaussianPrior,
    pub(super) search: Search,
    parties: usize,
    /// Number of records of all parties if each may subtract a centre from its gradient; else 0.
    pub(super) centred: f64,
    /// Number of records of all parties, or a guess.
    pub(super) records: f64,
    pub(super) own: bool,
    whole: WholeBudgetNoise,
    pending: (Option<PendingScore>, Option<PendingInformation>),
    /// The answered queries behind the answer.
    pub(super) answered: AnsweredQueries,
    stages: Vec<Stage>,
    /// Remaining share of the budget before the present stage.
    left: f64,
    histogram: Option<PendingHistogram>,
}

impl ScoreStrategy {
    /// Returns the strategy before its first round.
    pub(crate) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Self, SamplerError> {
        let starting_point = StartingPoint::of(target, scores, parties);
        let whole = WholeBudgetNoise::of(target, budget, parties.len(), &starting_point.gradient_query(scores))?;
        let rule = intercept(&target.spec, &starting_point);
        let StartingPoint { coding, prior, start, centred, weight, records, .. } = starting_point;
        let public = Public { target, scores, coding: &coding, centred: centred > 0.0, whole };
        Ok(Self {
            search: Search::new(
                (shares(&target.spec), 1.0),
                prior.clone(),
                start,
                rule,
                records * target.spec.power,
                weight,
                &public,
            ),
            histogram: target.spec.times_table(target.model.as_ref()).map(PendingHistogram::new),
            own: scores.parameters() > scores.coefficients(),
            parties: parties.len(),
            coding,
            prior,
            centred,
            records,
            whole,
            pending: (None, None),
            answered: AnsweredQueries::default(),
            stages: Vec::new(),
            left: 1.0,
        })
    }

    /// Returns the same releases with the priors of another job.
    ///
    /// # Errors
    /// The model has no scores.
    pub(crate) fn refitted(&self, target: &Target) -> Result<Self, SamplerError> {
        let scores = scores(target)?;
        let prior = self.coding.prior(&GaussianPrior::of(&target.space));
        let (search, located) = self.search.with_prior(prior.clone(), &self.public(target, scores.as_ref()));
        let mut strategy = Self { prior, search, ..self.clone() };
        let last = strategy.search.answer().map(|(_, fit)| (fit.mean.clone(), fit.covariance.clone()));
        let learnt = located.into_iter().map(|located| (located.mean, located.covariance)).chain(last);
        let shown: Vec<_> = learnt.map(|(mean, covariance)| self.shown(target, &mean, &covariance)).collect();
        strategy.stages.iter_mut().zip(shown).for_each(|(stage, (mean, sd))| (stage.mean, stage.sd) = (mean, sd));
        Ok(strategy)
    }

    pub(super) fn public<'a>(&'a self, target: &'a Target, scores: &'a dyn ScoreModel) -> Public<'a> {
        Public { target, scores, coding: &self.coding, centred: self.centred > 0.0, whole: self.whole }
    }

    /// Returns the search, to be changed, and the public facts that it rests on.
    fn searching<'a>(&'a mut self, target: &'a Target, scores: &'a dyn ScoreModel) -> (&'a mut Search, Public<'a>) {
        let Self { coding, search, centred, whole, .. } = self;
        (search, Public { target, scores, coding, centred: *centred > 0.0, whole: *whole })
    }

    /// Moves a coded point into the parameter box; returns its theta and the point.
    fn inside(&self, target: &Target, at: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let at = self.coding.coded(&target.space.coordinates(&theta));
        (theta, at)
    }

    fn ask_score(&mut self, target: &Target, budget: &mut Allotment, at: &[f64], share: f64) -> Result<Query, SamplerError> {
        let scores = scores(target)?;
        let place = self.inside(target, at);
        let gradient_query = GradientQuery::new(scores.as_ref(), &self.coding, place, self.search.weight(), self.centred > 0.0);
        let kind = QueryKind::Gradient { parameters: gradient_query.theta.len() as u32 };
        let points = (gradient_query.theta.as_slice(), gradient_query.frame.as_slice());
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, points, share)?;
        let (query, pending) = gradient_query.ask(noise);
        self.pending.0 = Some(pending);
        Ok(query)
    }

    fn ask_information(
        &mut self,
        target: &Target,
        budget: &mut Allotment,
        (at, share): (&[f64], f64),
        chain: u32,
    ) -> Result<Query, SamplerError> {
        let place = self.inside(target, at);
        let scores = scores(target)?;
        let scales = information_scales(scores.as_ref(), &place.0);
        let kind = QueryKind::Curvature { parameters: place.0.len() as u32 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&place.0, &scales), share)?;
        let (query, pending) = PendingInformation::ask(scores.as_ref(), place, scales, noise, chain);
        self.pending.1 = Some(pending);
        Ok(query)
    }

    /// Returns the estimates of the pending queries from their totals.
    fn received(&mut self, iteration: u64, totals: &Totals) -> (Option<ReceivedScore>, Option<Information>) {
        let pending = (self.pending.0.take(), self.pending.1.take());
        self.answered.add(iteration, pending.0.as_ref(), pending.1.as_ref());
        let mut by_query = totals.by_query();
        let score = pending.0.map(|pending| {
            let (score, noise) = pending.score(by_query.next().unwrap_or_default(), self.parties, self.centred);
            (pending.at().to_vec(), score, noise)
        });
        let information =
            pending.1.map(|pending| pending.information(by_query.next().unwrap_or_default(), self.parties, self.own));
        (score, information)
    }

    /// Restarts the search where a released histogram of times says. Returns false if no histogram was asked.
    fn start_at_histogram(&mut self, target: &Target, scores: &dyn ScoreModel, totals: &Totals, left: f64) -> bool {
        let Some(seen) = self.histogram.as_mut().and_then(|histogram| histogram.seen(totals, self.parties)) else { return false };
        let (theta, start) = self.inside(target, &seen.start(&self.prior));
        let expected = (self.records * seen.event_share()).max(1.0);
        let weight = expected_covariance(scores, &theta, expected, &self.prior);
        self.search = self.search_from((target, scores), (start, weight), left);
        self.left = left;
        true
    }

    /// Records the posterior after the latest stage.
    fn record(&mut self, target: &Target, at: &[f64], left: f64) {
        let theta = |at: &[f64]| target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let last = self.search.is_done();
        let (mean, covariance) = match (self.search.located(), self.search.answer()) {
            (Some(located), _) if !last => (&located.mean, &located.covariance),
            (_, Some((_, fit))) => (&fit.mean, &fit.covariance),
            _ => return,
        };
        let (mean, sd) = self.shown(target, mean, covariance);
        self.stages.push(Stage { theta: theta(at), share: self.left - left, mean, sd, last });
        self.left = left;
    }

    /// Converts a mean and its covariance to the form of a stage's record.
    fn shown(&self, target: &Target, mean: &[f64], covariance: &Matrix) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(mean));
        (theta, roots(&self.coding.plain_covariance(covariance)))
    }
}

impl Strategy for ScoreStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        if let Some(query) = self.histogram.as_mut().map(|histogram| histogram.ask(target, budget)).transpose()?.flatten() {
            return Ok(vec![query]);
        }
        match self.search.request().clone() {
            Request::Stage { at, share, curvature } => {
                let information = self.ask_information(target, budget, (&at, share * curvature), 1)?;
                let score = self.ask_score(target, budget, &at, share * (1.0 - curvature))?;
                Ok(vec![score, information])
            }
            Request::Score { at, share } => Ok(vec![self.ask_score(target, budget, &at, share)?]),
            Request::Information { at, share, last } => {
                let share = if last { budget.left() } else { share };
                Ok(vec![self.ask_information(target, budget, (&at, share), 0)?])
            }
        }
    }

    fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals, budget: &Allotment) -> bool {
        let Ok(scores) = scores(target) else { return false };
        if self.start_at_histogram(target, scores.as_ref(), totals, budget.left()) {
            return false;
        }
        let (score, information) = self.received(round.iteration, totals);
        let (search, public) = self.searching(target, scores.as_ref());
        let ended = match (score, information) {
            (Some((at, score, score_noise)), Some(information)) => {
                search.take_stage(ScoreStage { at: at.clone(), score, score_noise, information }, &public);
                Some(at)
            }
            (Some((at, score, noise)), None) => {
                search.take_score(at, score, noise, &public);
                None
            }
            (None, Some(information)) => {
                search.take_information(information, &public);
                search.answer().filter(|_| search.is_done()).map(|(stage, _)| stage.at.clone())
            }
            (None, None) => return false,
        };
        if let Some(at) = ended {
            self.record(target, &at, budget.left());
        }
        self.search.is_done()
    }

    /// Judges the last stage before its first query: by the step that the releases leave, and for predictors uniform over their
    /// bounds, at the located answer moved towards the start, where the public information is.
    fn obstacle(&self, target: &Target, _budget: &Allotment) -> Option<Obstacle> {
        let Request::Score { share, .. } = self.search.request() else { return None };
        let (located, start) = (self.search.located()?, self.search.start()?);
        let scores = scores(target).ok()?;
        let margins = roots(&located.covariance).into_iter().map(|sd| MARGIN * sd);
        let towards = located.mean.iter().zip(start).zip(margins);
        let nearest: Vec<f64> = towards.map(|((mean, start), most)| mean + (start - mean).clamp(-most, most)).collect();
        let (theta, at) = self.inside(target, &nearest);
        let even = expected_covariance(scores.as_ref(), &theta, self.records, &self.prior);
        let public = self.public(target, scores.as_ref());
        let order = at.len() as f64;
        let sd = public.information_sd(&at) / self.search.reserved().sqrt();
        let rho = 2.0 * sd * order.sqrt() * largest_eigenvalue(&even);
        let noise = public.score_noise(&at, &even).scaled(share.recip());
        let covariance = even.times(&noise).times(&even).plus(&even, 1.0);
        let shares = covariance.diagonal_entries().into_iter().zip(&self.prior.precision).map(|(variance, p)| variance * p);
        Obstacle::of_score(rho, shares.fold(0.0, f64::max)).or_else(|| Obstacle::of_step(self.search.expected()))
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let (stage, fit) = self.search.answer()?;
        let scores = scores(target).ok()?;
        let public = self.public(target, scores.as_ref());
        let likelihood = stage.likelihood(fit, &|direction: &[f64]| public.reach(&stage.at, direction));
        Some(Answer {
            mean: self.coding.plain(&fit.mean),
            covariance: self.coding.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.coding.coded(u))),
        })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let (stage, fit) = self.search.answer()?;
        let scores = scores(target).ok()?;
        let public = self.public(target, scores.as_ref());
        let reach = |direction: &[f64]| public.reach(&stage.at, direction);
        let adequacy = ScoreChecks::of(stage, fit, &self.prior, &reach);
        let with = self.coding.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.coding.plain_covariance(&fit.without_noise).diagonal_entries();
        // With an information that is mostly noise, the width without noise is not known.
        let known = fit.definite && adequacy.rho.value <= MOST_NOISE;
        Some(Inference::new(self.stages.clone(), &with, &without, known).with_score_checks(&adequacy).with_width_check())
    }

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        Ok(self)
    }

    /// Reuses the likelihood. Only the allowance for the quadratic's remainder changes: it is the new fit's.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        if !retained.all {
            return Err(RefitError::DroppedFromScores);
        }
        Ok(Box::new(self.refitted(target)?))
    }
}

/// Returns the model's scores.
pub(super) fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}

fn shares(spec: &JobSpec) -> Shares {
    match &spec.release.stages {
        None if spec.release.curvature_share.is_none() => Shares::Auto,
        None => Shares::Fixed { shares: ReleaseSpec::FIXED_SHARES.to_vec(), curvature: spec.release.curvature_share },
        Some(shares) => Shares::Fixed { shares: shares.clone(), curvature: spec.release.curvature_share },
    }
}
