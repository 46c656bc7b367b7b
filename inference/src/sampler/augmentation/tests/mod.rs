//! Tests of data augmentation as a whole: exact posteriors, calibration, the paper's experiment, the state machine.

mod calibration;
mod exact_posteriors;
mod fixtures;
mod importance;
mod ju_counts;
mod ju_figures;
mod ju_linear;
mod ju_log_linear;
mod ju_logistic;
mod linear;
mod logistic;
mod ranks;
mod state_machine;
