//! The parser from the text of a job file to a valid job specification, with one module per table.

mod aggregation;
mod auto;
mod batch;
mod checks;
mod columns;
mod file;
mod formula;
mod formula_terms;
mod life_table;
mod model;
mod naive_bayes;
mod other;
mod parameters;
mod plan;
mod privacy;
mod regression;
mod release;
mod sampler;
mod sites;
mod survival;
