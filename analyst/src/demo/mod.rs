//! `conclave demo`: three data owners, a coordinator and an analyst, each in its own process on this machine.

mod children;
mod command;
mod folder;
mod next_steps;
mod options;
mod program;
mod shards;
mod truth;

#[cfg(test)]
mod tests;

pub(crate) use command::run;
pub(crate) use options::DemoArgs;
pub(crate) use program::start_children_by;
