//! Tests of the answer path, and the faults that they and the audit's tests plant in it.

use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Budget;
use conclave_privacy::pass::Threads;

use super::answerer::{ActiveJob, Answerer};
use super::open::Opening;
use crate::config::Policy;
use crate::data::Shard;
use crate::ledger::Ledger;
use crate::noise::Noise;
use conclave_party::meters::Meters;

pub(crate) mod answers;
mod choice;
mod concurrency;
mod consent;
pub(crate) mod faults;
mod hostile;
mod memory;
mod moments;
mod non_interference;
mod random_operations;
mod sampled;
mod sampled_records;
mod timing;
