//! DP-HMC: Räisä, Koskela & Honkela, *Differentially Private Hamiltonian Monte Carlo* (2021, arXiv:2106.09376): `hmc` without friction.
//!
//! In the coordinates of [`super`], with momenta of variance 1, a step is a trajectory of `L` kicks by the parties' noisy gradients `g + e`,
//!
//! ```text
//! u_m = u + (h/2) p        p' = p + h (g(u_m) + e)        u' = u_m + (h/2) p'
//! ```
//!
//! and one penalty test at its end, on the whole log likelihood ratio between its two ends with the prior's, plus `(|p_0|² - |p_L|²)/2`. The momentum
//! is turned round at a rejection and drawn afresh from `N(0, I)` after every trajectory, so that nothing is left of the turn.
//!
//! Why this is exact: the way back, from `(u_L, -p_L)`, meets the same middles in the opposite order, as `u' - (h/2) p' = u_m`; there it has to
//! come from `-p'` to `-p`, which takes `-p + p' = h (g(u_m) + e')`, and so `e' = e`. The noise that takes a trajectory forward is, kick by
//! kick, the noise that takes it back: with any law of the noise, which may follow the middle, both have the same density given the
//! middles, and whatever stands for `g` may be any function of the middle. A kick and two drifts keep volume. Of the ratio of the densities
//! of a trajectory and of its way back only that of the ends is left, posterior and momenta, and the test is on that (the
//! paper's theorem on the noisy leapfrog). Its noise is independent of the kicks', as the penalty needs.
//!
//! What it costs beside [`super`]: a kick's noise warms the momenta by `h² v_j / 2` in each component, `d` of them, and no friction takes that
//! up: it is for the test to reject. The heat `x = L h² (v_1 + … + v_d)` of a trajectory rejects as noise of variance `x` on the log ratio does, so
//! gradients must have some `d` times less noise than those that friction cools; and the ratio is released whole. At the best of both an effective draw
//! takes some `10 d` times the budget (`law::price_of_a_draw`).
//!
//! Section 4 of the paper fixes the number of trajectories and the clips beforehand, and clips gradients and log ratios of each record; here both are held to
//! public bounds that nothing within the declared columns reaches, so the target is the posterior itself.
//!
//! | file | what it is |
//! |---|---|
//! | `law` | the kick, the acceptance, and what heat and noise leave of them |
//! | `settings` | step, noise and number of trajectories |
//! | `trajectory` | one chain |

pub(super) mod law;
mod settings;
mod trajectory;

pub(super) use settings::{planned, price_of_a_draw};
pub(super) use trajectory::Trajectory;

#[cfg(test)]
mod tests;
