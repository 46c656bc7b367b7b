//! Jobs with masked answers: reports to owners, and how a party detects changes to the coordinator's log.

use std::fs;

use conclave_tests::cluster::{Cluster, figures, json};
use conclave_tests::study;
use serde_json::Value;

use crate::verify::{Baseline, detail, named, verify};
use crate::{cluster_of, setup};

const NAMES: [&str; 3] = ["a", "b", "c"];
const CHECKS: [&str; 8] = ["signature", "consent", "roster", "answers", "sums", "proposals", "draws", "result"];
const DRAWS: u64 = 40;

/// Starts three attached parties, each of which has pinned the other two.
fn pinned() -> Cluster {
    let mut cluster = cluster_of(&NAMES, |cluster, name, seed| {
        let data = study::csv(&study::records(150, seed));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        cluster.enrol(&setup(name, &data, 500.0))
    });
    let line = || cluster.must(&["__party", "fingerprint", "--config", "a/party.toml"]);
    let signed = line();
    // The line is the same before the certificate exists, so that owners can exchange keys while they wait for it.
    let (certificate, aside) = (cluster.path("a/identity/certificate.pem"), cluster.path("a/aside.pem"));
    fs::rename(&certificate, &aside).expect("a certificate");
    assert_eq!(line(), signed);
    fs::rename(&aside, &certificate).expect("a certificate");
    cluster.pin_all();
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    cluster
}

fn job() -> String {
    let sampler = format!("chains = 2\ndraws = {DRAWS}\nwarmup = 5\nseed = 4");
    study::job(&NAMES, &sampler, "epsilon = 150\ndelta = 1e-6") + "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n"
}

/// Masked chains on a weighted posterior, by gradients and by ratios: the frame is learnt from opened sums, every query of the chains
/// states it, and every owner verifies the run.
#[test]
fn masked_weighted_chains_are_verified_by_every_owner() {
    let cluster = pinned();
    // The test checks the releases, not the posterior of 150 records at each party.
    for (algorithm, sampler) in [("hmc", "draws = 12"), ("penalty", "draws = 40\nlocate = \"gradients\"")] {
        let text = job().replace("\"penalty\"", &format!("{algorithm:?}")).replace("epsilon = 150", "epsilon = 200");
        let text = text.replace(&format!("draws = {DRAWS}"), &format!("{sampler}\nforce = true"));
        let result = cluster.submit(&text.replace("[model]\n", "[model]\nweights = \"always\"\n"));
        assert_eq!((&result["algorithm"], &result["stopped_by"]), (&algorithm.into(), &"draws".into()), "{result:#}");
        let rows = figures(&result)["posterior"].as_array().expect("rows");
        assert!(rows.len() == 3 && rows.iter().all(|row| row["estimand"] == "weighted"), "{rows:?}");
        assert!(result["weighted"]["clip"].is_null() && result["weighted"]["radius"].as_f64() >= Some(1.0), "{result:#}");
        let id = result["job"].as_str().expect("an id");
        for party in NAMES {
            let (code, report) = verify(&cluster, party, id);
            assert_eq!((code, named(&report, "holds")), (0, CHECKS.to_vec()), "{report:#}");
        }
    }
}

/// Masked vectors: gradients and remainders of several chains in one message, each integer with its own mask. The charge of each
/// vector is its price with one party's noise, divided by the number of parties whose noise protects it.
#[test]
fn masked_gradients_are_released_and_verified_by_every_owner() {
    let cluster = pinned();
    // Planned for 150 records: the test checks the releases, not the posterior.
    let text = job().replace("algorithm = \"penalty\"", "algorithm = \"hmc\"").replace("epsilon = 150", "epsilon = 400");
    let text = text.replace(&format!("draws = {DRAWS}"), "draws = 12\nforce = true");
    let result = cluster.submit(&text);
    assert_eq!((&result["algorithm"], &result["stopped_by"]), (&"hmc".into(), &"draws".into()), "{result:#}");
    let id = result["job"].as_str().expect("an id");
    for (place, party) in NAMES.into_iter().enumerate() {
        let (code, report) = verify(&cluster, party, id);
        assert_eq!((code, named(&report, "holds")), (0, CHECKS.to_vec()), "{report:#}");
        let ledger = cluster.ledger(place);
        let mut rows = ledger.prepare("SELECT integers, honest, charge, alone FROM releases").expect("SQL");
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).expect("releases");
        let rows: Vec<(u64, u64, u64, u64)> = rows.collect::<Result<_, _>>().expect("releases");
        // Gradients of three coefficients; remainders are single integers.
        let vectors = rows.iter().filter(|(integers, ..)| *integers == 3).count();
        assert!(vectors >= 24 && vectors < rows.len(), "{party}: {vectors} of {}", rows.len());
        for (integers, honest, charge, alone) in rows {
            // Half of its price with one party's noise, rounded up, but at least the minimal price of its integers. Where that
            // minimum is the ledger's slack for noise, eight units for each integer's, those units are halved and rounded up.
            let each = 8 * integers;
            let least = (integers << 24).max((alone / each).div_ceil(2) * each);
            let expected = [alone.div_ceil(2).max(integers << 24), least];
            let may = if alone % each == 0 { &expected[..] } else { &expected[..1] };
            assert!(honest == 2 && may.contains(&charge), "{party}: {charge} of {honest} honest, alone {alone}, may be {may:?}");
        }
    }
}

