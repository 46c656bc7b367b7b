//! Parameters by party: each party releases scores and information at points of its own, and a hierarchy joins them.
//!
//! Party i has `theta_i = (alpha_i, beta)`, with `alpha_i ~ N(mu, diag tau²)` and `beta` shared. Its releases give the factor
//! `g̃_i - H̃_i (theta_i - theta*_i) ~ N(0, W_i)` of the likelihood, and everything else is post-processing: the posterior of `tau` given
//! the factors, the rest integrated out, and then `(beta, mu)` and each `alpha_i`, which are Gaussian given it.
//!
//! | file | content |
//! |---|---|
//! | [`factor`] | a party's factor, in the model's coordinates |
//! | [`hierarchy`] | the posterior given the factors: of the sds, of the means and shared coefficients, of each party's own |
//! | `sd_walk` | draws of the sds, by slices |
//! | `site` | one party's search |
//! | `posterior` | draws of all parameters |
//! | `checks` | the report beside the draws |
//! | `sampler` | the sampler |

mod checks;
mod factor;
mod hierarchy;
mod posterior;
mod sampler;
mod sd_walk;
mod site;

pub(in crate::sampler) use sampler::ByParty;

#[cfg(test)]
mod tests;
