//! Data augmentation: Ju, Awan, Gong & Rao, *Data Augmentation MCMC for Bayesian Inference from Privatized Data* (2022).
//!
//! Every party releases its statistic once, for the whole budget. All later steps are free of charge. Each chain imputes every
//! party's records: it proposes `x_r* ~ f(. | theta)`, and accepts by the change of the release's likelihood,
//! `log alpha = sum_j [2 (a_j - S_j) d_j - d_j²] / (2 s_j²)` for discrete Gaussian noise of scale s_j, released a_j, latent sum
//! S_j and change d_j, all integers. A law may propose a record that depends on the present one, too (Algorithm 2); the ratio then
//! has the law's and the proposal's densities. The chain then draws theta given the records. The target is the exact posterior given the noisy
//! release, including clamping and lattice.
//!
//! The acceptance rate of proposals from the model, averaged over data and release at stationarity, is 1 − TV between the noise and the noise shifted by one
//! record's change. It is at least `2 Phi(-mu / 2)` for a release of mu-GDP on a fine lattice.

mod chain;
mod conditional;
mod covariate_law;
mod ensemble;
mod expected;
mod law;
mod line_law;
mod linear_law;
mod logistic_law;
mod noise;
mod products;
mod records;
mod release;
mod state_machine;
mod table_law;
mod variates;

use crate::sampler::engine::{Engine, ErrorSource};
use chain::Sweep;
use conditional::Conditional;
use law::RecordLaw;
use noise::{Move, NoiseLaw, Residuals};
use records::Count;
use release::{PartyRelease, Release};
use variates::{beta, gamma};

pub(super) use expected::outlook;
pub(super) use state_machine::Augmentation;
pub(super) use variates::normal;

pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Release {
        note: "the same, exact in small studies; imputes every record in every sweep",
        refusable: false,
    },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    refit_obstacle: Some("imputes the records together with the parameters, under the job's own prior"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Augmentation::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
