//! `conclave demo`: three data owners, a coordinator and an analyst, as processes of their own on this machine.

mod children;
mod command;
mod folder;
mod next_steps;
mod options;
mod shards;
mod truth;

#[cfg(test)]
mod tests;

pub(crate) use command::run;
pub(crate) use options::DemoArgs;
