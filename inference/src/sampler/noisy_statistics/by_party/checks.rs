//! The report of a run beside its draws: checks at every party, and the noise's share of each parameter's variance.

use super::factor::Factor;
use super::hierarchy::Hierarchy;
use super::site::Site;
use crate::sampler::noisy_statistics::adequacy::{Figure, ScoreChecks};
use crate::sampler::noisy_statistics::answer::{Inference, Stage};
use conclave_common::job::JobSpec;

/// Noise of the released information, relative to it, above which the posterior's width without noise is not determined.
const MOST_NOISE: f64 = 1.0;

/// The state after the last release.
pub(super) struct Released<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) hierarchy: &'a Hierarchy,
    pub(super) sites: &'a [Site],
    pub(super) factors: &'a [Factor],
    /// Typical sds over the parties.
    pub(super) sds: &'a [f64],
}

impl Released<'_> {
    /// Returns the report; `None` before every party has released a stage.
    pub(super) fn inference(&self, stages: Vec<Stage>) -> Option<Inference> {
        let checks: Vec<(ScoreChecks, bool)> = self.sites.iter().map(Site::checks).collect::<Option<_>>()?;
        let free: Vec<Factor> = self.sites.iter().map(Site::factor_without_noise).collect::<Option<_>>()?;
        let known = checks.iter().all(|(check, definite)| *definite && check.rho.value <= MOST_NOISE);
        let (with, without) = (self.variances(self.factors), self.variances(&free));
        let worst = self.worst(&checks, &with);
        let mut inference = Inference::new(stages, &with, &without, known).with_score_checks(&worst).with_width_check();
        self.name_parties(&checks, &mut inference.reasons);
        for place in self.places_of_sds() {
            inference.noise_share[place] = None;
        }
        Some(inference)
    }

    /// Returns the variances of a draw's values given the typical sds; 1 for the sds themselves.
    fn variances(&self, factors: &[Factor]) -> Vec<f64> {
        let common = self.hierarchy.given(factors.iter(), self.sds).precision.inverse();
        let own: Vec<Vec<f64>> = factors.iter().map(|part| self.hierarchy.own(part, self.sds).variances(&common)).collect();
        let mut variances = common.diagonal_entries();
        for at in 0..self.sds.len() {
            variances.extend(own.iter().map(|own| own[at]));
            variances.push(1.0);
        }
        variances
    }

    fn places_of_sds(&self) -> impl Iterator<Item = usize> {
        let (order, step) = (self.hierarchy.prior().mean.len(), self.sites.len() + 1);
        (1..=self.sds.len()).map(move |at| order + at * step - 1)
    }

    /// Returns the largest figure of each check over the parties, given the variances of a draw's values. The prior's share is that of the
    /// means and the shared parameters, which come first.
    fn worst(&self, checks: &[(ScoreChecks, bool)], variances: &[f64]) -> ScoreChecks {
        let shares = variances.iter().zip(&self.hierarchy.prior().precision).map(|(v, p)| v * p);
        let share = shares.fold(0.0, f64::max);
        let largest = |figure: fn(&ScoreChecks) -> Option<Figure>| {
            checks.iter().filter_map(|(check, _)| figure(check)).reduce(|a, b| if b.value <= a.value { a } else { b })
        };
        let first = &checks[0].0;
        ScoreChecks {
            cubic: largest(|check| Some(check.cubic)).unwrap_or(first.cubic),
            rho: largest(|check| Some(check.rho)).unwrap_or(first.rho),
            prior_share: Figure { value: share, ..first.prior_share },
            own: largest(|check| check.own),
            own_width: largest(|check| check.own_width),
            leverage: largest(|check| check.leverage),
            observed: checks.iter().all(|(check, _)| check.observed),
        }
    }

    /// Adds the parties at which a check fails.
    fn name_parties(&self, checks: &[(ScoreChecks, bool)], reasons: &mut Vec<String>) {
        let fails = |check: &ScoreChecks| {
            let figures = [Some(check.cubic), Some(check.rho), check.own, check.own_width, check.leverage];
            figures.into_iter().flatten().any(|figure| !figure.holds())
        };
        let failing = checks.iter().zip(&self.spec.parties).filter(|((check, _), _)| fails(check));
        let names: Vec<&str> = failing.map(|(_, party)| party.as_str()).collect();
        if !names.is_empty() {
            let remedy = "give the job more budget, or refit it without them";
            reasons.push(format!("this holds for the releases of {}: {remedy}", names.join(", ")));
        }
    }
}
