//! Tests of data augmentation as a whole: exact posteriors, calibration, the paper's experiment, the state machine.

mod calibration;
mod exact_posteriors;
mod fixtures;
mod ju_counts;
mod ju_figures;
mod ju_linear;
mod ju_log_linear;
mod linear;
mod state_machine;
