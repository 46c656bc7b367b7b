//! Real TLS handshakes over loopback: accepted and refused peers, and the error messages they get.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::identity::{PeerIdentity, Role, of_request};
use conclave_proto::tls::{IdentityDir, connect, explain_in_chain};
use conclave_proto::v1;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::jobs_server::{Jobs, JobsServer};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::AsyncReadExt;
use tokio_stream::Stream;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

const LOOPBACK: &str = "127.0.0.1";

fn validity() -> Validity {
    Validity { now: SystemTime::now(), days: 1 }
}

fn new_ca() -> KeyedPem {
    ca::create_ca("test consortium", validity()).unwrap()
}

fn issue(ca: &KeyedPem, role: Role, name: &str) -> KeyedPem {
    let hosts: &[String] = match role {
        Role::Coordinator => &[LOOPBACK.to_owned()],
        _ => &[],
    };
    ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), hosts, validity()).unwrap()
}

fn write(folder: &Path, keyed: &KeyedPem, ca_pem: &str) -> IdentityDir {
    std::fs::write(folder.join("certificate.pem"), &keyed.pem).unwrap();
    std::fs::write(folder.join("key.pem"), &keyed.key_pem).unwrap();
    std::fs::write(folder.join("ca.pem"), ca_pem).unwrap();
    IdentityDir::load(folder).unwrap()
}

fn member(ca: &KeyedPem, role: Role, name: &str) -> IdentityDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &issue(ca, role, name), &ca.pem)
}

/// Answers `Submit` with the caller's own URI.
struct WhoAmI;

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Jobs for WhoAmI {
    type WatchStream = Streamed<v1::JobStatus>;
    type DrawsStream = Streamed<v1::FileChunk>;
    type LogStream = Streamed<v1::JobLog>;

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let job = of_request(&request)?.uri();
        Ok(Response::new(v1::SubmitReply { job }))
    }
    async fn get(&self, _: Request<v1::JobRequest>) -> Result<Response<v1::JobStatus>, Status> {
        Err(Fault::new(ErrorCode::Budget, "spent").at_party("a").into())
    }
    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListReply>, Status> {
        Err(Status::unimplemented("list"))
    }
    async fn watch(&self, _: Request<v1::JobRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("watch"))
    }
    async fn cancel(&self, _: Request<v1::JobRequest>) -> Result<Response<v1::JobStatus>, Status> {
        Err(Status::unimplemented("cancel"))
    }
    async fn draws(&self, _: Request<v1::JobRequest>) -> Result<Response<Self::DrawsStream>, Status> {
        Err(Status::unimplemented("draws"))
    }
    async fn source(&self, _: Request<v1::JobRequest>) -> Result<Response<v1::JobSource>, Status> {
        Err(Status::unimplemented("source"))
    }
    async fn log(&self, _: Request<v1::JobRequest>) -> Result<Response<Self::LogStream>, Status> {
        Err(Status::unimplemented("log"))
    }
    async fn traces(&self, _: Request<v1::TracesRequest>) -> Result<Response<v1::TracesReply>, Status> {
        Err(Status::unimplemented("traces"))
    }
    async fn budget(&self, _: Request<v1::BudgetRequest>) -> Result<Response<v1::BudgetReply>, Status> {
        Err(Status::unimplemented("budget"))
    }
}

fn serve(tls: ServerTlsConfig) -> String {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("https://{}", incoming.local_addr().unwrap());
    tokio::spawn(Server::builder().tls_config(tls).unwrap().add_service(JobsServer::new(WhoAmI)).serve_with_incoming(incoming));
    url
}

async fn call(url: &str, identity: &IdentityDir) -> Result<String, Fault> {
    let mut client = JobsClient::new(connect(url, identity).await?);
    let call = client.submit(v1::SubmitRequest::default());
    match tokio::time::timeout(Duration::from_secs(5), call).await {
        Ok(Ok(reply)) => Ok(reply.into_inner().job),
        Ok(Err(status)) => Err(from_status(&status)),
        Err(_) => panic!("the call hangs"),
    }
}

fn assert_refused(result: Result<String, Fault>, part: &str) {
    let fault = result.unwrap_err();
    assert_eq!(fault.code, ErrorCode::Unauthenticated, "{fault}");
    assert!(fault.message.contains(part), "{fault}");
}

#[tokio::test]
async fn members_are_known_by_their_certificates() {
    let ca = new_ca();
    let url = serve(member(&ca, Role::Coordinator, "main").server_config().unwrap());
    for role in [Role::Party, Role::Analyst] {
        let name = call(&url, &member(&ca, role, "a-1")).await.unwrap();
        assert_eq!(name, format!("conclave://{role}/a-1"));
    }
    let mut client = JobsClient::new(connect(&url, &member(&ca, Role::Analyst, "x")).await.unwrap());
    let status = client.get(v1::JobRequest::default()).await.unwrap_err();
    assert_eq!(from_status(&status), Fault::new(ErrorCode::Budget, "spent").at_party("a"));
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let ca = new_ca();
    let url = serve(member(&ca, Role::Coordinator, "main").server_config().unwrap());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = url.trim_start_matches("https://");
    let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(LOOPBACK.try_into().unwrap(), tcp).await;
    // Under TLS 1.3 the refusal follows the client's own handshake.
    let refusal = match tls {
        Ok(mut tls) => tls.read_u8().await.unwrap_err(),
        Err(error) => error,
    };
    assert_refused(Err(explain_in_chain(&refusal).unwrap()), "received none");
}

