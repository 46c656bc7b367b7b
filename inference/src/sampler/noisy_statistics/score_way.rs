//! The way by score stages: a gradient and an information matrix at a point, a few points, the last one's answer.

use super::adequacy::Adequacy;
use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::beginning::{Beginning, intercept};
use super::coding::Coding;
use super::gaussian::{GaussianPrior, largest_eigenvalue, roots};
use super::public::{Public, Whole};
use super::refit::{Kept, RefitError};
use super::schedule::{Ask, Shares};
use super::scores::{AskedInformation, AskedScore, Question, expected_covariance, information_scales};
use super::search::{Landscape, Search};
use super::stage::ScoreStage;
use super::way::Way;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::{JobSpec, ReleaseSpec};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::QueryKind;

/// Noise of the released information, in posterior sds, beyond which it says less of the posterior's shape than what is public.
const BLURRED: f64 = 0.5;

/// Where a posterior lies, in coded coordinates.
pub(crate) struct Found {
    /// The map to coded coordinates.
    pub(crate) coding: Coding,
    /// Records of all parties, where every one of them may take a centre off each; else 0.
    pub(crate) centred: f64,
    /// The place, inside the parameter box.
    pub(crate) mean: Vec<f64>,
    /// The posterior's covariance without privacy, as far as the release tells, or as public bounds let expect.
    pub(crate) covariance: Matrix,
    /// The covariance of the place's own error.
    pub(crate) error: Matrix,
    /// Whether that covariance is what the release tells.
    pub(crate) sharp: bool,
}

/// Score stages of a job.
#[derive(Clone)]
pub(crate) struct ScoreWay {
    coding: Coding,
    prior: GaussianPrior,
    search: Search,
    parties: usize,
    /// Records of all parties, where every one of them may take a centre off each; else 0.
    centred: f64,
    /// Records of all parties, or a guess.
    records: f64,
    own: bool,
    whole: Whole,
    asked: (Option<AskedScore>, Option<AskedInformation>),
    stages: Vec<Stage>,
    /// The share of the budget that was left before the present stage.
    left: f64,
}

impl ScoreWay {
    /// The way at its start.
    pub(crate) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Self, SamplerError> {
        let beginning = Beginning::of(target, scores, parties);
        let whole = Whole::of(target, budget, parties.len(), &beginning.question(scores))?;
        let rule = intercept(&target.spec, &beginning);
        let Beginning { coding, prior, start, centred, weight, records, .. } = beginning;
        let public = Public { target, scores, coding: &coding, centred: centred > 0.0, whole };
        Ok(Self {
            search: Search::new(shares(&target.spec), prior.clone(), start, rule, weight, &public),
            own: scores.parameters() > scores.coefficients(),
            parties: parties.len(),
            coding,
            prior,
            centred,
            records,
            whole,
            asked: (None, None),
            stages: Vec::new(),
            left: 1.0,
        })
    }

    /// Where the answer lies, once everything is released.
    pub(crate) fn found(&self, target: &Target) -> Option<Found> {
        let (stage, fit) = self.search.answer().filter(|_| self.search.is_done())?;
        let (theta, mean) = self.inside(target, &fit.mean);
        // What the noise of the information comes to in posterior sds.
        let blurred = |covariance: &Matrix| {
            2.0 * stage.information.sd * (covariance.order() as f64).sqrt() * largest_eigenvalue(covariance)
        };
        let sharp = fit.definite && blurred(&fit.without_noise) <= BLURRED;
        let scores = scores(target).ok()?;
        let covariance = if sharp {
            fit.without_noise.clone()
        } else {
            expected_covariance(scores.as_ref(), &theta, self.records, &self.prior)
        };
        Some(Found { coding: self.coding.clone(), centred: self.centred, mean, covariance, error: fit.noise.clone(), sharp })
    }

    /// What a search would find of a posterior about here, with this covariance, both in the model's coordinates; as if it knew them.
    pub(crate) fn guessed(&self, target: &Target, u: &[f64], covariance: &Matrix) -> Found {
        let (_, mean) = self.inside(target, &self.coding.coded(u));
        let covariance = self.coding.coded_covariance(covariance);
        let error = Matrix::zeros(covariance.order());
        Found { coding: self.coding.clone(), centred: self.centred, mean, covariance, error, sharp: true }
    }

