//! The daemons as an operator sees them, in real processes: signals under load, metrics, logs, moves, renewals, upgrades.

mod closed_pipes;
mod doctor;
mod fair_turns;
mod forget;
mod logs;
mod long_log;
mod metrics;
mod moving;
mod one_analyst;
#[cfg(feature = "otlp")]
mod otlp;
mod reload;
mod renewal;
mod signals;
mod upgrade;

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");

/// Enrols a party of this name on these records without starting it.
fn enrol(cluster: &mut Cluster, name: &str, records: &[study::Record]) -> usize {
    cluster.enrol_study(name, records, 990.0)
}

/// Restarts the coordinator with its current configuration.
fn restart_coordinator(cluster: &mut Cluster) {
    cluster.signal_coordinator("TERM");
    assert_eq!(cluster.wait_coordinator_exit().code(), Some(0), "{}", cluster.log("coordinator"));
    cluster.start_coordinator();
}
