//! The parser from the text of a job file to a valid job specification, with one module per table.

mod aggregation;
mod augmentation;
mod auto;
mod barker;
mod batch;
mod checks;
mod columns;
mod exp_family;
mod file;
mod hmc;
mod model;
mod naive_bayes;
mod ops;
mod other;
mod parameters;
mod plan;
mod privacy;
mod regression;
mod release;
mod sampler;
mod stochastic;
mod unused;
