//! From search to warm-up to kept draws: when the sampler enters a phase, and what it does there first.

use super::chain::Chain;
use super::locate::Purpose;
use super::proposal::Frame;
use super::{Phase, Query, Sampler, SamplerError, Stage, warmup};
use crate::job::Radius;
use crate::mechanism::NoiseScale;

/// Squared ratio of the starting values' spread to the posterior's.
const START_VARIANCE: f64 = 2.0;

impl Sampler {
    /// Algorithm 3's search: one release, then a look around on what it says.
    pub(super) fn settle_on_statistic(
        &mut self,
        purpose: Purpose,
        noise: NoiseScale,
        totals: &[i128],
    ) -> Result<(), SamplerError> {
        if let Some(family) = &mut self.family {
            family.learn(totals, noise);
        }
        let Some(family) = &self.family else { return Ok(()) };
        let mode = family.mode(&self.spec, &self.space, self.model.as_ref())?;
        let radii = match &self.spec.sampler.radius {
            Radius::Fixed(r) => self.fixed(r),
            Radius::Auto => family.radii(&self.spec, &self.space, self.model.as_ref(), &mode),
        };
        match (purpose, self.spec.sampler.start.clone()) {
            (Purpose::Curvature, Some(start)) => self.start_chains(self.space.coordinates(&start), None, radii),
            _ => self.start_chains(mode.u, Some((mode.sd, mode.error_sd)), radii),
        }
        Ok(())
    }

    /// Decides every chain that proposed, each on its own release of the statistic.
    pub(super) fn decide_on_statistics(&mut self, queries: &[Query], totals: &[i128]) {
        let Some(family) = &mut self.family else { return };
        let (components, noise) = (family.components(), self.spec.privacy.noise);
        for (asked, totals) in queries.chunks(components).zip(totals.chunks(components)) {
            let chain = &mut self.chains[asked[0].chain as usize / components];
            let Some(step) = chain.step() else { continue };
            let (ratio, variance) = family.ratio(self.model.as_ref(), step, totals, noise);
            family.learn(totals, noise);
            chain.decide(&self.spec, &self.space, ratio, variance);
        }
    }

    /// Books the step that every chain has just made and moves to the next phase where it is due.
    pub(super) fn step_done(&mut self) {
        self.steps += 1;
        let warmup = self.phase == Phase::Warmup;
        for chain in &mut self.chains {
            let draw = chain.draw(warmup, self.iteration.saturating_sub(1));
            self.accepted += u64::from(draw.accepted);
            if warmup {
                self.warmup.push(&draw);
            }
            self.draws.push(draw);
        }
        if warmup {
            self.turn();
        }
        if warmup && self.warmup.over(self.steps) {
            self.enter(Phase::Sampling);
        } else if warmup {
            self.measure_anew();
        }
    }

    /// Turns the moves into the axes of the warm-up's draws, when that is asked for and due.
    fn turn(&mut self) {
        let dimension = self.space.dimension() as u64;
        let Some(rotation) = self.rotation.as_mut().filter(|_| self.steps.is_multiple_of(dimension)) else { return };
        if let Some(frame) = rotation.sweep(self.chains.iter().map(Chain::coordinates), self.steps / dimension, &self.sd) {
            self.frame = frame;
        }
    }

    /// Measures the radii again around where the chains are now, when that is due: a given start may have been far away.
    fn measure_anew(&mut self) {
        let dimension = self.space.dimension();
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.purpose == Purpose::Curvature) else { return };
        if !warmup::remeasures(self.spec.sampler.warmup, dimension, self.steps) {
            return;
        }
        let mut mean = vec![0.0; dimension];
        for chain in &self.chains {
            mean.iter_mut().zip(chain.coordinates()).for_each(|(m, x)| *m += x / self.chains.len() as f64);
        }
        self.stage = Stage::Locate(plan.search(&self.spec, &self.space, self.model.as_ref()).at(mean).into());
    }

    pub(super) fn start_chains(&mut self, centre: Vec<f64>, spread: Option<(Vec<f64>, Vec<f64>)>, radii: Vec<f64>) {
        self.chains = (0..self.spec.sampler.chains)
            .map(|id| {
                let mut chain = Chain::new(&self.spec, &self.space, id, centre.clone());
                if let Some((sd, error_sd)) = &spread {
                    // The search's own error widens the starts, so that R-hat can show a search that ended far away.
                    let widths: Vec<f64> =
                        sd.iter().zip(error_sd).map(|(s, e)| (START_VARIANCE * s * s + e * e).sqrt()).collect();
                    chain.disperse(&self.spec, &self.space, &widths);
                }
                chain
            })
            .collect();
        self.begin(radii);
    }

    /// Starts each chain at its own state.
    pub(super) fn continue_chains(&mut self, starts: &[Vec<f64>], radii: Vec<f64>) {
        self.chains = (0..).zip(starts).map(|(id, theta)| Chain::at(&self.spec, &self.space, id, theta.clone())).collect();
        self.begin(radii);
    }

    fn begin(&mut self, radii: Vec<f64>) {
        self.frame = Frame::axes(radii);
        self.stage = Stage::Chains;
        let phase = if self.warmup.over(0) { Phase::Sampling } else { Phase::Warmup };
        self.enter(phase);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.steps = 0;
        self.accepted = 0;
    }
}
