//! The papers' other samplers in real processes: queries are charged, released, replayed and checked, over all records and over
//! hidden samples.

use std::time::Duration;

use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::study;
use serde_json::Value;

use crate::verify::all_hold;
use crate::{cluster_of, setup, stderr};

const PARTIES: [&str; 2] = ["a", "b"];
const PATIENCE: Duration = Duration::from_secs(120);
/// Delta reserve of the parties with subsampled releases.
const RESERVE: &str = "delta_reserve = 3e-7\n";

fn job(algorithm: &str, sampler: &str, privacy: &str) -> String {
    study::job(&PARTIES, sampler, privacy).replace("\"penalty\"", &format!("\"{algorithm}\""))
}

/// Starts parties of 4,000 records each, with these further lines in their budgets.
fn parties(budget_extra: &str) -> Cluster {
    let mut cluster = cluster_of(&PARTIES, |cluster, name, seed| {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(4_000, seed)));
        cluster.enrol(&PartySetup { budget_extra, ..setup(name, &data, 400.0) })
    });
    (0..PARTIES.len()).for_each(|party| cluster.start_party(party));
    cluster
}

/// Returns a whole number selected from a party's ledger.
fn select_count(cluster: &Cluster, party: usize, sql: &str) -> u64 {
    cluster.ledger(party).query_row(sql, [], |row| row.get(0)).expect("SQL")
}

/// Exports a party's ledger and verifies the signed copy.
fn check_export(cluster: &Cluster, party: &str) {
    let (config, out) = (format!("{party}/party.toml"), format!("{party}.jsonl"));
    cluster.must(&["__party", "export", "--config", &config, "--out", &out]);
    cluster.must(&["verify-ledger", &out, "--ca", "ca/ca.pem"]);
}

fn id(result: &Value) -> String {
    result["job"].as_str().expect("an id").to_owned()
}

/// Over all records, each sampler keeps its draws, stays within its budget, and is verified by every party.
#[test]
fn each_runs_on_all_records_and_is_checked() {
    let cluster = parties("");
    let start = "start = { intercept = -0.4, treated = 0.8, age = 0.6 }\nproposal = { kind = \"guided\", radius = 0.05 }\n";
    for (algorithm, more) in
        [("barker", start), ("sgld", ""), ("sghmc", ""), ("sgnht", ""), ("sgfs", ""), ("hmc", "friction = 0\nrefresh = 5\n")]
    {
        let sampler = format!("chains = 2\ndraws = 30\nwarmup = 4\nseed = 6\n{more}");
        let result = cluster.submit(&job(algorithm, &sampler, "epsilon = 60\ndelta = 1e-6"));
        assert_eq!(result["algorithm"], algorithm);
        assert!(result["draws_per_chain"].as_u64().is_some_and(|kept| kept > 5), "{result:#}");
        let spent = result["parties"][0]["epsilon_spent"].as_f64().expect("a number");
        assert!(spent > 0.1 && spent <= 60.0, "{algorithm}: {spent}");
        // A warning states what is approximate.
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("approximate") || ["barker", "hmc"].contains(&algorithm), "{algorithm}: {warnings}");
        // Without friction: DP-HMC.
        assert!(algorithm != "hmc" || result["gradients"]["test"] == "ratio", "{result:#}");
        all_hold(&cluster, &id(&result));
    }
    (0..PARTIES.len())
        .for_each(|party| assert_eq!(select_count(&cluster, party, "SELECT count(*) FROM events WHERE kind = 'block'"), 0));
    check_export(&cluster, "a");
}

/// Returns the mu² charged in a party's ledger.
fn charged(cluster: &Cluster, party: &str) -> f64 {
    let reported = cluster.must(&["__party", "budget", "--config", &format!("{party}/party.toml"), "--json"]);
    json(&reported)["mu_squared_spent"].as_f64().expect("a number")
}

/// Runs a job whose coordinator and first party are killed while its chains run.
fn run_with_kills(cluster: &mut Cluster, text: &str) -> Value {
    let id = cluster.submit_only(text);
    cluster.wait_status(&id, PATIENCE, "some draws", |status| status["draws"].as_u64().is_some_and(|draws| draws > 4));
    cluster.kill_coordinator();
    cluster.kill_party(0);
    cluster.start_coordinator();
    cluster.start_party(0);
    cluster.wait_status(&id, PATIENCE, "the end", |status| status["state"] == "finished");
    json(&cluster.must(&["summary", &id, "--json"]))
}

