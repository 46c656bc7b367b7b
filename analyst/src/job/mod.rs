//! `conclave job`: writes a job file from a regression formula.

mod command;
mod overrides;
mod text;

pub(crate) use command::{FormulaArgs, run};
pub(crate) use overrides::Overrides;
pub(crate) use text::{Outline, job_file};
