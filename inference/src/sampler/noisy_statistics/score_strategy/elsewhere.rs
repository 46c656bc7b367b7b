//! A search as a basis of others: the location that it found, and its continuation at another place.

use super::{BLURRED, Found, ScoreStrategy, scores};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::adequacy::information_noise;
use crate::sampler::noisy_statistics::gaussian::{in_sds, most_in_sds};
use crate::sampler::noisy_statistics::guide::Guide;
use crate::sampler::noisy_statistics::information::Information;
use crate::sampler::noisy_statistics::landscape::{Landscape, information_sds};
use crate::sampler::noisy_statistics::last_stage::least_rho;
use crate::sampler::noisy_statistics::schedule::Shares;
use crate::sampler::noisy_statistics::scores::expected_covariance;
use crate::sampler::noisy_statistics::search::Search;
use crate::sampler::noisy_statistics::weighted::PlainOutlook;
use crate::sampler::target::Target;
use conclave_common::model::ScoreModel;

impl ScoreStrategy {
    /// Returns the location of the answer once everything is released.
    pub(crate) fn found(&self, target: &Target) -> Option<Found> {
        let (stage, fit) = self.search.answer().filter(|_| self.search.is_done())?;
        let (theta, mean) = self.inside(target, &fit.mean);
        let sharp = fit.definite && information_noise(stage, fit) <= BLURRED;
        let scores = scores(target).ok()?;
        let covariance = if sharp {
            fit.without_noise.clone()
        } else {
            expected_covariance(scores.as_ref(), &theta, self.records, &self.prior)
        };
        let (coding, centred, error) = (self.coding.clone(), self.centred, fit.noise.clone());
        Some(Found { coding, centred, mean, covariance, error, sharp, frame: None })
    }

    /// Returns the result of a search that knows the posterior's mean and covariance, both given in the model's coordinates.
    pub(crate) fn guessed(&self, target: &Target, u: &[f64], covariance: &Matrix) -> Found {
        let (_, mean) = self.inside(target, &self.coding.coded(u));
        let covariance = self.coding.coded_covariance(covariance);
        let error = Matrix::zeros(covariance.order());
        Found { coding: self.coding.clone(), centred: self.centred, mean, covariance, error, sharp: true, frame: None }
    }

    /// Returns the search started again at another place, where the posterior without noise has this covariance, both in the model's
    /// coordinates, with this share of the budget.
    pub(crate) fn restarted_at(&self, target: &Target, u: &[f64], covariance: &Matrix, left: f64) -> Option<Self> {
        let scores = scores(target).ok()?;
        let (_, start) = self.inside(target, &self.coding.coded(u));
        let weight = self.coding.coded_covariance(covariance);
        Some(Self { search: self.search_from((target, scores.as_ref()), (start, weight), left), left, ..self.clone() })
    }

    /// Returns the search continued at the location of another one, with the figures of [`Self::restarted_at`] and the covariance of the
    /// location's distance from the posterior's mean.
    pub(crate) fn led_to(&self, target: &Target, (u, error): (&[f64], &Matrix), covariance: &Matrix, left: f64) -> Option<Self> {
        let scores = scores(target).ok()?;
        let (theta, mean) = self.inside(target, &self.coding.coded(u));
        let [error, weight] = [error, covariance].map(|matrix| self.coding.coded_covariance(matrix));
        let public = self.public(target, scores.as_ref());
        let (sd, own_sd) = information_sds(&public, &mean);
        let guide = Guide { mean: mean.clone(), error, weight: weight.clone() };
        let matrix = guide.information(&self.prior.precision);
        // By this information only the next point is chosen.
        let information = Information { at: mean.clone(), matrix, sd, own_sd, form: scores.observed(&theta) };
        let search = self.search_from((target, scores.as_ref()), (mean, weight), left);
        Some(Self { search: search.led_by(guide, information, left, &public), left, ..self.clone() })
    }

    /// Returns a search that starts at a coded place, where the posterior's covariance is expected to be this.
    pub(super) fn search_from(
        &self,
        (target, scores): (&Target, &dyn ScoreModel),
        (start, weight): (Vec<f64>, Matrix),
        left: f64,
    ) -> Search {
        let records = self.records * target.spec.power;
        Search::new((Shares::Auto, left), self.prior.clone(), start, None, records, weight, &self.public(target, scores))
    }

    /// Predicts the answer of a search started there: its noise in posterior sds, the root mean square over the coefficients, and whether
    /// its information will be clear of its own noise.
    pub(crate) fn outlook_at(&self, target: &Target, u: &[f64], covariance: &Matrix, left: f64) -> Option<PlainOutlook> {
        /// Parts of the remaining budget that the last score has, about: the rest goes to a stage before it and to the information.
        const OF_LAST: f64 = 0.8;
        /// Predicted rho up to which the released one is expected to be within its limit of 2: the located covariance has noise.
        const LIKELY_RHO: f64 = 1.0;
        let scores = scores(target).ok()?;
        let (_, at) = self.inside(target, &self.coding.coded(u));
        let (public, weight) = (self.public(target, scores.as_ref()), self.coding.coded_covariance(covariance));
        let noise = public.score_noise(&at, &weight).scaled((OF_LAST * left).recip());
        let errors = self.coding.plain_covariance(&weight.times(&noise).times(&weight));
        let (noise, widest) = (in_sds(&errors, covariance), most_in_sds(&errors, covariance));
        Some(PlainOutlook { noise, widest, adequate: least_rho(&weight, left, information_sds(&public, &at)) <= LIKELY_RHO })
    }
}
