//! Hidden samples of units and the binomial counts behind them.

#![allow(clippy::unwrap_used)]

mod binomial_table;
mod holds;
mod poisson_sampling;
