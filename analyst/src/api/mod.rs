//! The functions behind the commands, for programs that have Conclave within them: jobs, plans, rehearsals, and a coordinator's
//! jobs.
//!
//! Nothing here prints, asks, or listens to signals. Progress is passed to callbacks, objects are the JSON that the commands print
//! with `--json`, and draws are those of a run's store.

mod accounts;
mod client;
mod jobs;
mod progress;
mod rehearsals;
mod run;

pub use conclave_draws::{Draws, PhaseDraws};
pub use conclave_proto::error::{ErrorCode, Fault};

pub use crate::rehearse::{Table, Values};
pub use accounts::{account, account_subsampled, mu_of};
pub use client::{Client, Refit};
pub use jobs::{Planned, columns, completed, describe, from_formula, plan, predict, with_settings};
pub use rehearsals::{Party, Rehearsal, screen};
pub use run::Run;
