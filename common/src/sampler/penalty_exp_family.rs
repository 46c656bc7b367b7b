//! Algorithm 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*: chains on noisy sufficient statistics, for any number
//! of owners.
//!
//! Each round and chain, every party releases a fresh noisy sum of every component of the statistic. With `S` their totals,
//! `d = n [log g(theta') - log g(theta)] + (phi(theta') - phi(theta)) . S` is an unbiased log likelihood ratio whose noise has variance
//! `N sum_j (phi_j(theta') - phi_j(theta))^2 (s g_j)^2` for N parties of noise scale s, components of lattice step `g_j`. A release costs
//! the same whatever the step, so its noise follows from the budget and the rounds that the job asks for, and the proposal's length from
//! the noise. The search for the mode costs one round: what follows it is a search on the released statistic, which costs nothing.

use super::{Holding, Query, SamplerError};
use crate::accounting::{Adjacency, PrivacyUnit};
use crate::job::{JobSpec, ProposalKind};
use crate::mechanism::{NoiseScale, QueryKind, STEP};
use crate::model::{ExponentialFamily, Model, StatisticGrid};

use super::space::Space;
use super::surrogate::{Mode, Surrogate};

/// Greatest radius of a guided one-coordinate move in posterior sds: without noise it mixes best near there.
const GUIDED: f64 = 1.0;
/// The same for a one-coordinate move of random sign, and for a joint step before division by √d.
const RANDOM: f64 = 2.2;

/// The family of a job and what its parties have released of it.
pub(super) struct Family {
    grids: Vec<StatisticGrid>,
    /// Records of all parties.
    records: f64,
    parties: f64,
    /// Per component, released totals over their noise's variance (lattice units), summed; and the sum of the weights.
    weighted: Vec<f64>,
    weight: f64,
}

impl Family {
    /// The family of a job over these holdings.
    ///
    /// # Errors
    /// A model without one; a party that does not protect rows against replacement, or holds more records than a sum can.
    pub(super) fn new(spec: &JobSpec, model: &dyn Model, holdings: &[Holding]) -> Result<Self, SamplerError> {
        let grids = StatisticGrid::of_family(family_of(model)?)?;
        let mut records = 0;
        for (party, holding) in spec.parties.iter().zip(holdings) {
            let n = holding.records().filter(|_| holding.unit() == PrivacyUnit::row(Adjacency::Replace));
            let n = n.ok_or_else(|| SamplerError::Protects { party: party.clone(), unit: holding.unit().to_string() })?;
            if !grids.iter().all(|grid| grid.sum_fits(n)) {
                return Err(SamplerError::TooManyRecords { party: party.clone() });
            }
            records += n;
        }
        let weighted = vec![0.0; grids.len()];
        Ok(Self { records: records as f64, parties: spec.parties.len() as f64, grids, weighted, weight: 0.0 })
    }

    /// Number of components.
    pub(super) fn components(&self) -> usize {
        self.grids.len()
    }

    /// One release of every component, in slots from `first` on.
    pub(super) fn queries(&self, first: usize, noise: NoiseScale) -> impl Iterator<Item = Query> {
        (0..self.components()).map(move |component| {
            let kind = QueryKind::Statistic { component: component as u32 };
            Query { chain: (first + component) as u32, kind, from: Vec::new(), to: Vec::new(), noise }
        })
    }

    /// The scale at which one release of every component costs `mu_squared`.
    pub(super) fn noise_for(&self, mu_squared: f64) -> Result<NoiseScale, SamplerError> {
        Ok(StatisticGrid::noise_for(&self.grids, mu_squared)?)
    }

    /// Takes note of one release of every component; `totals` are sums over the parties.
    pub(super) fn learn(&mut self, totals: &[i128], noise: NoiseScale) {
        let weight = noise.variance().recip();
        self.weighted.iter_mut().zip(totals).for_each(|(sum, total)| *sum += weight * *total as f64);
        self.weight += weight;
    }

