//! Survival times with a piecewise constant hazard: the piecewise exponential model.
//!
//! A record with predictors `x` has the hazard `exp(h_k + x'b)` in interval `k`, one of the intervals between public cuts. It is
//! observed from its entry, 0 without one, up to its time. With `d_k` equal to 1 in the interval of its event and 0 elsewhere, and with
//! `L_k` its cumulative hazard in interval `k`, `log p = sum_k d_k (h_k + x'b) - L_k`. Source: Holford, *The analysis of rates and of
//! survivorship using log-linear models*, Biometrics 36 (1980). With one interval it is the exponential model. With many, and the `h_k` at their
//! maximum, it is Breslow's partial likelihood on the cuts.
//!
//! # The cap
//!
//! The score `(d_k - L_k)_k, (d - L) x` is as large as a record's cumulative hazard `L` may be within its declared columns, 20 to 40 at
//! usual bounds, although no record is ever observed for so long. A release at a point therefore ends each record's follow-up where its cumulative
//! hazard *at that public point* reaches the cap `c`, counted from its entry. An event beyond counts as none. This is censoring that is known
//! beforehand: it depends on the predictors and the public point alone, so the shortened record has the same model, and its score
//! has the expectation 0 at the truth, whatever the point. Then `|d - L| <= max(1, c)`.
//!
//! # Information
//!
//! With `v_k = (e_k, x)`, the records' information at a point is `sum_k L_k v_k v_k'`, and `sum_k d_k v_k v_k'` has the expectation of the information
//! at the truth, whatever the point. Their mean is released. Along the path from the point to the answer, the score falls by the integral of the
//! information, which the trapezoidal rule takes from the two ends. A record's trace is at most `(1 + c) / 2` times `1 + |x|^2`.
//!
//! | file | content |
//! |---|---|
//! | `intervals` | the intervals, and a record's follow-up in each |
//! | `kernels` | the kernels of the score and of the information |
//! | `extremes` | the scores of extreme records |
//! | `piecewise` | intervals, linear predictor and cap |
//! | `model`, `scores` | the interfaces of the model and of its scores |

mod extremes;
mod intervals;
mod kernels;
mod model;
mod piecewise;
mod scores;

pub(super) use intervals::TIE;
pub(super) use piecewise::PiecewiseModel;

#[cfg(test)]
mod tests;
