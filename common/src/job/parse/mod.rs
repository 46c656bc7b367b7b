//! The parser turns the text of a job file into a valid job specification, a file for each table.

mod aggregation;
mod auto;
mod batch;
mod checks;
mod columns;
mod file;
mod model;
mod naive_bayes;
mod other;
mod parameters;
mod plan;
mod privacy;
mod regression;
mod release;
mod sampler;
