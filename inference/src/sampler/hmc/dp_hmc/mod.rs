//! DP-HMC: Räisä, Koskela & Honkela, *Differentially Private Hamiltonian Monte Carlo* (2021, arXiv:2106.09376): `hmc` without
//! friction.
//!
//! In the coordinates of [`super`], with momenta of variance 1, a step is a trajectory of `L` kicks by the parties' noisy
//! gradients `g + e`,
//!
//! ```text
//! u_m = u + (h/2) p        p' = p + h (g(u_m) + e)        u' = u_m + (h/2) p'
//! ```
//!
//! and one penalty test at its end, on the whole log likelihood ratio between its two ends plus the prior's, plus
//! `(|p_0|² - |p_L|²)/2`. The momentum is reversed at a rejection and drawn afresh from `N(0, I)` after every trajectory, so that
//! the reversal has no effect.
//!
//! This is exact. The reverse trajectory, from `(u_L, -p_L)`, meets the same midpoints in the opposite order, because
//! `u' - (h/2) p' = u_m`. There it has to move from `-p'` to `-p`, which needs `-p + p' = h (g(u_m) + e')`, and so `e' = e`. The
//! noise of a trajectory is, kick by kick, the noise of its reverse. With any law of the noise, which may depend on the midpoint,
//! both have the same density given the midpoints, and `g` may be any function of the midpoint. A kick and two drifts preserve
//! volume. The ratio of the densities of a trajectory and its reverse is therefore that of the ends, posterior and momenta, and
//! this is what the test uses (the paper's theorem on the noisy leapfrog). Its noise is independent of the kicks', as the penalty
//! needs.
//!
//! Its cost compared with [`super`]: a kick's noise warms the momenta by `h² v_j / 2` in each of the `d` components. No friction
//! removes this heat, so the test has to reject it. The heat `x = L h² (v_1 + … + v_d)` of a trajectory rejects like noise of
//! variance `x` on the log ratio. So gradients need about `d` times less noise than those that friction cools; and the ratio is
//! released whole. With the best choice of both, an effective draw costs about `10 d` times as much (`law::price_of_a_draw`).
//!
//! Section 4 of the paper fixes the number of trajectories and the clips beforehand, and clips gradients and log ratios of each
//! record. Here public bounds limit both, and no record within the declared columns reaches them. The target is therefore the
//! exact posterior.
//!
//! | file | content |
//! |---|---|
//! | `law` | the kick, the acceptance, and the effect of heat and noise on it |
//! | `settings` | step, noise and number of trajectories |
//! | `trajectory` | one chain |

pub(super) mod law;
mod settings;
mod trajectory;

pub(super) use settings::{planned, price_of_a_draw};
pub(super) use trajectory::Trajectory;

#[cfg(test)]
mod tests;
