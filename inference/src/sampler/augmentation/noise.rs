//! The law of the noise on a release, and the change of its likelihood when latent records move.

/// The law of the noise on one released number; scales are in lattice units.
///
/// Its normaliser does not depend on the sum that the noise is added to, so ratios of its mass function are exact on the
/// integers.
pub(super) trait NoiseLaw: Copy + PartialEq + Send + Sync + 'static {
    /// Returns `log P(gap - delta) - log P(gap)`, times [`NoiseLaw::denominator`].
    fn numerator(self, gap: i128, delta: i64) -> i128;

    /// Returns the denominator of [`NoiseLaw::numerator`]; above 0.
    fn denominator(self) -> f64;
}

/// Discrete Gaussian noise: `P(z)` proportional to `exp(-z² / (2 s²))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GaussianNoise {
    /// s, above 0.
    pub(super) scale: u64,
    /// Number of independent draws in the noise; 1 for a single party. Their sum has the law of one draw of scale `s sqrt(draws)`
    /// up to terms of order `exp(-pi^2 s^2)`.
    pub(super) draws: u32,
}

impl NoiseLaw for GaussianNoise {
    #[inline(always)]
    fn numerator(self, gap: i128, delta: i64) -> i128 {
        let delta = i128::from(delta);
        // Below 2^65 in magnitude times below 2^52: it never wraps, so there is no overflow check.
        (2 * gap - delta).wrapping_mul(delta)
    }

    fn denominator(self) -> f64 {
        2.0 * f64::from(self.draws) * (self.scale as f64) * (self.scale as f64)
    }
}

/// Discrete Laplace noise, `P(z)` proportional to `exp(-|z| / b)`: the mechanism of the paper's tables, which the service does
/// not use.
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

/// The change of one component of the sum over the latent records; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) component: u32,
    /// Change in lattice units.
    pub(super) delta: i64,
}

impl Move {
    /// Adds a change of a component, unless it is 0.
    #[inline]
    pub(super) fn push(component: u32, delta: i64, moves: &mut Vec<Self>) {
        if delta != 0 {
            moves.push(Self { component, delta });
        }
    }
}

/// Maximum number of different noise laws in one release.
const MOST_LAWS: usize = 4;

/// One party's release minus the sum over its latent records, per component.
#[derive(Debug, Clone)]
pub(super) struct Residuals<N> {
    /// Release minus latent sum, in lattice units.
    gaps: Vec<i128>,
    /// Index of the noise law of each component.
    law: Vec<u8>,
    laws: [N; MOST_LAWS],
    /// Reciprocal of each law's denominator.
    inverse: [f64; MOST_LAWS],
}

impl<N: NoiseLaw> Residuals<N> {
    /// Builds the residuals before any latent record from `answers` and their noise, component by component. Returns `None` if
    /// their lengths differ or there are more than [`MOST_LAWS`] laws.
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

    /// Returns the log ratio of the release's likelihood after these moves to that before; each component may occur once.
    ///
    /// The computation is in integers up to one division per noise law.
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
