//! What can be seen of a sampler from outside.

use super::{ClipWatch, Draw, Phase, Sampler};

impl Sampler {
    /// Draws made since the last call, chain by chain within each round.
    pub fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    /// What is known of an explicit clip; `None` without one.
    pub fn clip_watch(&self) -> Option<&ClipWatch> {
        self.clip_watch.as_ref()
    }

    /// What the present round is for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Share of proposals accepted in the present phase; 0 before the first decision.
    pub fn acceptance_rate(&self) -> f64 {
        let decisions = self.steps * self.chains.len() as u64;
        if decisions == 0 { 0.0 } else { self.accepted as f64 / decisions as f64 }
    }

    /// Proposal radii, one per direction of the moves, on the unconstrained scale; empty before the chains start.
    pub fn radii(&self) -> &[f64] {
        &self.frame.radii
    }

    /// Unit vectors along which one-direction moves go, once the warm-up has turned them away from the coordinates.
    pub fn directions(&self) -> Option<&[Vec<f64>]> {
        self.frame.directions.as_deref()
    }

    /// Proposal radii as a job file gives them, one per parameter on the unconstrained scale; `None` before the chains start, and
    /// where the moves were turned away from the coordinates.
    pub fn radii_by_parameter(&self) -> Option<Vec<f64>> {
        if self.frame.directions.is_some() || self.frame.radii.is_empty() {
            return None;
        }
        // The last of a simplex has no coordinate of its own: its radius is not used.
        let mut radii = vec![1.0; self.spec.dimension()];
        self.space.parameters.iter().zip(&self.frame.radii).for_each(|(p, r)| radii[*p] = *r);
        Some(radii)
    }
}
