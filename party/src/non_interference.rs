//! Nothing on the page of metrics depends on a record.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use conclave_vault::answer::{Answerer, Opening};
use conclave_vault::config::{Policy, ReplyDelay};
use conclave_vault::data::{BadRows, Shard};
use conclave_vault::ledger::Ledger;
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::testing::life::{logistic_toml, requests};
use conclave_vault::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};
use prost::Message;

use crate::meters::{Meters, PartyPage};

/// The parts of a run that a reader of the page can see, with those that they may depend on.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    replies: Vec<(Option<u32>, usize)>,
    spent: (u64, u64),
    /// The page of metrics after every reply.
    pages: Vec<String>,
}

/// A whole life of a party: a job opens, is asked everything that may be asked, spends its budget and closes.
fn live(rows: &str, toml: &str, change: impl FnOnce(&mut ModelData)) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", &format!("height,sick\n{rows}"));
    let ledger = folder.path().join("ledger.sqlite");
    Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
    let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
    let delay = ReplyDelay::Fixed(Duration::from_secs(1));
    let policy = Policy { reply_delay: delay, min_noise_sd: 0.5, ..open_policy() };
    let ledger = Ledger::open(&ledger, "hospital-a", &budget()).unwrap();
    let meters = Meters::default();
    let mut answerer = Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, Noise::from_os().unwrap())
        .with_members(Members::anyone());
    assert!(matches!(answerer.open(&open_request(toml)).unwrap(), Opening::Opened(..)));
    answerer.change_records(JOB, change);
    let page = page(&meters, folder.path());
    let (mut replies, mut pages) = (Vec::new(), Vec::new());
    for request in requests(JobSpec::parse(toml).unwrap().dimension()) {
        let answer = answerer.answer(request);
        replies.push((answer.status, answer.encoded_len()));
        meters.replied(answer.status);
        meters.note(answerer.ledger(), answerer.open_jobs().len());
        meters.note_sizes(answerer.ledger());
        pages.push(conclave_ops::page::render(&page).unwrap());
    }
    answerer.close(JOB, "done").unwrap();
    replies.push((answerer.answer(query(9, &[(0, 0.0, 1e-4)])).status, 0));
    // What else is on the machine's disk is no matter of the party's.
    let steady =
        |page: String| page.lines().filter(|line| !line.starts_with("conclave_party_disk_free")).collect::<Vec<_>>().join("\n");
    Seen { replies, spent: answerer.ledger().units(), pages: pages.into_iter().map(steady).collect() }
}

/// The party's page, begun at one moment in all runs.
fn page(meters: &Meters, folder: &Path) -> Arc<dyn conclave_ops::Source> {
    let (budget, certificate, started) = (budget(), folder.join("none.pem"), SystemTime::UNIX_EPOCH);
    Arc::new(PartyPage { meters: meters.clone(), budget, certificate, started })
}

#[test]
fn records_leave_no_trace_on_the_page_of_metrics() {
    let rows = |last: &str| (0..200).map(|i| format!("{},{}\n", 100 + i % 101, i % 2)).collect::<String>() + last + "\n";
    for toml in [MEAN_TOML.to_owned(), logistic_toml()] {
        let ordinary = live(&rows("150,1"), &toml, |_| {});
        let last = ordinary.pages.last().unwrap();
        assert!(last.contains("replies_total{status=\"released\"} ") && !last.contains("releases 0.0"), "{last}");
        assert!(ordinary.replies.iter().any(|(s, _)| *s == Some(1)) && ordinary.replies.iter().any(|(s, _)| *s == Some(0)));
        for last in ["1e300,1", "-1e300,0", "1e-310,1", "100,1", "200,0"] {
            assert_eq!(live(&rows(last), &toml, |_| {}), ordinary, "{last}");
        }
        // What no loader lets through.
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE / 2.0] {
            let one = |data: &mut ModelData| data.outcome[7] = value;
            let all = |data: &mut ModelData| {
                data.outcome.fill(value);
                data.predictors.iter_mut().for_each(|column| column.fill(value));
            };
            assert_eq!(live(&rows("150,1"), &toml, one), ordinary, "one {value}");
            assert_eq!(live(&rows("150,1"), &toml, all), ordinary, "all {value}");
        }
    }
}
