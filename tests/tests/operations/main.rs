//! The daemons as whoever runs them meets them: signals under load, metrics, logs. Real processes.

mod logs;
mod metrics;
mod signals;

use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
/// For what takes a moment; on a busy machine, a long one.
const SOON: Duration = Duration::from_secs(60);

/// A party of this name on these records, enrolled and not started.
fn enrol(cluster: &mut Cluster, name: &str, records: &[study::Record]) -> usize {
    cluster.enrol_study(name, records, 990.0)
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops the coordinator and starts it again, on what is set by now.
fn restart_coordinator(cluster: &mut Cluster) {
    cluster.signal_coordinator("TERM");
    assert_eq!(cluster.coordinator_ends().code(), Some(0), "{}", cluster.log("coordinator"));
    cluster.start_coordinator();
}
