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
/// Effective draws below which correlations are not believed at all.
const LEAST_ESS: f64 = 2.0;
/// Least eigenvalue of a correlation matrix that is believed.
const LEAST_EIGENVALUE: f64 = 0.005;

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

    /// Takes the chains' coordinates at the end of a sweep; gives a new frame when it is time for one. `sd` holds each coordinate's sd
    /// given the others, as the search found it.
    pub(super) fn sweep<'a>(&mut self, chains: impl Iterator<Item = &'a [f64]>, sweeps: u64, sd: &[f64]) -> Option<Frame> {
        for (c, u) in chains.enumerate() {
            self.history.iter_mut().zip(u).for_each(|(coordinate, x)| coordinate[c].push(*x));
        }
        if !self.due(sweeps) {
            return None;
        }
        self.frame(sd)
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

    /// The principal axes of a posterior that has the partial correlations of the draws' later half and these sds given the others.
    ///
    /// Each correlation is drawn towards 0 by one standard error of its Fisher transform: a direction that is not known yet is
    /// not longer than a coordinate's own move.
    pub(super) fn frame(&self, sd: &[f64]) -> Option<Frame> {
        let d = self.history.len();
        let later: Vec<Vec<&[f64]>> =
            self.history.iter().map(|chains| chains.iter().map(|c| &c[c.len() / 2..]).collect()).collect();
        let summaries: Vec<diagnostics::Summary> = later.iter().map(|chains| diagnostics::summarise(chains)).collect();
        let sound = |s: &diagnostics::Summary| s.sd.is_finite() && s.sd > 0.0 && known(s.ess_bulk) >= LEAST_ESS;
        if sd.len() != d || !summaries.iter().all(sound) {
            return None;
        }
        let ess = summaries.iter().map(|s| known(s.ess_bulk)).fold(f64::INFINITY, f64::min);
        let correlation = |i: usize, j: usize| {
            let pairs = later[i].iter().zip(&later[j]).flat_map(|(a, b)| a.iter().zip(*b));
            let products = pairs.map(|(x, y)| (x - summaries[i].mean) * (y - summaries[j].mean));
            let count: usize = later[i].iter().map(|chain| chain.len()).sum();
            let r = products.sum::<f64>() / count as f64 / (summaries[i].sd * summaries[j].sd);
            shrunk(r, ess)
        };
        let matrix = square(d, |i, j| if i == j { 1.0 } else { correlation(i.min(j), i.max(j)) });
        let precision = {
            let pairs = positive(eigen::symmetric(matrix));
            square(d, |i, j| pairs.iter().map(|(value, v)| v[i] * v[j] / value).sum())
        };
        let partial = square(d, |i, j| precision[i][j] / (precision[i][i] * precision[j][j]).sqrt());
        let vectors = positive(eigen::symmetric(partial))
            .into_iter()
            .map(|(value, v)| v.iter().zip(sd).map(|(v, sd)| v * sd / value.sqrt()).collect())
            .collect();
        Some(Frame::along(self.kind, vectors))
    }
}

/// Effective draws of which a number is not a number are none.
fn known(ess: f64) -> f64 {
    if ess.is_nan() { 0.0 } else { ess }
}

fn square(d: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect()
}

fn positive(pairs: Vec<(f64, Vec<f64>)>) -> Vec<(f64, Vec<f64>)> {
    pairs.into_iter().map(|(value, v)| (value.max(LEAST_EIGENVALUE), v)).collect()
}

/// A correlation less one standard error of its Fisher transform, by `libm` as everything that a replay computes.
fn shrunk(r: f64, ess: f64) -> f64 {
    let z = libm::atanh(r.abs().min(0.999));
    libm::tanh((z - ess.sqrt().recip()).max(0.0)).copysign(r)
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
            let new = rotation.sweep(draws.iter().map(Vec::as_slice), sweep, &[0.19f64.sqrt(), 10.0 * 0.19f64.sqrt()]);
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

    /// Chains that move, of so few draws that their effective number is not a number, or that one coordinate's is not.
    #[test]
    fn too_few_moving_draws_turn_nothing() {
        let mut rng = ChaCha20Rng::seed_from_u64(10);
        for sweeps in 1..=6 {
            let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(sweeps), 2, 2);
            for sweep in 1..=sweeps {
                let draws: Vec<[f64; 2]> = (0..2)
                    .map(|_| {
                        let a: f64 = StandardNormal.sample(&mut rng);
                        [a, a + 0.1 * sweep as f64]
                    })
                    .collect();
                let new = rotation.sweep(draws.iter().map(|u| &u[..]), sweep, &[1.0, 1.0]);
                assert!(new.is_none(), "{sweep} of {sweeps}");
            }
            let later: Vec<&[f64]> = rotation.history[0].iter().map(|c| &c[c.len() / 2..]).collect();
            let summary = diagnostics::summarise(&later);
            // What is tested is the draws' number, not their standing still.
            assert!(sweeps < 4 || summary.sd > 0.0);
            assert!(summary.ess_bulk.is_nan(), "{sweeps}: {}", summary.ess_bulk);
        }
    }

    #[test]
    fn too_few_draws_turn_nothing() {
        let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(8), 2, 2);
        let still = [0.0, 1.0];
        assert!((1..=8).all(|sweep| rotation.sweep([&still[..], &still[..]].into_iter(), sweep, &[1.0, 1.0]).is_none()));
    }
}
