//! A job from submission to its last draw.

use conclave_inference::diagnostics;
use conclave_inference::figures::zcdp;
use conclave_privacy::accounting::gaussian_dp;
use conclave_privacy::mechanism::STEP;
use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::zarr;
use serde_json::Value;

use crate::{EXE, cluster, setup};

const EPSILON: f64 = 200.0;
const DELTA: f64 = 1e-6;
const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const DRAWS: usize = 1200;
const CHAINS: usize = 2;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Checks equality up to the last bits, which the JSON reader of this test may lose.
fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{what}: {found} is not {expected}");
}

/// Three parties with small shards, ended by the number of draws; then every figure in the result is checked against the durable
/// records.
#[test]
fn a_logistic_job_ends_by_its_draws() {
    let cluster = cluster(&NAMES, 250, EPSILON);
    let sampler = format!("chains = {CHAINS}\ndraws = {DRAWS}\nwarmup = 20\nseed = 11");
    let result = cluster.submit(&study::job(&NAMES, &sampler, &format!("epsilon = {EPSILON}\ndelta = {DELTA}")));
    let id = result["job"].as_str().expect("an id");
    let replay = Replay::of(&cluster.store(), id);

    assert_eq!((result["stopped_by"].as_str(), replay.complete), (Some("draws"), true));
    assert_eq!((result["name"].as_str(), result["algorithm"].as_str()), (Some("small study"), Some("penalty")));
    assert_eq!(result["iterations"], replay.rounds);
    assert_eq!((result["chains"].as_u64(), result["draws_per_chain"].as_u64()), (Some(CHAINS as u64), Some(DRAWS as u64)));
    assert!(number(&result["seconds"]) > 0.0);
    let accepted = replay.draws.iter().filter(|d| !d.warmup && d.accepted).count() as f64;
    assert_close(number(&result["acceptance_rate"]), accepted / (CHAINS * DRAWS) as f64, "acceptance");
    check_parties(&cluster, &result, &replay);
    check_posterior(&result, &replay);
    check_draws(&result, &replay);

    // The analyst reads the same result later, and gets the same draws.
    assert_eq!(json(&cluster.must(&["summary", id, "--json"])), result);
    cluster.must(&["draws", id, "--format", "zarr", "--out", "fetched"]);
    replay.assert_equals_zarr(&cluster.path("fetched"));
    let status = cluster.status(id);
    assert_eq!((status["state"].as_str(), status["draws"].as_u64()), (Some("finished"), Some(DRAWS as u64)));
}

fn check_parties(cluster: &Cluster, result: &Value, replay: &Replay) {
    let parties = result["parties"].as_array().expect("parties");
    assert_eq!(parties.iter().map(|p| p["name"].as_str().expect("a name")).collect::<Vec<_>>(), NAMES);
    let (queries, mu_squared) = replay.spent();
    for (index, party) in parties.iter().enumerate() {
        let ledger = LedgerCopy::of(&cluster.ledger(index), result["job"].as_str().expect("an id"));
        assert!(replay.assert_in_ledger(&ledger, index).is_empty(), "a charge without a recorded round");
        assert_eq!((ledger.rows.len(), ledger.answers()), (queries as usize, queries as usize));
        assert_eq!(party["queries"], queries);
        assert_eq!(party["records"], 250);
        assert_close(number(&party["mu_squared_spent"]), mu_squared, "mu squared");
        assert_eq!(ledger.mu_squared(), mu_squared);
        assert_eq!((number(&party["delta"]), number(&party["epsilon_budget"])), (DELTA, EPSILON));
        let (spent, zcdp) = (number(&party["epsilon_spent"]), number(&party["epsilon_zcdp"]));
        assert_close(spent, gaussian_dp::epsilon(mu_squared.sqrt(), DELTA), "epsilon");
        assert_close(zcdp, zcdp::epsilon(mu_squared / 2.0, DELTA), "epsilon by zCDP");
        assert!(0.0 < spent && spent <= EPSILON && spent <= zcdp, "{party}");
        // The owner's own command reports the same.
        let config = format!("{}/party.toml", NAMES[index]);
        let owner = json(&cluster.must(&["__party", "budget", "--config", &config, "--json"]));
        assert_close(number(&owner["mu_squared_spent"]), mu_squared, "the owner's mu squared");
        assert_close(number(&owner["epsilon_spent"]), spent, "the owner's epsilon");
        assert_eq!(owner["queries"], queries);
    }
}