#[tokio::test]
async fn a_client_of_another_ca_is_refused() {
    let (ca, other) = (new_ca(), new_ca());
    let url = serve(member(&ca, Role::Coordinator, "main").server_config().unwrap());
    // The client trusts the server's CA, so the server is the one that refuses. Both CAs have the same name.
    let folder = tempfile::tempdir().unwrap();
    let both = format!("{}{}", ca.pem, other.pem);
    let stranger = write(folder.path(), &issue(&other, Role::Party, "a-1"), &both);
    assert_refused(call(&url, &stranger).await, "not signed by the coordinator's CA");
}

#[tokio::test]
async fn a_server_of_another_ca_is_refused() {
    let (ca, other) = (new_ca(), new_ca());
    let url = serve(member(&other, Role::Coordinator, "main").server_config().unwrap());
    let party = member(&ca, Role::Party, "a-1");
    assert_refused(call(&url, &party).await, "was not signed by the CA in ca.pem");
}

fn impostor(ca: &KeyedPem, keyed: &KeyedPem) -> ServerTlsConfig {
    ServerTlsConfig::new().identity(Identity::from_pem(&keyed.pem, &keyed.key_pem)).client_ca_root(Certificate::from_pem(&ca.pem))
}

#[tokio::test]
async fn a_party_cannot_serve() {
    let ca = new_ca();
    let party = member(&ca, Role::Party, "b");
    assert!(party.server_config().is_err());
    let url = serve(impostor(&ca, &issue(&ca, Role::Party, "b")));
    let victim = member(&ca, Role::Party, "a-1");
    assert_refused(call(&url, &victim).await, "not valid for this end");
}

#[tokio::test]
async fn a_server_certificate_without_the_role_is_refused() {
    // A consortium whose CA also issues web certificates: chain, purpose and host are right, but the role is wrong.
    let ca = new_ca();
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer_key = rcgen::KeyPair::from_pem(&ca.key_pem).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&ca.pem, issuer_key).unwrap();
    for uri in ["conclave://party/b", "https://elsewhere/"] {
        let mut params = rcgen::CertificateParams::default();
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names =
            vec![rcgen::SanType::URI(uri.try_into().unwrap()), rcgen::SanType::IpAddress(LOOPBACK.parse().unwrap())];
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let keyed = KeyedPem { pem: certificate.pem(), key_pem: key.serialize_pem() };
        let url = serve(impostor(&ca, &keyed));
        let result = call(&url, &member(&ca, Role::Party, "a-1")).await;
        assert_refused(result, "server's certificate is refused");
    }
}

#[tokio::test]
async fn the_host_name_is_checked() {
    let ca = new_ca();
    let url = serve(member(&ca, Role::Coordinator, "main").server_config().unwrap());
    let elsewhere = url.replace(LOOPBACK, "localhost");
    assert_refused(call(&elsewhere, &member(&ca, Role::Party, "a-1")).await, "is not for the host \"localhost\"");
}

#[tokio::test]
async fn an_expired_coordinator_is_refused() {
    let ca = new_ca();
    let long_ago = Validity { now: SystemTime::now() - Duration::from_secs(10 * 86_400), days: 1 };
    let name = PeerIdentity::new(Role::Coordinator, "main").unwrap();
    let keyed = ca::issue(&ca, &name, &[LOOPBACK.to_owned()], long_ago).unwrap();
    let url = serve(impostor(&ca, &keyed));
    assert_refused(call(&url, &member(&ca, Role::Party, "a-1")).await, "has expired");
}

#[tokio::test]
async fn an_expired_member_hears_it_before_it_dials() {
    let ca = new_ca();
    let long_ago = Validity { now: SystemTime::now() - Duration::from_secs(10 * 86_400), days: 1 };
    let name = PeerIdentity::new(Role::Party, "a-1").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keyed = ca::issue(&ca, &name, &[], long_ago).unwrap();
    let expired = write(folder.path(), &keyed, &ca.pem);
    let fault = connect("https://127.0.0.1:9", &expired).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::InvalidInput);
    assert!(fault.message.contains("has expired"), "{fault}");
}

#[tokio::test]
async fn nobody_there_and_no_tls_there() {
    let ca = new_ca();
    let party = member(&ca, Role::Party, "a-1");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let fault = call(&format!("https://{address}"), &party).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::Unreachable);
    assert!(fault.message.contains("does not speak TLS"), "{fault}");
    plain.await.unwrap();
    // The listener is gone by now.
    let fault = call(&format!("https://{address}"), &party).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::Unreachable);
    assert!(fault.message.contains(&address.to_string()), "{fault}");
}