/// With subsampled releases, blocks are charged ahead and their releases take places at no further charge. A killed coordinator
/// and party resume the same chain.
#[test]
fn samples_take_places_of_blocks_that_were_charged_ahead() {
    let mut cluster = parties(RESERVE);
    let privacy = "epsilon = 60\ndelta = 1e-6\nblocks = 4\ndelta_reserve = 5e-8";
    for algorithm in ["sgld", "sghmc", "sgnht", "sgfs"] {
        let sampler = "chains = 2\ndraws = 30\nwarmup = 10\nseed = 6\nbatch = 0.25";
        let before = select_count(&cluster, 0, "SELECT count(*) FROM events WHERE kind = 'block'");
        let spent = charged(&cluster, "a");
        let text = job(algorithm, sampler, privacy);
        let result = if algorithm == "sghmc" { run_with_kills(&mut cluster, &text) } else { cluster.submit(&text) };
        assert_eq!(result["draws_per_chain"], 30, "{result:#}");
        // The coordinator computes the cost of blocks as the ledger charges them, and reports the whole delta of the promise.
        let reported = result["parties"][0]["mu_squared_spent"].as_f64().expect("a number");
        let spent = charged(&cluster, "a") - spent;
        assert!((reported - spent).abs() < 1e-9 * spent, "{algorithm}: {reported} {spent}");
        assert!((result["parties"][0]["delta"].as_f64().expect("a number") - 1e-6).abs() < 1e-15, "{result:#}");
        all_hold(&cluster, &id(&result));
        let blocks = select_count(&cluster, 0, "SELECT count(*) FROM events WHERE kind = 'block'") - before;
        assert_eq!(blocks, 4, "{algorithm}");
    }
    let sampler = "chains = 2\ndraws = 40\nwarmup = 2\nseed = 6\nbatch = 0.5\nlocate_share = 0.2\nproposal = { kind = \"guided\", radius = 0.01 }";
    let result = cluster.submit(&job("barker", sampler, &format!("{privacy}\nnoise_sd = 0.35\nclip = 0.05")));
    assert_eq!(result["draws_per_chain"], 40, "{result:#}");
    let checked = &result["barker"]["checked"];
    assert!(checked["looks"].as_u64().is_some_and(|looks| (1..=4).contains(&looks)) && checked["ratio"].is_number(), "{checked}");
    all_hold(&cluster, &id(&result));
    for party in 0..PARTIES.len() {
        // Jobs with gradients take 80 places each, one per chain and step; barker takes 92, fewer by proposals outside the box.
        let places = select_count(&cluster, party, "SELECT count(*) FROM releases WHERE charge = 0");
        assert!((4 * 80 + 80..=4 * 80 + 92).contains(&places), "{places}");
    }
    PARTIES.iter().for_each(|party| check_export(&cluster, party));
    cluster.kill_party(0);
    cluster.start_party(0);
    let reported = cluster.must(&["__party", "budget", "--config", "a/party.toml", "--json"]);
    assert!(json(&reported).to_string().contains("reserve"), "{reported}");
}

/// Subsampled chains that end with penalty sweeps over all records: the draws are those of the sweeps, and both owners verify
/// every number.
#[test]
fn sweeps_end_chains_without_a_test() {
    let cluster = parties(RESERVE);
    let sampler = "chains = 2\ndraws = 30\nwarmup = 10\nseed = 6\nbatch = 0.25\npolish = 12";
    let result = cluster.submit(&job("sghmc", sampler, "epsilon = 60\ndelta = 1e-6\nblocks = 4\ndelta_reserve = 5e-8"));
    // Three parameters: 36 draws of sweeps instead of 30 of steps.
    assert_eq!((&result["draws_per_chain"], &result["stopped_by"]), (&36.into(), &"draws".into()), "{result:#}");
    let reported = &result["stochastic_gradients"]["polish"];
    assert_eq!((&reported["sweeps"], &reported["steps"]), (&12.into(), &40.into()), "{reported}");
    assert!(reported["budget_share"].as_f64().is_some_and(|share| share > 0.0 && share < 0.5), "{reported}");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("12 penalty sweeps") && !warnings.contains("approximate"), "{warnings}");
    all_hold(&cluster, &id(&result));
    for party in 0..PARTIES.len() {
        let ratios = select_count(&cluster, party, "SELECT count(*) FROM charges WHERE kind = 0");
        assert!((60..=72).contains(&ratios), "{ratios} ratios: two chains of 36, except for proposals outside the box");
    }
    check_export(&cluster, "a");
}

