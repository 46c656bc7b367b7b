//! The sampler in one process, with real kernels, lattice and noise from fixed seeds: against exact posteriors, against plans,
//! and against the same runs of earlier builds.

mod barker;
mod calibration;
mod clip_watch;
mod demo_design;
mod exp_family;
mod gaussian_mean;
mod hmc;
mod hmc_calibration;
mod hmc_posteriors;
mod hmc_practice;
mod information;
mod locate;
mod masked;
mod plan;
mod posteriors;
mod quadratic_fit;
mod secure_gain;
