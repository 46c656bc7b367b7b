//! Permits that end, keys of signers, and jobs that extend others.
#![allow(clippy::unwrap_used)]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use conclave_proto::ca::{self, Validity};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::ErrorCode;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::submission;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::{self, party_frame::Body};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::answer::tests::queries_of;
use crate::answer::{Answerer, Opening};
use crate::config::{Approve, Policy};
use crate::consent::{ConsentStore, Decider, Standing};
use crate::data::{BadRows, Shard};
use crate::ledger::Ledger;
use crate::members::Members;
use crate::noise::Noise;
use crate::ports::Permission;
use crate::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};

/// A permit of every job that ends on command.
#[derive(Clone, Default)]
struct Ends(Arc<AtomicBool>);

impl Permission for Ends {
    fn check(&self, _: &str) -> Result<(), String> {
        if self.0.load(Ordering::SeqCst) { Err("permit_expired: it ended".to_owned()) } else { Ok(()) }
    }
}

struct House {
    folder: TempDir,
    ends: Ends,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.csv", "height\n150\n160\n");
        Ledger::init(&folder.path().join("ledger.sqlite"), "hospital-a", &budget()).unwrap();
        Self { folder, ends: Ends::default() }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn decisions(&self) -> ConsentStore {
        ConsentStore::open(&self.ledger()).unwrap()
    }

    fn start(&self, approve: Approve, members: Members) -> Answerer {
        let shard = Shard::load(&data(self.folder.path().join("a.csv"), BadRows::Stop), None).unwrap();
        let ledger = Ledger::open(&self.ledger(), "hospital-a", &budget()).unwrap();
        let policy = Policy { approve, ..open_policy() };
        Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, Noise::from_os().unwrap())
            .with_members(members)
            .with_consent(self.decisions())
            .permitted_by(Box::new(self.ends.clone()))
    }

    /// Returns the kind and the body of every event of a job.
    fn events(&self) -> Vec<(String, String)> {
        let connection = rusqlite::Connection::open(self.ledger()).unwrap();
        let mut select = connection.prepare("SELECT kind, body FROM events WHERE job > 0 ORDER BY seq").unwrap();
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }
}

fn kinds(events: &[(String, String)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// A message that waited in the queue past the end of the permit is not charged; the job is let go, its consent stays, and it opens again
/// should the clock have been wrong.
#[test]
fn a_permit_that_ends_stops_charges_and_openings_and_nothing_else() {
    let house = House::new();
    let mut answerer = house.start(Approve::Automatic, Members::anyone());
    let (outbox, mut inbox) = mpsc::channel(8);
    let mut ask = |answerer: &mut Answerer| {
        answerer.open_or_wait(open_request(MEAN_TOML), Instant::now(), outbox.clone());
        inbox.try_recv().unwrap().body.unwrap()
    };
    assert!(matches!(ask(&mut answerer), Body::JobOpened(_)));
    let status = |answerer: &mut Answerer, round| {
        AnswerStatus::from_wire(answerer.answer(query(round, &[(0, 0.0, 1e-4)])).status.unwrap()).unwrap()
    };
    assert_eq!(status(&mut answerer, 0), AnswerStatus::Released);
    house.ends.0.store(true, Ordering::SeqCst);
    assert_eq!((status(&mut answerer, 1), queries_of(&house.ledger())), (AnswerStatus::Policy, 1));
    answerer.lapse(JOB, "permit_expired: it ended");
    answerer.lapse("another", "permit_expired: it ended");
    let Body::JobRefused(last) = inbox.try_recv().unwrap().body.unwrap() else { panic!("the analyst learns nothing") };
    let words = "the owner of hospital-a no longer answers this job: permit_expired: it ended; ask the owner for a new permit";
    assert!(last.code == "revoked" && last.reason.contains(words), "{last:?}");
    let refused = answerer.open(&open_request(MEAN_TOML)).unwrap_err();
    assert!(refused.code == ErrorCode::Revoked && refused.message.contains(words), "{refused}");
    assert_eq!(house.decisions().standing(JOB).unwrap(), Some(Standing::Approved));
    house.ends.0.store(false, Ordering::SeqCst);
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert_eq!(status(&mut answerer, 1), AnswerStatus::Released);
    assert_eq!(kinds(&house.events()), ["approve", "lapse", "close", "open"]);
}

/// A crash between the entry of a job and its approval can't be: one transaction enters both.
#[test]
fn a_job_is_entered_with_its_approval() {
    let house = House::new();
    let mut ledger = Ledger::open(&house.ledger(), "hospital-a", &budget()).unwrap();
    let approval = r#"{"by":"owner"}"#;
    let small = conclave_privacy::accounting::Budget::new(1.0, 1e-6).unwrap();
    ledger.open_job(&crate::ledger::JobEntry { approval: Some(approval), ..crate::testing::entry(JOB, small) }).unwrap();
    assert_eq!(house.events(), [("approve".to_owned(), approval.to_owned())]);
    drop(ledger);
    let mut answerer = house.start(Approve::Automatic, Members::anyone());
    let second = answerer.open(&v1::OpenJob { job: "second".to_owned(), ..open_request(MEAN_TOML) }).unwrap();
    assert!(matches!(second, Opening::Opened(..)), "{second:?}");
    assert_eq!(kinds(&house.events()), ["approve", "approve"]);
}

/// The policy approves an extension under the permit of the job that it extends.
#[test]
fn an_extension_needs_the_permit_of_its_job() {
    let house = House::new();
    let mut store = house.decisions();
    let permit = r#"{"until":"2027-03-31"}"#;
    store.ask(&open_request(MEAN_TOML), &[1; 32]).unwrap();
    store.decide_under(JOB, Standing::Approved, Decider::Owner, "", Some(permit)).unwrap();
    let mut answerer = house.start(Approve::Automatic, Members::anyone());
    let toml = format!("extends = \"{JOB}\"\n{MEAN_TOML}");
    answerer.open(&v1::OpenJob { job: "longer".to_owned(), ..open_request(&toml) }).unwrap();
    let longer = house.decisions().request("longer").unwrap();
    assert_eq!((longer.permit.as_deref(), longer.decided.unwrap().decider.as_str()), (Some(permit), "policy"));
    let entered: serde_json::Value = serde_json::from_str(&house.events()[0].1).unwrap();
    assert_eq!(entered["permit"]["until"], "2027-03-31");
}

fn identity(ca: &ca::KeyedPem, folder: &Path, role: Role, name: &str) -> IdentityDir {
    let validity = Validity { now: SystemTime::now(), days: 10 };
    let issued = ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), &[], validity).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &ca.pem)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    IdentityDir::load(folder).unwrap()
}