/// One owner's remaining budget is smaller than the job's blocks cost, but the job is started. The block that its ledger refuses
/// ends the run, which keeps its draws. The refusal charges nothing at either owner; the other has been charged for at most one
/// more block.
#[test]
fn a_block_that_a_ledger_refuses_in_mid_run_ends_it_with_its_draws() {
    for (algorithm, scarce, sampler, more) in [
        ("sgld", 9.8, "warmup = 4\nbatch = 0.25\nstart = { intercept = -0.4, treated = 0.8, age = 0.6 }", ""),
        (
            "barker",
            35.0,
            "warmup = 2\nbatch = 0.5\nlocate_share = 0.05\nproposal = { kind = \"guided\", radius = 0.01 }",
            "\nnoise_sd = 0.35\nclip = 0.05",
        ),
    ] {
        let mut cluster = cluster_of(&PARTIES, |cluster, name, seed| {
            let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(4_000, seed)));
            let epsilon = if name == "b" { scarce } else { 400.0 };
            cluster.enrol(&PartySetup { budget_extra: RESERVE, ..setup(name, &data, epsilon) })
        });
        (0..PARTIES.len()).for_each(|party| cluster.start_party(party));
        let sampler = format!("chains = 2\ndraws = 2000\nseed = 6\nforce = true\n{sampler}");
        let privacy = format!("epsilon = 60\ndelta = 1e-6\nblocks = 8\ndelta_reserve = 5e-8{more}");
        let result = cluster.submit(&job(algorithm, &sampler, &privacy));
        let blocks = [0, 1].map(|party| select_count(&cluster, party, "SELECT count(*) FROM events WHERE kind = 'block'"));
        println!(
            "{algorithm}: {} draws, {blocks:?} blocks, mu² {:?}",
            result["draws_per_chain"],
            PARTIES.map(|party| charged(&cluster, party))
        );
        assert_eq!((&result["stopped_by"], &result["budget_party"]), (&"budget".into(), &"b".into()), "{result:#}");
        assert!(result["draws_per_chain"].as_u64().is_some_and(|kept| (1..2000).contains(&kept)), "{result:#}");
        assert!((1..8).contains(&blocks[1]) && (blocks[1]..=blocks[1] + 1).contains(&blocks[0]), "{blocks:?}");
        for (party, name) in PARTIES.iter().enumerate() {
            let reported = result["parties"][party]["mu_squared_spent"].as_f64().expect("a number");
            let spent = charged(&cluster, name);
            assert!((reported - spent).abs() < 1e-9 * spent, "{name}: {reported} {spent}");
            check_export(&cluster, name);
        }
        let log = cluster.log("b");
        assert!(log.contains("the privacy budget is spent"), "the owner's log reports the refusal: {log}");
        all_hold(&cluster, &id(&result));
    }
}

