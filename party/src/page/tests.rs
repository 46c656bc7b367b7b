#![allow(clippy::unwrap_used)]

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use axum::Router;
use conclave_ops::web::{self, Fields, Visitor};

use super::state::FRESH;
use super::*;
use crate::config::PartyConfig;
use conclave_vault::answer::answer_timing::OwnTimes;
use conclave_vault::consent::{ConsentStore, Standing};
use conclave_vault::ledger::Ledger;
use conclave_vault::testing::{JOB, MEAN_TOML, entry, key, open_request, write};

const HOSTILE: &str = "<script>alert(1)</script>";

struct Fixture {
    _folder: tempfile::TempDir,
    config: PartyConfig,
    times: OwnTimes,
    pages: Router,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.csv", "height\n150\n160\n");
        std::fs::create_dir(folder.path().join("identity")).unwrap();
        let text = "name = \"hospital-a\"\ncoordinator = \"https://c\"\nidentity = \"identity\"\nledger = \"l.sqlite\"\npage = \"127.0.0.1:0\"\n\
                    [data]\npath = \"a.csv\"\n[budget]\nepsilon = 8.0\ndelta = 1e-6\n[policy]\nmax_epsilon_per_job = 3.0\n";
        let config = PartyConfig::parse(text, folder.path()).unwrap();
        config.ledger_settings().init().unwrap();
        let times = OwnTimes::default();
        Self { pages: pages(config.clone(), times.clone()), _folder: folder, times, config }
    }

    /// Submits a pending job with hostile names in it.
    fn submit_hostile_job(&self) {
        let toml = MEAN_TOML.replace("\"mean\"", &format!("\"{HOSTILE}\"")).replace("height", &format!("'{HOSTILE}'"));
        let toml = toml.replace(&format!("outcome = \"'{HOSTILE}'\""), &format!("outcome = \"{HOSTILE}\""));
        let request = conclave_proto::v1::OpenJob { analyst: format!("{HOSTILE}\u{202e}"), ..open_request(&toml) };
        let digest: [u8; 32] = Sha256::digest(toml.as_bytes()).into();
        ConsentStore::open(&self.config.ledger).unwrap().ask(&request, &digest).unwrap();
    }

    async fn send(&self, request: Request<Body>, fields: &[(&str, &str)]) -> (StatusCode, String) {
        let mut request = request;
        request.extensions_mut().insert(Visitor { csrf: "word".to_owned(), principal: web::Principal::Operator });
        request.extensions_mut().insert(Fields::new(fields));
        let response = self.pages.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        self.send(Request::get(path).body(Body::empty()).unwrap(), &[]).await
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> StatusCode {
        self.send(Request::post(path).body(Body::empty()).unwrap(), fields).await.0
    }

    fn standing(&self) -> Option<Standing> {
        ConsentStore::open(&self.config.ledger).unwrap().standing(JOB).unwrap()
    }
}

