//! Tests of the demo's refusals and output.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use clap::ValueEnum;
use conclave_common::job::JobSpec;
use conclave_proto::error::ErrorCode;

use super::folder::job_toml;
use super::next_steps::with_truth;
use super::options::{Aggregation, DemoAlgorithm, DemoArgs, Durability, check};
use super::program::quoted;

pub(super) fn args(out: &std::path::Path) -> DemoArgs {
    DemoArgs {
        algorithm: super::options::DemoAlgorithm::Penalty,
        parties: 2,
        rows: 20,
        chains: Some(2),
        draws: Some(10),
        epsilon: 3.0,
        delta: 1e-6,
        aggregation: Aggregation::Local,
        colluders: None,
        durability: Durability::Strict,
        seed: 1,
        out: out.to_owned(),
        pages: false,
        json: true,
        interval: crate::interval::IntervalArgs::default(),
    }
}

#[test]
fn bad_arguments_are_refused_before_anything_is_made() {
    let good = args(std::path::Path::new("x"));
    check(&good).unwrap();
    for bad in [
        DemoArgs { colluders: Some(1), ..good.clone() },
        DemoArgs { aggregation: Aggregation::Secure, parties: 2, ..good.clone() },
        DemoArgs { aggregation: Aggregation::Secure, parties: 5, colluders: Some(4), ..good.clone() },
        DemoArgs { epsilon: 0.0, ..good.clone() },
        DemoArgs { epsilon: -1.0, ..good.clone() },
        DemoArgs { epsilon: f64::NAN, ..good.clone() },
        DemoArgs { epsilon: 1e9, ..good.clone() },
        DemoArgs { delta: 1.0, ..good.clone() },
    ] {
        assert_eq!(check(&bad).unwrap_err().code, ErrorCode::InvalidInput, "{bad:?}");
    }
}

/// Checks that each algorithm of the demo has a valid job.
#[test]
fn a_job_of_every_algorithm() {
    for algorithm in DemoAlgorithm::value_variants() {
        let parties = if *algorithm == DemoAlgorithm::Ops { 1 } else { 3 };
        let args = DemoArgs { algorithm: *algorithm, parties, draws: None, ..args(Path::new("x")) };
        check(&args).unwrap();
        let names: Vec<String> = (0..parties).map(|party| format!("hospital-{party}")).collect();
        let spec = JobSpec::parse(&job_toml(&args, &names)).unwrap();
        spec.check_new().unwrap();
        assert_eq!(spec.runs_dp_hmc(), *algorithm == DemoAlgorithm::DpHmc);
        assert!(*algorithm == DemoAlgorithm::Auto || spec.algorithm.as_str() == algorithm.name(), "{algorithm:?}");
    }
}

#[test]
fn paths_are_quoted_where_a_shell_needs_it() {
    assert_eq!(quoted(Path::new("a/b-c.toml")), "a/b-c.toml");
    assert_eq!(quoted(Path::new("my demo/it's")), "'my demo/it'\\''s'");
}

#[test]
fn the_truth_is_added_and_nothing_else_changes() {
    let json = with_truth(" {\"a\":0.1000000000000000055}\n", &[("dose", 0.4)]).unwrap();
    assert_eq!(json, "{\"a\":0.1000000000000000055,\"true\":{\"dose\":0.4}}");
    assert!(with_truth("", &[]).is_err());
}
