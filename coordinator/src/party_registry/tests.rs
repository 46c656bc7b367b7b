#![allow(clippy::unwrap_used)]
use conclave_common::query::PartyMetadata;
use conclave_proto::error::Fault;

use super::routing::MOST_ENDS;
use super::*;
use crate::party_event::Message;
use crate::send_queue::send_queue;

#[test]
fn the_newer_stream_has_the_place() {
    let party_registry = PartyRegistry::default();
    let (first, _f) = send_queue();
    let mut old = party_registry.attach("a", first);
    assert!(!old.replaced_another);
    let mut events = party_registry.subscribe("j".into(), &["b".to_owned(), "a".to_owned()]);
    assert!(matches!(events.try_recv().unwrap(), PartyEvent { party: 1, event: Event::Attached(_) }));
    let (second, _s) = send_queue();
    let new = party_registry.attach("a", second);
    assert!(new.replaced_another);
    assert!(old.replaced.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed));
    assert!(matches!(events.try_recv().unwrap().event, Event::Attached(_)));
    party_registry.detach("a", old.generation);
    assert!(party_registry.is_attached("a") && events.try_recv().is_err());
    party_registry.detach("a", new.generation);
    assert!(matches!(events.try_recv().unwrap().event, Event::Detached));
    assert!(!party_registry.is_attached("a"));
}

#[tokio::test]
async fn ends_are_reported_immediately_and_again_at_every_attachment() {
    use tokio_stream::StreamExt;
    let party_registry = PartyRegistry::default();
    let both = ["a".to_owned(), "b".to_owned()];
    let (here, mut sent) = send_queue();
    let _place = party_registry.attach("a", here);
    (0..MOST_ENDS + 2).for_each(|job| party_registry.end(&format!("j{job}"), "finished", &both));
    let (back, mut sent_later) = send_queue();
    let _place = party_registry.attach("b", back.clone());
    back.refuse(&Fault::new(conclave_proto::error::ErrorCode::Unreachable, "that is all"));
    let end = |job: usize| Body::CloseJob(CloseJob { job: format!("j{job}"), reason: "finished".to_owned(), waits: false });
    assert_eq!(sent.next().await.unwrap().unwrap().body, Some(end(0)));
    for job in 2..MOST_ENDS + 2 {
        assert_eq!(sent_later.next().await.unwrap().unwrap().body, Some(end(job)));
    }
    assert!(sent_later.next().await.unwrap().is_err());
}

#[test]
fn the_newest_head_is_kept() {
    let head = |number: u64, fill: u8| [number.to_le_bytes().as_slice(), &[fill; 64]].concat();
    let party_registry = PartyRegistry::with_checkpoints(BTreeSet::new(), HashMap::from([("a".to_owned(), head(5, 0))]));
    assert_eq!((party_registry.checkpoint("a"), party_registry.checkpoint("b")), (head(5, 0), Vec::new()));
    for (shown, newer) in [(head(4, 1), false), (head(5, 1), false), (head(300, 1), true), (vec![9; 71], false), (vec![], false)]
    {
        assert_eq!(party_registry.note_checkpoint("a", &shown), newer);
    }
    assert_eq!(party_registry.checkpoint("a"), head(300, 1));
    assert!(party_registry.note_checkpoint("b", &head(0, 0)));
}

#[test]
fn the_software_of_a_party_is_that_of_its_last_stream() {
    let party_registry = PartyRegistry::default().with_software(HashMap::from([("a".to_owned(), "conclave-party 1".to_owned())]));
    assert_eq!((party_registry.software("a").as_str(), party_registry.software("b").as_str()), ("conclave-party 1", ""));
    party_registry.set_software("a", "conclave-party 2");
    assert_eq!(party_registry.software("a"), "conclave-party 2");
}

#[test]
fn a_revoked_party_is_known_by_its_name_or_by_its_last_certificate() {
    let known = HashMap::from([("c".to_owned(), "ab01".to_owned()), ("d".to_owned(), "ab02".to_owned())]);
    let party_registry = PartyRegistry::default().with_certificates(known);
    party_registry.set_revoked(RevokedList::parse("party/a\nanalyst/b\nAB:01").unwrap());
    assert_eq!(["a", "b", "c", "d"].map(|party| party_registry.is_revoked(party)), [true, false, true, false]);
    assert!(!party_registry.note_certificate("c", "ab01") && party_registry.is_revoked("c"));
    // It has a certificate that is not revoked.
    assert!(party_registry.note_certificate("c", "ab03") && !party_registry.is_revoked("c"));
    party_registry.set_revoked(RevokedList::default());
    assert!(!party_registry.is_revoked("a"));
}

#[test]
fn words_reach_the_job_they_are_about() {
    let party_registry = PartyRegistry::new(BTreeSet::from(["z".to_owned()]));
    let mut events = party_registry.subscribe("j".into(), &["a".to_owned()]);
    assert!(party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
    assert!(!party_registry.deliver("a", "other", Message::Opened(PartyMetadata::rows(3), None, None)));
    assert!(!party_registry.deliver("stranger", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
    assert!(
        matches!(events.try_recv().unwrap().event, Event::Received(Message::Opened(h, None, None)) if h == PartyMetadata::rows(3))
    );
    party_registry.unsubscribe("j");
    assert!(!party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
    let (unknown, known) = party_registry.unknown(&["z".to_owned(), "a".to_owned()]);
    assert_eq!((unknown, known), (vec!["a".to_owned()], vec!["z".to_owned()]));
}
