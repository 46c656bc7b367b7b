//! The whole service as its users see it: real processes, real files, mutual TLS.

mod adult;
mod augmented;
mod bad_input;
mod bad_rows;
mod budget;
mod by_party;
mod consent;
mod demo_seeds;
mod draws;
mod extend;
mod files;
mod formulas;
mod hmc;
mod identities;
mod join;
mod kinds;
mod located;
mod masked;
mod masked_commands;
mod masked_room;
mod masked_units;
mod own_answer;
mod page_times;
mod pages;
mod papers;
mod predict;
mod refit;
mod released_once;
mod screening;
mod surfaces;
mod survival;
mod units;
mod verify;
mod watch;
mod weighted;
mod whole_run;

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");

/// Returns a set-up with the study's columns and no reply delay, which costs time here and has tests of its own.
fn setup<'a>(name: &'a str, data: &'a std::path::Path, epsilon: f64) -> PartySetup<'a> {
    let policy_extra =
        "reply_delay_ms = 0\nreleases = [\"ratio\", \"statistic\", \"score\", \"moments\", \"table\", \"remainder\", \"choice\"]";
    PartySetup { name, data, columns: &study::COLUMNS, epsilon, data_extra: "", budget_extra: "", policy_extra }
}

/// Starts attached parties of these names, each with `rows` records of the study and this epsilon.
fn cluster(names: &[&str], rows: usize, epsilon: f64) -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let data = study::csv(&study::records(rows, seed as u64));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        let party = cluster.enrol(&setup(name, &data, epsilon));
        cluster.start_party(party);
    }
    cluster
}

/// Enrols parties of these names one by one, without starting them.
fn cluster_of(names: &[&str], mut enrol: impl FnMut(&mut Cluster, &str, u64) -> usize) -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in (0..).zip(names) {
        enrol(&mut cluster, name, seed);
    }
    cluster
}

/// Returns a command's standard error.
fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
