//! Diagnosis of the coordinator's TLS: the certificate that it presents, and any error in it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::Error;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::explain::explain_in_chain;
use super::folder::IdentityDir;
use crate::error::{ErrorCode, Fault};
use crate::revoked::RevokedList;

/// The certificate that the other end presented, valid or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentedCertificate {
    /// Start and end of its validity.
    pub valid: (SystemTime, SystemTime),
    /// The names in it: hosts, addresses and URIs.
    pub names: Vec<String>,
    /// The issuer, as text.
    pub issuer: String,
}

/// The outcome of a handshake.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The presented certificate; `None` if the handshake failed before it, or the certificate can't be read.
    pub presented: Option<PresentedCertificate>,
    /// Success if this identity accepts the server, else the reason.
    pub verdict: Result<(), Fault>,
}

/// Performs a handshake with the server behind `stream`, with the checks of [`super::connect`], and closes the connection.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the identity or the host is unusable.
pub async fn probe<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    host: &str,
    identity: &IdentityDir,
    revoked: Option<RevokedList>,
) -> Result<Probe, Fault> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Fault::new(ErrorCode::InvalidInput, format!("{host:?} is neither a DNS name nor an IP address")))?;
    let seen = Arc::new(Mutex::new(None));
    let mut config = identity.client_config(revoked.clone())?;
    let inner = identity.verifier(revoked)?;
    config.dangerous().set_certificate_verifier(Arc::new(RecordingVerifier { inner, seen: Arc::clone(&seen) }));
    let verdict = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map(drop).map_err(|error| {
        explain_in_chain(&error).unwrap_or_else(|| Fault::new(ErrorCode::Unreachable, format!("the handshake failed: {error}")))
    });
    let presented = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(Probe { presented, verdict })
}

/// Records the presented certificate before its verification.
#[derive(Debug)]
struct RecordingVerifier {
    inner: Arc<dyn ServerCertVerifier>,
    seen: Arc<Mutex<Option<PresentedCertificate>>>,
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = read(end_entity);
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    super::verifier::signatures_by_inner!();
}

fn read(der: &CertificateDer<'_>) -> Option<PresentedCertificate> {
    let (_, parsed) = X509Certificate::from_der(der).ok()?;
    let moment = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let names =
        parsed.subject_alternative_name().ok().flatten().map(|found| found.value.general_names.iter().map(text).collect());
    Some(PresentedCertificate {
        valid: (moment(parsed.validity().not_before.timestamp()), moment(parsed.validity().not_after.timestamp())),
        names: names.unwrap_or_default(),
        issuer: parsed.issuer().to_string(),
    })
}

fn text(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(v4), _) => std::net::IpAddr::from(v4).to_string(),
            (_, Ok(v6)) => std::net::IpAddr::from(v6).to_string(),
            _ => "an unreadable address".to_owned(),
        },
        _ => "a name of another kind".to_owned(),
    }
}
