//! The coordinator's end of a handshake: admission of members, and the recheck of admitted ones.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, DistinguishedName, Error, ServerConfig};
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio_rustls::TlsAcceptor;

use super::explain::describe;
use super::folder::IdentityDir;
use super::provider::provider;
use crate::ca;
use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};
use crate::revoked::RevokedFile;

/// The coordinator's certificate and its rule of admission.
#[derive(Clone)]
pub struct Gate {
    verifier: Arc<MemberVerifier>,
    acceptor: TlsAcceptor,
    pages: TlsAcceptor,
    hosts: Arc<[String]>,
}

impl IdentityDir {
    /// Builds the coordinator's gate. It presents this certificate, requires one of the consortium's CA from every member, and
    /// rejects those that `revoked` names. That file is read at every handshake.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the folder is not a coordinator's or is unusable.
    pub fn gate(&self, revoked: Option<RevokedFile>) -> Result<Gate, Fault> {
        self.require(Role::Coordinator)?;
        let unusable =
            |e: &dyn fmt::Display| Fault::new(ErrorCode::InvalidInput, format!("{} is unusable: {e}", self.folder().display()));
        let inner = WebPkiClientVerifier::builder_with_provider(self.roots(), provider()).build().map_err(|e| unusable(&e))?;
        let verifier = Arc::new(MemberVerifier { inner, revoked, mandatory: true });
        let optional = Arc::new(MemberVerifier { mandatory: false, ..(*verifier).clone() });
        let acceptor = |verifier: &Arc<MemberVerifier>, protocol: &[u8]| {
            let (chain, key) = self.chain_and_key()?;
            let mut config = ServerConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .map_err(|e| unusable(&e))?
                .with_client_cert_verifier(Arc::clone(verifier) as Arc<dyn ClientCertVerifier>)
                .with_single_cert(chain, key)
                .map_err(|e| unusable(&e))?;
            config.alpn_protocols.push(protocol.to_vec());
            // A resumed session would skip the check of its certificate against revocations and a new CA.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            Ok::<_, Fault>(TlsAcceptor::from(Arc::new(config)))
        };
        let (members, pages) = (acceptor(&verifier, b"h2")?, acceptor(&optional, b"http/1.1")?);
        let hosts = ca::summarise(self.certificate_pem())?.hosts.iter().map(|host| in_url(host)).collect();
        Ok(Gate { verifier, acceptor: members, pages, hosts })
    }
}

/// Formats a host for a URL: in lower case, an IPv6 address in brackets.
fn in_url(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.to_ascii_lowercase(),
    }
}

impl Gate {
    /// Returns the acceptor for members' connections.
    #[must_use]
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Returns the acceptor for browsers (HTTP/1.1), whose certificate is optional. A certificate that breaks the rule of
    /// admission fails the handshake.
    #[must_use]
    pub fn pages(&self) -> &TlsAcceptor {
        &self.pages
    }

    /// Returns the hosts of the coordinator's certificate, formatted for a URL.
    #[must_use]
    pub fn hosts(&self) -> &Arc<[String]> {
        &self.hosts
    }

    /// Checks that a member with this chain, leaf first, would be admitted at `now`, and returns its identity.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] with the reason for the refusal.
    pub fn check(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<PeerIdentity, Fault> {
        let refused = |message: String| Fault::new(ErrorCode::Unauthenticated, message);
        let (leaf, intermediates) = chain.split_first().ok_or_else(|| refused("it presents no certificate".to_owned()))?;
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let verified = self.verifier.inner.verify_client_cert(leaf, intermediates, UnixTime::since_unix_epoch(since));
        verified.map_err(|error| match &error {
            Error::InvalidCertificate(why) => refused(format!("its certificate {}", describe(why))),
            other => refused(format!("its certificate is not accepted: {other}")),
        })?;
        self.verifier.check_revocation(leaf)?;
        PeerIdentity::from_certificate(leaf)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// Verifier of members' certificates: rustls checks chain, validity and purpose; then the certificate must have exactly one
/// valid name and must not be revoked.
#[derive(Debug, Clone)]
struct MemberVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    revoked: Option<RevokedFile>,
    /// True if a handshake without a certificate fails.
    mandatory: bool,
}

impl MemberVerifier {
    fn check_revocation(&self, leaf: &CertificateDer<'_>) -> Result<(), Fault> {
        self.revoked.as_ref().map_or(Ok(()), |file| file.read()?.check(leaf))
    }
}

impl ClientCertVerifier for MemberVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        PeerIdentity::from_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))?;
        // Each of these errors has its own TLS alert, which the member's side turns into a message.
        self.check_revocation(end_entity).map_err(|_| Error::InvalidCertificate(CertificateError::Revoked))?;
        Ok(verified)
    }

    super::verifier::signatures_by_inner!();
}