fn signed(identity: &IdentityDir, toml: &str) -> v1::OpenJob {
    let signature = submission::sign(identity, toml).unwrap();
    let job = submission::check(Some(&signature), "alice", toml).unwrap();
    v1::OpenJob { job, submission: Some(signature), ..open_request(toml) }
}

/// Signs the bytes of a submission again, with another identity.
fn resigned(identity: &IdentityDir, of: &v1::Submission) -> v1::Submission {
    let digest: [u8; 32] = Sha256::digest(MEAN_TOML.as_bytes()).into();
    let fields: [&[u8]; 4] = [b"conclave submission 1", b"alice", &digest, &of.nonce];
    let message: Vec<u8> = fields.iter().flat_map(|field| [&(field.len() as u64).to_le_bytes()[..], field].concat()).collect();
    let signature = identity.sign(&message).unwrap();
    v1::Submission {
        nonce: of.nonce.clone(),
        scheme: signature.scheme,
        signature: signature.bytes,
        certificate: signature.certificate,
    }
}

/// The fingerprint of the key that signed a job is kept with the request and in the ledger. A certificate that comes with a job that is
/// entered already was not checked against the CA: it names no key, and changes none.
#[test]
fn the_key_that_signed_a_job_is_kept() {
    let house = House::new();
    let town = ca::create_ca("town", Validity { now: SystemTime::now(), days: 10 }).unwrap();
    let rogue = ca::create_ca("rogue", Validity { now: SystemTime::now(), days: 10 }).unwrap();
    let alice = identity(&town, &house.folder.path().join("alice"), Role::Analyst, "alice");
    let forged = identity(&rogue, &house.folder.path().join("forged"), Role::Analyst, "alice");
    let mut answerer = house.start(Approve::Automatic, Members::of(&house.folder.path().join("alice"), None));
    let request = signed(&alice, MEAN_TOML);
    answerer.open(&request).unwrap();
    let key = ca::key_digest(&request.submission.as_ref().unwrap().certificate).unwrap();
    assert_eq!(house.decisions().request(&request.job).unwrap().signer, Some(key));
    let entered: serde_json::Value = serde_json::from_str(&house.events()[0].1).unwrap();
    assert_eq!(entered["signer"], crate::ledger::events::hex(&key));
    // A job that only the ledger knows, presented again with another certificate over the same text: its key stays unknown.
    std::fs::remove_file(ConsentStore::path_of(&house.ledger())).unwrap();
    drop(answerer);
    let mut answerer = house.start(Approve::Automatic, Members::of(&house.folder.path().join("alice"), None));
    let again = resigned(&forged, request.submission.as_ref().unwrap());
    answerer.open(&v1::OpenJob { submission: Some(again), ..request.clone() }).unwrap();
    assert_eq!(house.decisions().request(&request.job).unwrap().signer, None);
}