fn check_posterior(result: &Value, replay: &Replay) {
    let figures = conclave_tests::cluster::figures(result);
    let rows = figures["posterior"].as_array().expect("rows");
    let original = figures["posterior_original"].as_array().expect("rows");
    let samples = replay.samples(false);
    assert_eq!((rows.len(), original.len()), (3, 3));
    for (at, name) in ["intercept", "treated", "age"].into_iter().enumerate() {
        let chains: Vec<&[f64]> = samples[at].iter().map(Vec::as_slice).collect();
        let expected = diagnostics::summarise(&chains);
        let row = &rows[at];
        assert_eq!((row["name"].as_str(), original[at]["name"].as_str()), (Some(name), Some(name)));
        for (key, value) in [
            ("mean", expected.mean),
            ("sd", expected.sd),
            ("q5", expected.q5),
            ("median", expected.median),
            ("q95", expected.q95),
            ("ess_bulk", expected.ess_bulk),
            ("ess_tail", expected.ess_tail),
            ("rhat", expected.rhat),
            ("mcse_mean", expected.mcse_mean),
        ] {
            assert_close(number(&row[key]), value, &format!("{name} {key}"));
            assert!(number(&original[at][key]).is_finite(), "{name} {key} in the data's units");
        }
        // Age was scaled by its half width of 30 years; a 0/1 predictor is unscaled.
        let unit = if name == "age" { 30.0 } else { 1.0 };
        if name != "intercept" {
            assert!((number(&original[at]["mean"]) * unit / expected.mean - 1.0).abs() < 1e-12, "{name}");
            assert!((number(&original[at]["sd"]) * unit / expected.sd - 1.0).abs() < 1e-12, "{name}");
        }
    }
}

fn check_draws(result: &Value, replay: &Replay) {
    let store = std::path::PathBuf::from(result["draws"].as_str().expect("a path"));
    assert_eq!(zarr::metadata(&store)["node_type"], "group");
    for group in ["posterior", "posterior_original", "sample_stats", "warmup_posterior", "warmup_sample_stats"] {
        assert_eq!(zarr::metadata(&store.join(group))["node_type"], "group");
    }
    for name in ["intercept", "treated", "age"] {
        let metadata = zarr::metadata(&store.join("posterior").join(name));
        assert_eq!(metadata["shape"], serde_json::json!([CHAINS, DRAWS]), "{name}");
    }
    replay.assert_equals_zarr(&store);
}

/// A party whose shard is Parquet gives the same answers as from CSV.
///
/// One job has the same shard in both formats, so that every round sends both the same query and their answers differ only by
/// noise. Over q queries, the squared differences divided by twice the noise variance are a chi-square with q degrees of freedom.
/// A misplaced column or a lost row moves single answers by tens of noise sds.
#[test]
fn a_parquet_shard_answers_as_its_csv_does() {
    const SD: f64 = 0.05;
    let names = ["from-csv", "from-parquet"];
    let mut cluster = Cluster::new(EXE);
    let records = study::records(400, 5);
    let csv = study::write(&cluster.path("shard.csv"), &study::csv(&records));
    let parquet = cluster.path("shard.parquet");
    crate::files::write_parquet(&parquet, &records);
    for (name, data) in names.iter().zip([&csv, &parquet]) {
        let party = cluster.enrol(&setup(name, data, 900.0));
        cluster.start_party(party);
    }
    let sampler = "chains = 4\ndraws = 60\nwarmup = 0\nseed = 3\nproposal = { kind = \"guided\", radius = 0.05 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let privacy = format!("epsilon = 900\ndelta = {DELTA}\nnoise_sd = {SD}");
    let result = cluster.submit(&study::job(&names, sampler, &privacy));
    assert_eq!(result["parties"][0]["records"], 400);
    assert_eq!(result["parties"][1]["records"], 400);
    let replay = Replay::of(&cluster.store(), result["job"].as_str().expect("an id"));
    let squares = replay.releases.values().map(|(released, _)| {
        let difference = (released[0] - released[1]) as f64 * STEP;
        difference * difference / (2.0 * replay.spec.privacy.noise.variance())
    });
    let (statistic, queries) = (squares.sum::<f64>(), replay.releases.len() as f64);
    assert_eq!(queries, 240.0);
    // Wilson and Hilferty: (X/q)^(1/3) is normal to a few percent of its sd. The limit is six sds each way: a correct program
    // fails with probability 2e-9.
    let z = ((statistic / queries).cbrt() - (1.0 - 2.0 / (9.0 * queries))) / (2.0 / (9.0 * queries)).sqrt();
    assert!(z.abs() < 6.0, "chi-square {statistic} over {queries} queries: z = {z}");
}