fn digest(report: &Value) -> String {
    report["log_digest"].as_str().expect("a digest").to_owned()
}

/// Changes one integer of a party's answer to a round, in a log of three parties.
fn change(honest: &Baseline, round: u64, (party, place): (usize, usize), by: i64) {
    let store = honest.store();
    let mut blob: Vec<u8> =
        store.query_row("SELECT releases FROM rounds WHERE iteration = ?1", [round], |row| row.get(0)).expect("the round");
    let each = blob.len() / NAMES.len();
    let at = each * party + 8 * place;
    let old = i64::from_le_bytes(blob[at..at + 8].try_into().expect("eight bytes"));
    blob[at..at + 8].copy_from_slice(&old.wrapping_add(by).to_le_bytes());
    store.execute("UPDATE rounds SET releases = ?1 WHERE iteration = ?2", (blob, round)).expect("SQL");
}

#[test]
fn every_lie_about_masked_answers_is_found_and_named() {
    let mut cluster = pinned();
    let result = cluster.submit(&job());
    let expected = json(r#"{ "mode": "secure", "colluders": 1, "honest": 2, "parties": 3 }"#);
    assert_eq!(result["aggregation"], expected, "{result:#}");
    let id = result["job"].as_str().expect("an id").to_owned();
    let mut digests = Vec::new();
    for party in NAMES {
        let (code, report) = verify(&cluster, party, &id);
        assert_eq!((code, named(&report, "holds")), (0, CHECKS.to_vec()), "{report:#}");
        digests.push(digest(&report));
    }
    assert!(digests.iter().all(|one| *one == digests[0]), "{digests:?}");
    check_reports(&cluster, &id);

    cluster.kill_coordinator();
    let mut honest = Baseline::after(cluster, &NAMES, &result);
    let last = honest.cluster.rounds() - 1;
    honest.plant(
        "another party's answer, by one",
        |h| change(h, last, (1, 0), 1),
        |party, report| {
            let expected: &[&str] = if party == "b" { &["answers", "draws", "result"] } else { &["draws", "result"] };
            assert_eq!(named(report, "fails"), expected, "{report:#}");
            assert_ne!(digest(report), digests[0]);
        },
    );
    honest.plant(
        "another party's answer, by far",
        |h| change(h, 3, (1, 0), 1 << 62),
        |party, report| {
            let expected: &[&str] = if party == "b" { &["answers", "sums"] } else { &["sums"] };
            let fails: Vec<&str> =
                named(report, "fails").into_iter().filter(|check| ["answers", "sums"].contains(check)).collect();
            assert_eq!(fails, expected, "{report:#}");
            assert!(detail(report, "sums").contains("round 3, chain 0: the answers' sum is"), "{report:#}");
        },
    );
    honest.plant(
        "masks that do not cancel",
        |h| change(h, 3, (1, 2), 1),
        |_, report| {
            assert_eq!(named(report, "fails"), ["sums"], "{report:#}");
            assert_eq!(named(report, "skipped"), ["answers", "proposals", "draws", "result"], "{report:#}");
        },
    );
    for (what, sql, word) in [
        ("no roster", "DELETE FROM rosters", "the log has no roster"),
        ("no roster's bytes", "UPDATE rosters SET roster = x'ff'", "the log's roster can't be decoded"),
    ] {
        honest.plant(
            what,
            |h| h.execute(sql),
            |_, report| {
                assert_eq!(named(report, "fails"), ["roster"], "{report:#}");
                assert!(detail(report, "roster").contains(word), "{report:#}");
            },
        );
    }
    honest.plant("another key in the roster", swap_key, |_, report| {
        assert_eq!(named(report, "fails"), ["roster"], "{report:#}");
        assert!(
            detail(report, "roster").contains("is not signed") || detail(report, "roster").contains("signature"),
            "{report:#}"
        );
    });
    honest.plant(
        "a round hidden",
        |h| h.execute(&format!("DELETE FROM rounds WHERE iteration = {last}")),
        |_, report| assert_eq!(named(report, "fails"), ["answers", "proposals"], "{report:#}"),
    );
    plant_acceptance(&mut honest);
    // The answers of two parties are changed so that their sum is not. These two detect it, and the third can compare digests.
    change(&honest, last, (0, 0), 5);
    change(&honest, last, (1, 0), -5);
    honest.cluster.start_coordinator();
    for party in NAMES {
        let (_, report) = verify(&honest.cluster, party, &id);
        let expected: &[&str] = if party == "c" { &[] } else { &["answers"] };
        assert_eq!(named(&report, "fails"), expected, "{party}: {report:#}");
        assert_ne!(digest(&report), digests[0], "{party}");
    }
}

/// Acceptance of a proposal follows from the sums. A false statement, about one draw on disk or about all in the result, is
/// detected by every party.
fn plant_acceptance(honest: &mut Baseline) {
    let path = honest.draws.join("sample_stats/accepted/c/1/0");
    let kept = fs::read(&path).expect("a file");
    let mut lie = kept.clone();
    lie[17] ^= 1;
    honest.plant(
        "a draw's acceptance reversed",
        |_| fs::write(&path, lie).expect("a lie"),
        |_, report| {
            assert_eq!(named(report, "fails"), ["draws"], "{report:#}");
            assert!(detail(report, "draws").contains("sample_stats/accepted, chain 1, draw 17"), "{report:#}");
        },
    );
    fs::write(&path, kept).expect("the truth");
    let change = |honest: &Baseline| {
        let store = honest.store();
        let text: String = store.query_row("SELECT result FROM jobs", [], |row| row.get(0)).expect("a result");
        let mut result = json(&text);
        let rate = result["acceptance_rate"].as_f64().expect("a number");
        result["acceptance_rate"] = f64::from_bits(rate.to_bits() + 1).into();
        store.execute("UPDATE jobs SET result = ?1", [result.to_string()]).expect("SQL");
    };
    honest.plant("another share of accepted proposals, by one bit", change, |_, report| {
        assert_eq!(named(report, "fails"), ["result"], "{report:#}");
        assert!(detail(report, "result").contains("acceptance_rate"), "{report:#}");
    });
    let more = |honest: &Baseline| {
        let store = honest.store();
        let text: String = store.query_row("SELECT result FROM jobs", [], |row| row.get(0)).expect("a result");
        let mut result = json(&text);
        result["aggregation"]["honest"] = 3.into();
        store.execute("UPDATE jobs SET result = ?1", [result.to_string()]).expect("SQL");
    };
    honest.plant("too many parties whose noise protects", more, |_, report| {
        assert_eq!(named(report, "fails"), ["result"], "{report:#}");
        assert!(detail(report, "result").contains("aggregation"), "{report:#}");
    });
}

/// Flips a bit of the first party's public key.
fn swap_key(honest: &Baseline) {
    let store = honest.store();
    let mut roster: Vec<u8> = store.query_row("SELECT roster FROM rosters", [], |row| row.get(0)).expect("a roster");
    // The party's name is followed by the key in a field of 32 bytes: tag 1, length 32.
    let at = roster.windows(2).position(|pair| pair == [10, 32]).expect("a key") + 2;
    roster[at] ^= 1;
    store.execute("UPDATE rosters SET roster = ?1", [roster]).expect("SQL");
}

/// Checks the owner's and the analyst's reports on an ended job.
fn check_reports(cluster: &Cluster, id: &str) {
    let config = ["--config", "a/party.toml"];
    let party = |args: &[&str]| cluster.must(&[&["__party"], args, &config[..]].concat());
    let budget = party(&["budget"]);
    assert!(budget.contains("if all other parties of masked jobs collude with the coordinator"), "{budget}");
    let read = json(&party(&["budget", "--json"]));
    let (spent, alone) = (read["mu_squared_spent"].as_f64(), read["if_all_collude"]["mu_squared_spent"].as_f64());
    // Two of three parties are honest: half is charged.
    let ratio = alone.zip(spent).map(|(alone, spent)| alone / spent).expect("figures");
    assert!((ratio - 2.0).abs() < 1e-3, "{read:#}");
    let job = &read["masked_jobs"][0];
    assert_eq!(
        (&job["open"], &job["honest"], &job["members"][2]["pinned"]),
        (&false.into(), &2.into(), &true.into()),
        "{read:#}"
    );
    let statement = party(&["statement", id]);
    for part in ["as if 2 parties' noise protects you", "Roster of the masks", "if all others collude", "can never be reopened"] {
        assert!(statement.contains(part), "{part} is not in {statement}");
    }
    assert!(party(&["jobs"]).contains("(masked: it can never be reopened)"));
    let report = cluster.path("report.html");
    cluster.must(&["report", id, "-o", report.to_str().expect("a plain path")]);
    let page = fs::read_to_string(report).expect("a report");
    assert!(
        page.contains("only the sum over all 3 parties was unmasked") && !page.contains("holds against all of them"),
        "{page}"
    );
    assert!(cluster.must(&["summary", id]).contains("noise of 2 parties"));
}
