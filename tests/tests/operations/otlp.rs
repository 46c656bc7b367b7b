//! Traces of real processes, as a collector receives them. Needs a build that can send them: `--features otlp`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::EXE;

/// A collector that stores received spans by the service that sent them.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<BTreeMap<String, Vec<Span>>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut kept = self.0.lock().expect("a lock");
        for of_resource in request.into_inner().resource_spans {
            let attributes = of_resource.resource.unwrap_or_default().attributes;
            let service = attributes.into_iter().find(|a| a.key == "service.name").and_then(|a| a.value?.value);
            let Some(Value::StringValue(service)) = service else { panic!("a service without a name") };
            kept.entry(service).or_default().extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Listens on a free port, on its own thread.
    fn start(&self) -> SocketAddr {
        let (said, address) = std::sync::mpsc::channel();
        let service = TraceServiceServer::new(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                said.send(listener.local_addr().expect("an address")).expect("somebody waits");
                let incoming = TcpListenerStream::new(listener);
                tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await.expect("a server");
            });
        });
        address.recv().expect("an address")
    }

    fn wait_for(&self, service: &str, names: &[&str]) -> Vec<Span> {
        let begun = Instant::now();
        loop {
            let spans = self.0.lock().expect("a lock").get(service).cloned().unwrap_or_default();
            if names.iter().all(|name| spans.iter().any(|span| span.name == *name)) {
                return spans;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{service} sent {spans:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_party_sends_spans_of_its_link_and_no_other() {
    let collector = Collector::default();
    let key: &'static str = format!("otlp = \"http://{}\"", collector.start()).leak();
    let mut cluster = Cluster::new(EXE);
    cluster.signal_coordinator("TERM");
    assert!(cluster.wait_coordinator_exit().success());
    cluster.coordinator_extra = key;
    cluster.start_coordinator();
    let data = study::write(&cluster.path("a.csv"), &study::csv(&study::records(200, 1)));
    let columns = &study::COLUMNS;
    let setup = PartySetup {
        name: "a",
        data: &data,
        columns,
        epsilon: 990.0,
        data_extra: "",
        budget_extra: "",
        policy_extra: "reply_delay_ms = 0",
    };
    let party = cluster.enrol(&setup);
    cluster.configure_party(party, key);
    cluster.start_party(party);
    let sampler = "chains = 1\ndraws = 200\nwarmup = 20\nseed = 3\nlocate_share = 0.05";
    let result = cluster.submit(&study::job(&["a"], sampler, "epsilon = 900\ndelta = 1e-6"));
    let job = result["job"].as_str().expect("a job");
    cluster.signal_party(party, "TERM");
    assert!(cluster.wait_party_exit(party).success());
    cluster.signal_coordinator("TERM");
    assert!(cluster.wait_coordinator_exit().success());

    let of_party = collector.wait_for("conclave-party", &["attached", "job opened", "job closed"]);
    let mut names: Vec<&str> = of_party.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["attached", "job closed", "job opened"], "none of two hundred rounds has a span");
    for span in &of_party {
        assert!(span.attributes.iter().all(|a| a.key == "job") && span.events.is_empty(), "{span:?}");
    }
    let of_coordinator = collector.wait_for("conclave-coordinator", &["job", "attached"]);
    let traced = of_coordinator.iter().find(|span| span.name == "job").expect("the job");
    let id = traced.attributes.iter().find(|a| a.key == "job").and_then(|a| a.value.clone()?.value);
    assert_eq!(id, Some(Value::StringValue(job.to_owned())));
}
