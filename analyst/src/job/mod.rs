//! `conclave job`: writes a job file from a regression formula.

mod command;
mod text;

pub(crate) use command::{FormulaArgs, run};
