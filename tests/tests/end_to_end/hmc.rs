//! `hmc` in real processes: gradients and remainders are charged, released, replayed and checked; then its extension.

use conclave_tests::cluster::{PartySetup, json};
use conclave_tests::study;

use crate::verify::all_hold;
use crate::{cluster, cluster_of, setup, stderr};

const PARTIES: [&str; 2] = ["a", "b"];

fn job(epsilon: f64, more: &str) -> String {
    format!(
        "name = \"driven\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\n\
         predictors = [\"treated\", \"age\"]\n[columns]\nreadmitted = {{ binary = true }}\ntreated = {{ binary = true }}\n\
         age = {{ min = 20, max = 80 }}\n[sampler]\nchains = 2\n{more}[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    )
}

#[test]
fn gradients_drive_chains_that_replay_and_continue() {
    let mut cluster = cluster(&PARTIES, 4_000, 200.0);
    let result = cluster.submit(&job(40.0, "draws = 40\nwarmup = 5\n"));
    assert_eq!((&result["algorithm"], &result["stopped_by"]), (&"hmc".into(), &"draws".into()), "{result:#}");
    assert_eq!(result["draws_per_chain"], 40);
    assert!(result["acceptance_rate"].as_f64().expect("a rate") > 0.8, "{result:#}");
    let spent = result["parties"][0]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent > 0.5 && spent <= 40.0, "{spent}");
    let id = result["job"].as_str().expect("an id").to_owned();
    // At most two rounds a step, plus the search.
    let rounds = result["iterations"].as_u64().expect("a number");
    assert!((88..=102).contains(&rounds), "{rounds}");
    assert_eq!(all_hold(&cluster, &id)["rounds"], rounds);
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "export.jsonl"]);
    cluster.must(&["verify-ledger", "export.jsonl", "--ca", "ca/ca.pem"]);
    // After a restart the coordinator replays the log, including a chain's own noise. The extension starts from the last states.
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let more = json(&cluster.must(&["extend", &id, "--draws", "20", "--wait", "--json"]));
    assert_eq!((more["extends"].as_str(), &more["stopped_by"]), (Some(id.as_str()), &"draws".into()), "{more:#}");
    assert_eq!(more["draws_per_chain"], 20);
    all_hold(&cluster, more["job"].as_str().expect("an id"));
}

/// An owner's minimal noise for vectors: a job below it is refused with the required setting, and no release of an accepted job
/// costs more.
#[test]
fn an_owners_minimal_noise_is_required_and_kept() {
    let mut cluster = cluster_of(&PARTIES, |cluster, name, seed| {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(4_000, seed)));
        let setup = setup(name, &data, 200.0);
        let policy_extra = format!("{}\nmin_noise_multiplier = 20", setup.policy_extra);
        cluster.enrol(&PartySetup { policy_extra: &policy_extra, ..setup })
    });
    (0..PARTIES.len()).for_each(|party| cluster.start_party(party));
    let plain = job(40.0, "draws = 40\nwarmup = 5\n");
    std::fs::write(cluster.path("plain.toml"), &plain).expect("a file");
    let output = cluster.run(&["submit", "plain.toml", "--wait"]);
    assert!(
        !output.status.success() && stderr(&output).contains("write noise_multiplier = 20 under [privacy]"),
        "{}",
        stderr(&output)
    );
    let result = cluster.submit(&(plain + "noise_multiplier = 20\n"));
    assert_eq!(result["stopped_by"], "draws", "{result:#}");
    // One over the square of the noise multiplier, in units of 2^-48.
    let most = (1_u64 << 48) / 400;
    for party in 0..PARTIES.len() {
        let highest = "SELECT max(charge), count(*) FROM releases";
        let (highest, all): (u64, u64) =
            cluster.ledger(party).query_row(highest, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("SQL");
        assert!(highest <= most && highest > most / 100 && all > 150, "{highest} of {most}, {all} releases");
    }
    all_hold(&cluster, result["job"].as_str().expect("an id"));
}

/// A job that can expect hardly any draw sends no query unless it is forced; a model without a bound is refused at parsing.
#[test]
fn too_small_a_budget_is_refused_before_any_query() {
    let cluster = cluster(&PARTIES, 300, 30.0);
    std::fs::write(cluster.path("small.toml"), job(0.5, "")).expect("a file");
    let output = cluster.run(&["submit", "small.toml", "--wait"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("effective draws"), "{}", stderr(&output));
    let scattered = job(8.0, "").replace("kind = \"logistic\"\noutcome = \"readmitted\"", "kind = \"linear\"\noutcome = \"age\"");
    std::fs::write(cluster.path("scattered.toml"), scattered.replace("\"treated\", \"age\"]", "\"treated\"]")).expect("a file");
    let output = cluster.run(&["submit", "scattered.toml", "--wait"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no public bound is known"), "{}", stderr(&output));
}