#[tokio::test]
async fn a_waiting_job_is_shown_in_the_commands_words_and_approved() {
    let rig = Fixture::new();
    assert!(rig.get("/").await.1.contains("No job has been submitted to this party yet."));
    rig.submit_hostile_job();
    tokio::time::sleep(FRESH).await;
    let at = format!("/jobs/{JOB}");
    for path in ["/", at.as_str()] {
        let (status, page) = rig.get(path).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!page.contains(HOSTILE) && page.contains("&lt;script&gt;") && !page.contains('\u{202e}'), "{page}");
    }
    let page = rig.get(&at).await.1;
    for there in [
        "worst case",
        "SHA-256",
        "one row",
        "name=\"csrf\" value=\"word\"",
        "Approve this job",
        "Reject it",
        "No record leaves.",
        "<dt>after this job</dt><dd><small>at most</small> <span class=\"whole\">",
        "this job, at most",
        "<summary>Approve: spend up to ",
        "type=\"checkbox\" id=\"check-bounds\" required",
        "name=\"until\"",
    ] {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert_eq!(rig.standing(), Some(Standing::Awaiting));
    assert_eq!(rig.post(&format!("{at}/approve"), &[]).await, StatusCode::SEE_OTHER);
    assert_eq!(rig.standing(), Some(Standing::Approved));
    assert!(!rig.get(&at).await.1.contains("Approve this job"));
    assert_eq!(rig.post(&format!("{at}/reject"), &[("reason", "late")]).await, StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_approval_keeps_the_owners_terms() {
    let rig = Fixture::new();
    rig.submit_hostile_job();
    let at = format!("/jobs/{JOB}");
    for (field, value) in [("until", "2020-01-01"), ("until", "soon"), ("purpose", "a\nb")] {
        assert_eq!(rig.post(&format!("{at}/approve"), &[(field, value)]).await, StatusCode::CONFLICT);
    }
    assert_eq!(rig.standing(), Some(Standing::Awaiting));
    let terms = [("purpose", HOSTILE), ("reference", "EC 17/2026"), ("until", "2999-12-31")];
    assert_eq!(rig.post(&format!("{at}/approve"), &terms).await, StatusCode::SEE_OTHER);
    let page = rig.get(&at).await.1;
    assert!(page.contains("reference: EC 17/2026; valid through 2999-12-31 (UTC)") && !page.contains(HOSTILE), "{page}");
}

#[tokio::test]
async fn a_statement_is_a_page_to_print() {
    let rig = Fixture::new();
    rig.submit_hostile_job();
    let (status, page) = rig.get(&format!("/jobs/{JOB}/statement")).await;
    assert_eq!(status, StatusCode::OK);
    for there in ["Particulars", "Signatures", "ledger head", &format!("href=\"/jobs/{JOB}/statement.css\"")] {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert!(!page.contains(HOSTILE) && !page.contains("<style>"), "{page}");
    let (status, style) = rig.get(&format!("/jobs/{JOB}/statement.css")).await;
    assert!(status == StatusCode::OK && style.contains(JOB) && style.contains("counter(pages)"), "{style}");
    for lost in ["/jobs/x/statement", "/jobs/x/statement.css", &format!("/jobs/{}/statement", &JOB[..8])] {
        assert_eq!(rig.get(lost).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_rejection_needs_a_reason_and_ids_are_whole() {
    let rig = Fixture::new();
    rig.submit_hostile_job();
    assert_eq!(rig.post(&format!("/jobs/{JOB}/reject"), &[("reason", " ")]).await, StatusCode::CONFLICT);
    for part in [&JOB[..8], "x", "%27%3B--"] {
        assert_eq!(rig.post(&format!("/jobs/{part}/approve"), &[]).await, StatusCode::NOT_FOUND);
        assert_eq!(rig.get(&format!("/jobs/{part}")).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(rig.get(&format!("/jobs/{JOB}/approve")).await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(rig.standing(), Some(Standing::Awaiting));
    assert_eq!(rig.post(&format!("/jobs/{JOB}/reject"), &[("reason", HOSTILE)]).await, StatusCode::SEE_OTHER);
    assert_eq!(rig.standing(), Some(Standing::Rejected));
    assert!(!rig.get(&format!("/jobs/{JOB}")).await.1.contains(HOSTILE));
}

#[tokio::test]
async fn releases_are_counted_by_day_and_shown() {
    let rig = Fixture::new();
    let mut ledger = Ledger::open_kept(&rig.config.ledger_settings()).unwrap();
    ledger.open_job(&entry(JOB, rig.config.budget)).unwrap();
    ledger.charge(JOB, 0, &[key(0, 1, 1 << 20), key(1, 2, 1 << 20)]).unwrap();
    let first = rig.get("/").await.1;
    assert!(first.contains("; 2 in total") && first.contains("held by 1 open job <b>"), "{first}");
    // Read while the ledger is open, without counting anything twice.
    ledger.charge(JOB, 1, &[key(0, 3, 1 << 20)]).unwrap();
    tokio::time::sleep(FRESH).await;
    let page = rig.get("/").await.1;
    assert!(page.contains("; 3 in total"), "{page}");
    assert_eq!(rig.get("/audit.svg").await.0, StatusCode::NOT_FOUND);
    std::fs::write(audit_of(&rig.config.ledger), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    assert_eq!(rig.get("/audit.svg").await, (StatusCode::OK, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_owned()));
}

/// The page of a job that has ended states what it has cost, and how it ended; what it may spend if it is opened again stands apart.
#[tokio::test]
async fn an_ended_job_has_a_cost_and_an_end() {
    let rig = Fixture::new();
    rig.submit_hostile_job();
    let at = format!("/jobs/{JOB}");
    assert_eq!(rig.post(&format!("{at}/approve"), &[]).await, StatusCode::SEE_OTHER);
    let mut ledger = Ledger::open_kept(&rig.config.ledger_settings()).unwrap();
    ledger.open_job(&entry("other", rig.config.budget)).unwrap();
    ledger.charge("other", 0, &[key(0, 1, 1 << 22)]).unwrap();
    ledger.close_job("other", "finished").unwrap();
    ledger.open_job(&entry(JOB, rig.config.budget)).unwrap();
    ledger.charge(JOB, 0, &[key(0, 1, 1 << 20), key(1, 2, 1 << 20)]).unwrap();
    let running = rig.get(&at).await.1;
    for there in [
        "What it costs",
        "this job has spent <b>",
        "other jobs have spent <b>",
        "may still spend, at most <b>",
        "State: <b>running",
    ] {
        assert!(running.contains(there), "{there} in {running}");
    }
    ledger.close_job(JOB, "cancelled").unwrap();
    let page = rig.get(&at).await.1;
    for there in [
        "State: <b>cancelled",
        "What it has cost",
        "this job has spent <b>",
        "This job has spent epsilon ",
        "Should the coordinator open it again, it may spend at most ",
    ] {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert!(!page.contains("this job, at most") && !page.contains("may still spend"), "{page}");
    ledger.open_job(&entry(JOB, rig.config.budget)).unwrap();
    ledger.close_job(JOB, "internal: the <disk> is full").unwrap();
    let page = rig.get(&at).await.1;
    let words = "State: <b>ended early</b>. The coordinator ended it: internal: the &lt;disk&gt; is full.";
    assert!(page.contains(words), "{page}");
    tokio::time::sleep(FRESH).await;
    assert!(rig.get("/").await.1.contains("ended early"));
    let statement = rig.get(&format!("{at}/statement")).await.1;
    let summary = statement.split("Particulars").next().unwrap_or_default();
    assert!(
        summary.contains("<dt>state</dt><dd>ended early: internal") && statement.contains("Sign a printed statement"),
        "{statement}"
    );
}

#[tokio::test]
async fn the_owner_sees_what_an_answers_time_was_made_up_of() {
    let rig = Fixture::new();
    assert!(rig.get("/").await.1.contains("No number has been released since the party was started."));
    let us = Duration::from_micros;
    rig.times.note([us(1500), us(30), us(470), us(2000)]);
    let (_, page) = rig.get("/").await;
    for there in [
        "aria-labelledby=\"answer-times-title\"",
        "class=\"part p3\"",
        "<th scope=\"row\">computing</th><td class=\"n\">1.500</td>",
        "<th scope=\"row\">ledger, with its syncs</th><td class=\"n\">0.470</td>",
        "<th scope=\"row\">held until the reply delay</th><td class=\"n\">2.000</td>",
        "service</th><td class=\"n\">4.000</td>",
        "No reply was delayed",
    ] {
        assert!(page.contains(there), "{there} in {page}");
    }
    // If the ledger is synced ahead, the page states it.
    let reserve = conclave_vault::ledger::Durability::Reserve { block: 64 };
    let page = times::part(reserve, &rig.times).into_string();
    assert!(page.contains("syncs take 0 ms") && page.contains("ledger, its syncs off the path"), "{page}");
}
