//! `conclave predict`: expected outcomes, contrasts and average marginal effects from a finished job's draws.

mod answer;
mod command;
mod csv_file;
mod input;
mod shown;
mod structured;
#[cfg(test)]
mod tests;

pub(crate) use answer::Request;
pub(crate) use command::{PredictArgs, predicted, run};
