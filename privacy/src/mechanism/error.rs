//! Errors of the mechanism, each of which names the refused public constant.

/// The reason why a constant of the mechanism was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MechanismError {
    /// The noise standard deviation is not finite and positive, or outside the range of the lattice.
    #[error("noise standard deviation {0} is not usable: give a number from 2^-12 (about 0.000244) to 2^18 (262144)")]
    NoiseSd(f64),
    /// The noise scale in lattice units is not a multiple of 2^16 between 2^20 and 2^50.
    #[error("noise scale {0} is not usable: it must be a multiple of 65536 from 2^20 to 2^50 lattice units")]
    NoiseUnits(u64),
    /// The clip is not between 1 and 2^50 lattice units.
    #[error("clip {0} is not usable: give a number from 2^-32 to 2^18 (262144) log-likelihood units per record")]
    Clip(f64),
    /// The model has no public bound for this step and the job has no clip.
    #[error(
        "the model has no finite public bound on one record's log ratio for this step (bound {0}) and the job sets no clip: set privacy.clip, or bounds for every column"
    )]
    Unbounded(f64),
    /// The public bound exceeds 2^50 lattice units.
    #[error("the public bound {0} on one record's log ratio exceeds 262144: set privacy.clip, or narrow the parameters' box")]
    TooWide(f64),
    /// A component of a sufficient statistic has no usable range.
    #[error(
        "the range of a statistic, {0} to {1}, does not fit the lattice: it must be finite, and not far from 0 compared with its width"
    )]
    Range(f64, f64),
}
