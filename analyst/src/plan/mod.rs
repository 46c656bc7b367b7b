//! `conclave plan`: forecasts a job's result before any budget is spent.

mod command;
mod plan_input;
mod text;
mod weights;

pub(crate) use command::{PlanArgs, plan, run};
