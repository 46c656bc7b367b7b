//! Fixtures that the tests of this crate and of the crates above it share.
#![allow(clippy::unwrap_used)]

pub mod blocks;
pub mod life;

use std::path::{Path, PathBuf};

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Budget, Honest, Priced};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::ModelData;
use conclave_proto::v1;
use sha2::{Digest as _, Sha256};

use crate::config::Policy;
use crate::data::{BadRows, DataConfig, Format, Memory};
use crate::ledger::{Digest, JobEntry, QueryKey};

/// The id of the job that tests open.
pub const JOB: &str = "6f1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01";

/// A job that estimates a mean.
pub const MEAN_TOML: &str = include_str!("../tests/jobs/mean.toml");

/// Returns a masked job of parties `h-0`, `h-1` and so on.
pub fn masked_toml(parties: usize, colluders: u32) -> String {
    let names: Vec<String> = (0..parties).map(|i| format!("\"h-{i}\"")).collect();
    let mean = MEAN_TOML.replace("parties = [\"hospital-a\"]", &format!("parties = [{}]", names.join(", ")));
    format!("{mean}\n[aggregation]\nmode = \"secure\"\ncolluders = {colluders}\n")
}

/// Returns the budget that tests spend: epsilon 8 at delta 1e-6.
pub fn budget() -> Budget {
    Budget::new(8.0, 1e-6).unwrap()
}

/// Enters a job of five records under a cap.
pub fn entry(job: &str, cap: Budget) -> JobEntry<'_> {
    JobEntry {
        job,
        analyst: "alice",
        spec_digest: &[1; 32],
        spec_toml: "text",
        cap,
        records: 5,
        room: None,
        honest: Honest::ALONE,
        approval: None,
    }
}

/// Prices a ratio of sensitivity `k_t`, in lattice units, at noise of standard deviation 1.
pub fn key(chain: u32, content: u8, k_t: u64) -> QueryKey {
    QueryKey {
        chain,
        attempt: 0,
        digest: Digest([content; 32]),
        theta: [content; 16],
        theta_next: [content; 16],
        priced: Priced::new(
            QueryKind::Ratio,
            Sensitivity::from_units(k_t).unwrap(),
            NoiseScale::from_sd(1.0).unwrap(),
            Honest::ALONE,
        ),
        block: None,
    }
}

/// Returns a sum over no records.
pub fn no_sum() -> LatticeSum {
    let spec = JobSpec::parse(MEAN_TOML).unwrap();
    spec.build_model().lattice_sum(&ModelData::default(), &[0.0], &[0.1], Sensitivity::from_units(5).unwrap())
}

/// Writes a file into a folder and returns its path.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Describes a file of records, a row each.
pub fn data(path: PathBuf, bad_rows: BadRows) -> DataConfig {
    DataConfig {
        snapshot: path.parent().unwrap_or(Path::new(".")).to_owned(),
        path,
        format: Format::default(),
        bad_rows,
        text: Vec::new(),
        person: None,
        unit: conclave_privacy::accounting::PrivacyUnit::default(),
        memory: Memory::default(),
    }
}

/// Returns a policy that opens every job and holds back no reply.
pub fn open_policy() -> Policy {
    Policy { approve: crate::config::Approve::Automatic, reply_delay: crate::config::ReplyDelay::Off, ..Policy::default() }
}

/// Asks to open the job [`JOB`] of this text.
pub fn open_request(toml: &str) -> v1::OpenJob {
    v1::OpenJob {
        job: JOB.into(),
        analyst: "alice".into(),
        spec_toml: toml.into(),
        spec_digest: Sha256::digest(toml.as_bytes()).to_vec(),
        submission: None,
    }
}

/// Asks the job [`JOB`] for a ratio per step: a chain and where it goes from and to.
pub fn query(iteration: u64, steps: &[(u32, f64, f64)]) -> v1::Query {
    let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
    let proposals = steps
        .iter()
        .map(|(chain, from, to)| v1::Proposal { chain: *chain, from: vec![*from], to: vec![*to], noise_scale, kind: 0 })
        .collect();
    v1::Query { job: JOB.into(), iteration, proposals, attempt: 0 }
}
