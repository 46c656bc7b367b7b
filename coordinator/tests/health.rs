//! gRPC's health service as a member queries it: while the coordinator works, and when it no longer does.
#![allow(clippy::unwrap_used)]

mod consortium;

use std::time::{Duration, Instant};

use conclave_coordinator::{Config, Coordinator};
use conclave_proto::identity::Role;
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::{PROTOCOL, v1};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

const SERVICES: [&str; 3] = ["", "conclave.v1.Link", "conclave.v1.Jobs"];

async fn status(health: &mut HealthClient<Channel>, service: &str) -> ServingStatus {
    let reply = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
    reply.into_inner().status()
}

/// Waits until every service has this status.
async fn all_become(health: &mut HealthClient<Channel>, expected: ServingStatus) {
    let begun = Instant::now();
    for service in SERVICES {
        while status(health, service).await != expected {
            assert!(begun.elapsed() < Duration::from_secs(20), "{service:?} is not {expected:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_store_that_fails_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let ca = consortium::new_ca();
    let config = Config::load(&consortium::coordinator(&ca, folder.path())).unwrap();
    let coordinator = Coordinator::open(&config).await.unwrap();
    let url = format!("https://{}", coordinator.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(coordinator.serve(async {
        let _ = stopped.await;
    }));
    let member = folder.path().join("a");
    consortium::identity(&ca, &member, Role::Party, "a");
    let channel = connect(&url, &IdentityDir::load(&member).unwrap()).await.unwrap();
    let mut health = HealthClient::new(channel.clone());
    all_become(&mut health, ServingStatus::Serving).await;

    // Damage the store: the next party that attaches can't be recorded.
    rusqlite::Connection::open(&config.store).unwrap().execute_batch("DROP TABLE parties").unwrap();
    let (frames, outgoing) = mpsc::unbounded_channel();
    // Covers fields that a later protocol adds.
    #[allow(clippy::needless_update)]
    let hello = v1::Hello { protocol: PROTOCOL, software: "test".into(), ..Default::default() };
    frames.send(v1::PartyFrame { body: Some(Body::Hello(hello)) }).unwrap();
    let attached = LinkClient::new(channel).attach(UnboundedReceiverStream::new(outgoing)).await.unwrap();
    all_become(&mut health, ServingStatus::NotServing).await;

    drop((attached, frames, health, stop));
    served.await.unwrap().unwrap();
}
