//! Turning the chains' moves into the posterior's principal axes, from the chains' own draws in the warm-up.
//!
//! Draws are functions of released values, so using them costs nothing. Moves along principal axes are worth their price where
//! coordinates are correlated: along its weak direction a posterior is wider than any coordinate given the others.

use super::eigen;
use super::proposal::Frame;
use crate::diagnostics;
use crate::job::{ProposalKind, Warmup};

/// First look in a warm-up of unknown length, in sweeps; then again and again after half as many more.
const FIRST_LOOK: u64 = 30;
/// Effective draws per coordinate below which correlations are not believed at all.
const LEAST_ESS: f64 = 4.0;

/// Collects the coordinates of all chains, one set a sweep.
pub(super) struct Rotation {
    kind: ProposalKind,
    rule: Warmup,
    /// `history[coordinate][chain][sweep]`.
    history: Vec<Vec<Vec<f64>>>,
    next_look: u64,
}

impl Rotation {
    pub(super) fn new(kind: ProposalKind, rule: Warmup, dimension: usize, chains: usize) -> Self {
        Self { kind, rule, history: vec![vec![Vec::new(); chains]; dimension], next_look: FIRST_LOOK }
    }

    /// Takes the chains' coordinates at the end of a sweep; gives a new frame when it is time for one.
    pub(super) fn sweep<'a>(&mut self, chains: impl Iterator<Item = &'a [f64]>, sweeps: u64) -> Option<Frame> {
        for (c, u) in chains.enumerate() {
            self.history.iter_mut().zip(u).for_each(|(coordinate, x)| coordinate[c].push(*x));
        }
        if !self.due(sweeps) {
            return None;
        }
        self.frame()
    }

    fn due(&mut self, sweeps: u64) -> bool {
        match self.rule {
            Warmup::Sweeps(n) => [n / 4, n / 2, n - n / 4, n].contains(&sweeps),
            Warmup::UntilRhat { .. } => {
                let due = sweeps >= self.next_look;
                if due {
                    self.next_look = sweeps + sweeps / 2;
                }
                due
            }
        }
    }

    /// The principal axes of the draws of the later half, in units of each coordinate's sd; correlations are shrunk by how few
    /// effective draws there are.
    fn frame(&self) -> Option<Frame> {
        let d = self.history.len();
        let later: Vec<Vec<&[f64]>> =
            self.history.iter().map(|chains| chains.iter().map(|c| &c[c.len() / 2..]).collect()).collect();
        let summaries: Vec<diagnostics::Summary> = later.iter().map(|chains| diagnostics::summarise(chains)).collect();
        let ess = summaries.iter().map(|s| s.ess_bulk).fold(f64::INFINITY, f64::min);
        let sound = summaries.iter().all(|s| s.sd.is_finite() && s.sd > 0.0);
        // NaN, of chains that never moved, is not enough either.
        if !sound || ess.is_nan() || ess < LEAST_ESS * d as f64 {
            return None;
        }
        let shrink = ess / (ess + d as f64 + 1.0);
        let correlation = |i: usize, j: usize| {
            let mut sum = 0.0;
            let mut count = 0.0;
            for (a, b) in later[i].iter().zip(&later[j]) {
                for (x, y) in a.iter().zip(*b) {
                    sum += (x - summaries[i].mean) * (y - summaries[j].mean);
                    count += 1.0;
                }
            }
            shrink * sum / count / (summaries[i].sd * summaries[j].sd)
        };
        let matrix: Vec<Vec<f64>> =
            (0..d).map(|i| (0..d).map(|j| if i == j { 1.0 } else { correlation(i.min(j), i.max(j)) }).collect()).collect();
        let vectors = eigen::symmetric(matrix)
            .into_iter()
            .map(|(value, vector)| {
                let length = value.max(1e-6).sqrt();
                vector.iter().zip(&summaries).map(|(v, s)| length * v * s.sd).collect()
            })
            .collect();
        Some(Frame::along(self.kind, vectors))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Two coordinates of correlation −0.9 and sds 1 and 10: the directions are conjugate and as long as the posterior along them.
    #[test]
    fn the_frame_is_the_draws_own() {
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(400), 2, 4);
        let mut frame = None;
        for sweep in 1..=400 {
            let draws: Vec<Vec<f64>> = (0..4)
                .map(|_| {
                    let (a, b): (f64, f64) = (StandardNormal.sample(&mut rng), StandardNormal.sample(&mut rng));
                    vec![a, 10.0 * (-0.9 * a + (1.0f64 - 0.81).sqrt() * b)]
                })
                .collect();
            let new = rotation.sweep(draws.iter().map(Vec::as_slice), sweep);
            assert_eq!(new.is_some(), [100, 200, 300, 400].contains(&sweep), "{sweep}");
            frame = new.or(frame);
        }
        let frame = frame.expect("four of them");
        let steps: Vec<Vec<f64>> = frame
            .directions
            .expect("turned")
            .iter()
            .zip(&frame.radii)
            .map(|(v, r)| v.iter().map(|x| x * r / 0.44).collect())
            .collect();
        // Step' Σ⁻¹ step is 1 for each and 0 between them; 800 draws know it to a few percent.
        let (aa, ab, bb) = (1.0 / 0.19, 0.09 / 0.19, 0.01 / 0.19);
        let form = |x: &[f64], y: &[f64]| aa * x[0] * y[0] + ab * (x[0] * y[1] + x[1] * y[0]) + bb * x[1] * y[1];
        for i in 0..2 {
            for j in 0..2 {
                let exact = f64::from(u8::from(i == j));
                assert!((form(&steps[i], &steps[j]) - exact).abs() < 0.2, "{i} {j}: {}", form(&steps[i], &steps[j]));
            }
        }
    }

    #[test]
    fn too_few_draws_turn_nothing() {
        let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(8), 2, 2);
        let still = [0.0, 1.0];
        assert!((1..=8).all(|sweep| rotation.sweep([&still[..], &still[..]].into_iter(), sweep).is_none()));
    }
}