    fn public<'a>(&'a self, target: &'a Target, scores: &'a dyn ScoreModel) -> Public<'a> {
        Public { target, scores, coding: &self.coding, centred: self.centred > 0.0, whole: self.whole }
    }

    /// A coded point, moved into the parameter box, with its theta.
    fn inside(&self, target: &Target, at: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let at = self.coding.coded(&target.space.coordinates(&theta));
        (theta, at)
    }

    fn ask_score(&mut self, target: &Target, budget: &mut Allotment, at: &[f64], share: f64) -> Result<Query, SamplerError> {
        let scores = scores(target)?;
        let place = self.inside(target, at);
        let question = Question::new(scores.as_ref(), &self.coding, place, self.search.weight(), self.centred > 0.0);
        let kind = QueryKind::Gradient { parameters: question.theta.len() as u32 };
        let points = (question.theta.as_slice(), question.frame.as_slice());
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, points, share)?;
        let (query, asked) = question.ask(noise);
        self.asked.0 = Some(asked);
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
        let scales = information_scales(scores(target)?.as_ref(), &place.0);
        let kind = QueryKind::Curvature { parameters: place.0.len() as u32 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&place.0, &scales), share)?;
        let (query, asked) = AskedInformation::ask(place, scales, noise, chain);
        self.asked.1 = Some(asked);
        Ok(query)
    }

    /// What the latest stage taught.
    fn record(&mut self, target: &Target, asked_at: &[f64], left: f64) {
        let theta = |at: &[f64]| target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let last = self.search.is_done();
        let (mean, covariance) = match (self.search.located(), self.search.answer()) {
            (Some(located), _) if !last => (&located.mean, &located.covariance),
            (_, Some((_, fit))) => (&fit.mean, &fit.covariance),
            _ => return,
        };
        let (mean, sd) = self.shown(target, mean, covariance);
        self.stages.push(Stage { theta: theta(asked_at), share: self.left - left, mean, sd, last });
        self.left = left;
    }

    /// A mean and its sds as a stage's record has them.
    fn shown(&self, target: &Target, mean: &[f64], covariance: &Matrix) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(mean));
        (theta, roots(&self.coding.plain_covariance(covariance)))
    }
}

impl Way for ScoreWay {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        match self.search.ask().clone() {
            Ask::Stage { at, share, curvature } => {
                let information = self.ask_information(target, budget, (&at, share * curvature), 1)?;
                let score = self.ask_score(target, budget, &at, share * (1.0 - curvature))?;
                Ok(vec![score, information])
            }
            Ask::Score { at, share } => Ok(vec![self.ask_score(target, budget, &at, share)?]),
            Ask::Information { at, share, last } => {
                let share = if last { budget.left() } else { share };
                Ok(vec![self.ask_information(target, budget, (&at, share), 0)?])
            }
        }
    }

    fn absorb(&mut self, target: &Target, _round: &Round, totals: &Totals, budget: &Allotment) -> bool {
        let Ok(scores) = scores(target) else { return false };
        let asked = (self.asked.0.take(), self.asked.1.take());
        let mut by_query = totals.by_query();
        let score = asked.0.map(|asked| {
            let (score, noise) = asked.score(by_query.next().unwrap_or_default(), self.parties, self.centred);
            (asked.at().to_vec(), score, noise)
        });
        let information = asked.1.map(|asked| asked.information(by_query.next().unwrap_or_default(), self.parties, self.own));
        let Self { coding, search, .. } = self;
        let public = Public { target, scores: scores.as_ref(), coding, centred: self.centred > 0.0, whole: self.whole };
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
        let adequacy = Adequacy::of(stage, fit, &self.prior, &reach);
        let with = self.coding.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.coding.plain_covariance(&fit.without_noise).diagonal_entries();
        Some(Inference::new(self.stages.clone(), &with, &without, fit.definite).of_score_stages(&adequacy))
    }

    /// The likelihood is as it was but for the allowance for what a quadratic leaves out, which is that of the new fit.
    fn refit(&self, target: &Target, kept: &Kept) -> Result<Box<dyn Way>, RefitError> {
        if !kept.all {
            return Err(RefitError::DroppedFromScores);
        }
        let scores = scores(target)?;
        let prior = self.coding.prior(&GaussianPrior::of(&target.space));
        let (search, located) = self.search.under(prior.clone(), &self.public(target, scores.as_ref()));
        let mut way = Self { prior, search, ..self.clone() };
        let last = way.search.answer().map(|(_, fit)| (fit.mean.clone(), fit.covariance.clone()));
        let learnt = located.into_iter().map(|located| (located.mean, located.covariance)).chain(last);
        let shown: Vec<_> = learnt.map(|(mean, covariance)| self.shown(target, &mean, &covariance)).collect();
        way.stages.iter_mut().zip(shown).for_each(|(stage, (mean, sd))| (stage.mean, stage.sd) = (mean, sd));
        Ok(Box::new(way))
    }
}

/// The model's scores.
fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}

fn shares(spec: &JobSpec) -> Shares {
    match &spec.release.stages {
        None if spec.release.curvature_share.is_none() => Shares::Auto,
        None => Shares::Fixed { shares: ReleaseSpec::FIXED_SHARES.to_vec(), curvature: spec.release.curvature_share },
        Some(shares) => Shares::Fixed { shares: shares.clone(), curvature: spec.release.curvature_share },
    }
}