/// Blocks beyond the budget are detected once the search has measured the posterior. The job then ends as one refused for its
/// budget, with a message, and stays ended after the coordinator is killed.
#[test]
fn blocks_beyond_the_budget_end_a_job_with_a_message() {
    let mut cluster = parties(RESERVE);
    let sampler = "chains = 1\ndraws = 4000\nwarmup = 10\nbatch = 0.25\nstep = 0.1\nforce = true";
    let text = job("sgld", sampler, "epsilon = 2\ndelta = 1e-6\nblocks = 4\ndelta_reserve = 5e-8");
    let path = cluster.write_job(&text);
    let output = cluster.run(&["submit", &path, "--wait"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("lower sampler.draws"), "{}", stderr(&output));
    assert!(
        (0..PARTIES.len()).all(|party| select_count(&cluster, party, "SELECT count(*) FROM events WHERE kind = 'block'") == 0)
    );
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let jobs = json(&cluster.must(&["jobs", "--json"]));
    assert_eq!(jobs["jobs"][0]["state"], "failed", "{jobs:#}");
}

/// One owner, several draws of the posterior: each is the index of a candidate, charged by its range and checked by the owner.
#[test]
fn an_owner_draws_among_candidates() {
    let cluster = parties("");
    let text = study::job(&["a"], "draws = 6\ncandidates = 512\nseed = 6", "epsilon = 60\ndelta = 1e-6");
    let result = cluster.submit(&text.replace("\"penalty\"", "\"ops\""));
    assert_eq!((&result["algorithm"], &result["draws_per_chain"]), (&"ops".into(), &6.into()), "{result:#}");
    let reported = &result["ops"];
    assert_eq!((&reported["candidates"], &reported["draws"]), (&512.into(), &6.into()), "{reported}");
    let (range, mu) = (reported["range"].as_f64().expect("a number"), reported["mu_per_draw"].as_f64().expect("a number"));
    // For small ranges, mu is about 0.63 times the range.
    assert!(range > 0.0 && mu > 0.5 * range && mu < 0.7 * range, "{reported}");
    let choices = "kind = (1 << 27) + 512";
    assert_eq!(select_count(&cluster, 0, &format!("SELECT count(*) FROM charges WHERE {choices}")), 6);
    let within = "SELECT count(*) FROM answers a JOIN charges c ON c.seq = a.charge WHERE a.released BETWEEN 0 AND 511 AND";
    assert_eq!(select_count(&cluster, 0, &format!("{within} {choices}")), 6);
    let (code, report) = crate::verify::verify(&cluster, "a", &id(&result));
    assert_eq!(code, 0, "{report:#}");
    check_export(&cluster, "a");
}

/// Algorithm 3, the hybrid: one job with two kinds of release in one ledger. The owner's statement names both, the ledger verifies, and the
/// owner replays every number.
#[test]
fn chains_start_at_a_posterior_sample() {
    let cluster = parties("");
    for algorithm in ["sgld", "sgnht"] {
        let sampler = "chains = 2\ndraws = 30\nseed = 6\nstart = \"ops\"\nstart_share = 0.2\ncandidates = 256";
        let text = study::job(&["a"], sampler, "epsilon = 60\ndelta = 1e-6").replace("\"penalty\"", &format!("\"{algorithm}\""));
        let spent = charged(&cluster, "a");
        let result = cluster.submit(&text);
        let (chains, start) = (&result["stochastic_gradients"], &result["stochastic_gradients"]["start"]);
        assert_eq!((&start["candidates"], &result["draws_per_chain"]), (&256.into(), &30.into()), "{result:#}");
        assert_eq!(chains["warmup"], 0, "{chains:#}");
        let job = id(&result);
        let reported = result["parties"][0]["mu_squared_spent"].as_f64().expect("a number");
        let spent = charged(&cluster, "a") - spent;
        assert!((reported - spent).abs() < 1e-9 * spent, "{algorithm}: {reported} {spent}");
        let mu = start["mu"].as_f64().expect("a number");
        assert!(mu > 0.0 && mu * mu < spent, "{start}");
        let (code, report) = crate::verify::verify(&cluster, "a", &job);
        assert_eq!(code, 0, "{report:#}");
        let statement = cluster.must(&["__party", "statement", &job, "--config", "a/party.toml"]);
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            ["the index of one of the public candidates", "the slope of the log likelihood", "drawn at random; no noise is added"]
        {
            assert!(statement.contains(part), "{part}: {statement}");
        }
    }
    // One choice of each job, and every other release is a number with noise.
    assert_eq!(select_count(&cluster, 0, "SELECT count(*) FROM charges WHERE kind = (1 << 27) + 256"), 2);
    check_export(&cluster, "a");
}

/// Impossible jobs are refused with a remedy before anything is spent.
#[test]
fn a_job_that_an_owner_or_algorithm_does_not_allow_is_refused_unspent() {
    let cluster = parties("");
    let sampler = "chains = 2\ndraws = 30\nwarmup = 10\nbatch = 0.25";
    let privacy = "epsilon = 60\ndelta = 1e-6";
    let eleven = (0..10).map(|i| format!("\"x{i}\"")).collect::<Vec<_>>().join(", ");
    let columns = (0..10).map(|i| format!("x{i} = {{ min = 0, max = 1 }}\n")).collect::<String>();
    let one = |text: String| text.replace("[\"a\", \"b\"]", "[\"a\"]");
    let many = one(job("ops", "", privacy))
        .replace("[\"treated\", \"age\"]", &format!("[{eleven}]"))
        .replace("[prior]", &format!("{columns}[prior]"));
    for (text, code, said) in [
        (job("sgld", sampler, privacy), 3, "delta_reserve"),
        (job("hmc", sampler, privacy), 2, "sampler.batch"),
        (job("sgld", sampler, "epsilon = 0.01\ndelta = 1e-6"), 3, ""),
        (job("ops", "", privacy), 2, "one"),
        (job("sgld", "start = \"ops\"", privacy), 2, "sampler.start"),
        (one(job("hmc", "start = \"ops\"", privacy)), 2, "sampler.start"),
        (job("barker", "chains = 2\ndraws = 30\nbatch = 0.5", &format!("{privacy}\nclip = 0.05")), 3, "delta_reserve"),
        (job("barker", "chains = 2\ndraws = 30\nbatch = 0.5", &format!("{privacy}\nclip = 0.9")), 2, "above the limit of 1.5"),
        (many, 2, "hmc"),
    ] {
        std::fs::write(cluster.path("refused.toml"), &text).expect("a file");
        let output = cluster.run(&["submit", "refused.toml", "--wait"]);
        assert_eq!(output.status.code(), Some(code), "{text}\n{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
    }
    (0..PARTIES.len()).for_each(|party| assert_eq!(select_count(&cluster, party, "SELECT count(*) FROM charges"), 0));
}