    /// The noisy log likelihood ratio of a step and the variance of its noise; `totals` are of one release.
    pub(super) fn ratio(
        &self,
        model: &dyn Model,
        (from, to): (&[f64], &[f64]),
        totals: &[i128],
        noise: NoiseScale,
    ) -> (f64, f64) {
        let Ok(family) = family_of(model) else { return (f64::NAN, 0.0) };
        let (before, after) = (family.natural(from), family.natural(to));
        let mut ratio = self.records * (family.log_normaliser(to) - family.log_normaliser(from));
        let mut variance = 0.0;
        for (((before, after), grid), total) in before.iter().zip(&after).zip(&self.grids).zip(totals) {
            let difference = after - before;
            ratio += difference * (grid.step * *total as f64);
            let sd = difference * grid.step * noise.units() as f64;
            variance += sd * sd;
        }
        (ratio, self.parties * variance)
    }

    /// The mode of the posterior that everything released so far makes, and the curvature there.
    pub(super) fn mode(&self, spec: &JobSpec, space: &Space, model: &dyn Model) -> Result<Mode, SamplerError> {
        let family = family_of(model)?;
        let estimate = |(sum, grid): (&f64, &StatisticGrid)| grid.step * sum / self.weight;
        // A total of N parties at scale s has variance N s²; weights are in log-likelihood units, s STEP.
        let variance = |grid: &StatisticGrid| self.parties * (grid.step / STEP).powi(2) / self.weight;
        let surrogate = Surrogate {
            spec,
            space,
            family,
            records: self.records,
            statistics: self.weighted.iter().zip(&self.grids).map(estimate).collect(),
            variances: self.grids.iter().map(variance).collect(),
        };
        Ok(surrogate.mode())
    }

    /// Radii at which the posterior is well explored and the noise of a ratio is no more than the proposal is good for.
    pub(super) fn radii(&self, spec: &JobSpec, space: &Space, model: &dyn Model, mode: &Mode) -> Vec<f64> {
        let kind = spec.sampler.proposal;
        let most_noise = kind.total_noise_sd();
        // Noise sd of a ratio per unit of each coordinate, near the mode.
        let slope = |j: usize| {
            let width = 0.1 * mode.sd[j];
            let mut to = mode.u.clone();
            to[j] = if space.boxes[j].contains(to[j] + width) { to[j] + width } else { to[j] - width };
            let zeros = vec![0; self.components()];
            let (from, to) = (space.theta_inside(spec, &mode.u), space.theta_inside(spec, &to));
            self.ratio(model, (&from, &to), &zeros, spec.privacy.noise).1.sqrt() / width
        };
        let slopes: Vec<f64> = (0..mode.sd.len()).map(slope).collect();
        let half = |j: usize| (space.boxes[j].max - space.boxes[j].min) / 2.0;
        let one = |most: f64| -> Vec<f64> {
            let radius = |(j, (sd, slope)): (usize, (&f64, &f64))| (most * sd).min(most_noise / slope).min(half(j));
            mode.sd.iter().zip(&slopes).enumerate().map(radius).collect()
        };
        match kind {
            ProposalKind::Guided => one(GUIDED),
            ProposalKind::Componentwise => one(RANDOM),
            ProposalKind::RandomWalk | ProposalKind::TruncatedWalk => {
                let noise = mode.sd.iter().zip(&slopes).map(|(sd, slope)| (sd * slope).powi(2)).sum::<f64>().sqrt();
                let factor = (RANDOM / (mode.sd.len() as f64).sqrt()).min(most_noise / noise);
                mode.sd.iter().enumerate().map(|(j, sd)| (factor * sd).min(half(j))).collect()
            }
        }
    }
}

fn family_of(model: &dyn Model) -> Result<&dyn ExponentialFamily, SamplerError> {
    model.exponential_family().ok_or(SamplerError::NoFamily)
}
