//! The law of the noise on a release, and what moving the latent records does to its likelihood.

/// The law of the noise on one released number; scales are in lattice units.
///
/// Its normaliser does not depend on the sum that the noise is on, so ratios of its mass function are exact
/// on the integers.
pub(super) trait NoiseLaw: Copy + PartialEq + Send + Sync + 'static {
    /// `log P(gap - delta) - log P(gap)`, times [`NoiseLaw::denominator`].
    fn numerator(self, gap: i128, delta: i64) -> i128;

    /// See [`NoiseLaw::numerator`]; above 0.
    fn denominator(self) -> f64;
}

/// Discrete Gaussian noise: `P(z)` proportional to `exp(-z² / (2 s²))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GaussianNoise {
    /// s, above 0.
    pub(super) scale: u64,
    /// Independent draws in the sum that is on the number, 1 of one party's: theirs is the law of one of scale `s sqrt(draws)` but for parts in
    /// `exp(-pi^2 s^2)`.
    pub(super) draws: u32,
}

impl NoiseLaw for GaussianNoise {
    #[inline(always)]
    fn numerator(self, gap: i128, delta: i64) -> i128 {
        let delta = i128::from(delta);
        // Below 2^65 in magnitude times below 2^52: it never wraps, and is not looked at whether it does.
        (2 * gap - delta).wrapping_mul(delta)
    }

    fn denominator(self) -> f64 {
        2.0 * f64::from(self.draws) * (self.scale as f64) * (self.scale as f64)
    }
}

/// Discrete Laplace noise, `P(z)` proportional to `exp(-|z| / b)`: no mechanism of the service, but that of the paper's tables.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaplaceNoise {
    /// b, above 0.
    pub(super) scale: u64,
}

#[cfg(test)]
impl NoiseLaw for LaplaceNoise {
    #[inline(always)]
    fn numerator(self, gap: i128, delta: i64) -> i128 {
        gap.abs() - (gap - i128::from(delta)).abs()
    }

    fn denominator(self) -> f64 {
        self.scale as f64
    }
}

/// How much one component of the sum over the latent records moves; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) component: u32,
    /// Lattice units.
    pub(super) delta: i64,
}

/// The most laws that the components of one release may be noised by.
const MOST_LAWS: usize = 4;

/// One party's release less the sum over its latent records, per component.
#[derive(Debug, Clone)]
pub(super) struct Residuals<N> {
    /// Released less latent sum, lattice units.
    gaps: Vec<i128>,
    /// Which of the laws each component's noise has.
    law: Vec<u8>,
    laws: [N; MOST_LAWS],
    /// Reciprocal of each law's denominator.
    inverse: [f64; MOST_LAWS],
}

impl<N: NoiseLaw> Residuals<N> {
    /// Of a release over no record: `answers` and their noise, component by component. `None` where they are
    /// of different lengths, or of more than [`MOST_LAWS`] laws.
    pub(super) fn new(answers: &[i64], noise: &[N]) -> Option<Self> {
        let mut known: Vec<N> = Vec::new();
        let mut law = Vec::with_capacity(noise.len());
        for one in noise {
            let at = known.iter().position(|other| other == one).unwrap_or(known.len());
            if at == known.len() {
                known.push(*one);
            }
            law.push(u8::try_from(at).ok()?);
        }
        let fits = answers.len() == noise.len() && known.len() <= MOST_LAWS;
        let first = *known.first()?;
        let laws = std::array::from_fn(|at| known.get(at).copied().unwrap_or(first));
        let inverse = laws.map(|one| one.denominator().recip());
        fits.then(|| Self { gaps: answers.iter().map(|a| i128::from(*a)).collect(), law, laws, inverse })
    }

    /// Log ratio of the release's likelihood after these moves to that before; each component once at most.
    ///
    /// Computed in integers up to one division for each law of noise.
    #[inline]
    pub(super) fn log_ratio(&self, moves: &[Move]) -> f64 {
        let mut numerators = [0_i128; MOST_LAWS];
        for step in moves {
            let component = step.component as usize;
            let law = usize::from(self.law[component]);
            numerators[law] += self.laws[law].numerator(self.gaps[component], step.delta);
        }
        let terms = numerators.iter().zip(&self.inverse).filter(|(numerator, _)| **numerator != 0);
        terms.map(|(numerator, inverse)| *numerator as f64 * inverse).sum()
    }

    /// Makes the moves.
    #[inline]
    pub(super) fn apply(&mut self, moves: &[Move]) {
        for step in moves {
            self.gaps[step.component as usize] -= i128::from(step.delta);
        }
    }
}

#[cfg(test)]
#[path = "tests/noise.rs"]
mod tests;
