//! Contents of the logs: structured fields, and no values of records.

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};
use serde_json::Value;

use super::{EXE, enrol, restart_coordinator};

/// A value that appears only in a record: an age with many digits, and the same value scaled to [-1, 1] for models.
const ODD: f64 = 61.918_273_645;
const TRACES: [&str; 2] = ["918273645", "0.3972757"];

#[test]
fn no_line_at_any_level_holds_a_value_of_a_record() {
    let mut cluster = Cluster::new(EXE);
    cluster.rust_log = Some("trace");
    restart_coordinator(&mut cluster);
    let mut records = study::records(200, 5);
    records.iter_mut().step_by(3).for_each(|record| record[2] = ODD);
    let party = enrol(&mut cluster, "hospital-a", &records);
    cluster.start_party(party);
    let sampler = "chains = 1\ndraws = 60\nwarmup = 10\nseed = 3\nlocate_share = 0.05";
    let result = cluster.submit(&study::job(&["hospital-a"], sampler, "epsilon = 900\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "draws");
    cluster.signal_party(party, "TERM");
    assert!(cluster.wait_party_exit(party).success());
    let data = std::fs::read_to_string(cluster.path("hospital-a.csv")).expect("the data");
    assert!(data.contains(TRACES[0]));
    for daemon in ["hospital-a", "coordinator"] {
        let log = cluster.log(daemon);
        assert!(log.contains("TRACE") && log.lines().count() > 100, "{daemon} has no trace log: {log}");
        for trace in TRACES {
            let found = log.lines().find(|line| line.contains(trace));
            assert_eq!(found, None, "{daemon}");
        }
    }
}

/// Job ids and party names are fields of their own in every line about them, in both daemons.
#[test]
fn lines_about_a_job_or_a_party_name_them_in_fields() {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = "log = \"json\"";
    restart_coordinator(&mut cluster);
    // Lines of the first start are plain text.
    let before = cluster.log("coordinator").lines().take_while(|line| !line.starts_with('{')).count();
    let party = enrol(&mut cluster, "hospital-a", &study::records(100, 5));
    cluster.configure_party(party, "log = \"json\"");
    cluster.start_party(party);
    let sampler = "chains = 1\ndraws = 20\nwarmup = 10\nseed = 3\nlocate_share = 0.05";
    let result = cluster.submit(&study::job(&["hospital-a"], sampler, "epsilon = 900\ndelta = 1e-6"));
    let job = result["job"].as_str().expect("a job");
    until("the job's close", SOON, || cluster.log("hospital-a").contains("closed"));
    cluster.signal_party(party, "TERM");
    assert!(cluster.wait_party_exit(party).success());
    for (daemon, skip) in [("hospital-a", 0), ("coordinator", before)] {
        let (mut of_job, mut of_party) = (0, 0);
        for line in cluster.log(daemon).lines().skip(skip).filter(|line| line.starts_with('{')) {
            let line: Value = serde_json::from_str(line).expect("one JSON object per line");
            let message = line["message"].as_str().expect("a message");
            assert!(!message.contains(job), "the job's id belongs in a field: {line}");
            of_job += usize::from(line["job"] == job);
            of_party += usize::from(line["party"] == "hospital-a");
        }
        assert!(of_job >= 2 && of_party >= 2, "{daemon}: {}", cluster.log(daemon));
    }
}
