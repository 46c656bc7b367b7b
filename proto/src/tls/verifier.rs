//! Verification of the server's certificate by a member.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::identity::{PeerIdentity, Role};
use crate::revoked::RevokedList;

/// Delegates the check of handshake signatures to rustls, through the verifier in the field `inner`.
macro_rules! signatures_by_inner {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &rustls_pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.inner.verify_tls12_signature(message, cert, dss)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &rustls_pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.inner.verify_tls13_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.inner.supported_verify_schemes()
        }
    };
}
pub(super) use signatures_by_inner;

/// Verifies chain, validity, purpose and host name with rustls, and then the role. Without the role, a party's or an
/// analyst's certificate that was ever issued for serving could impersonate the coordinator.
#[derive(Debug)]
pub(crate) struct CoordinatorVerifier {
    inner: Arc<WebPkiServerVerifier>,
    revoked: Option<RevokedList>,
}

impl CoordinatorVerifier {
    pub(crate) fn new(
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
        revoked: Option<RevokedList>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let inner = WebPkiServerVerifier::builder_with_provider(roots, provider).build()?;
        Ok(Self { inner, revoked })
    }
}

impl ServerCertVerifier for CoordinatorVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        PeerIdentity::from_certificate(end_entity)
            .and_then(|identity| identity.require(Role::Coordinator))
            .and_then(|_| self.revoked.as_ref().map_or(Ok(()), |revoked| revoked.check(end_entity)))
            .map_err(|fault| Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault)))))?;
        Ok(verified)
    }

    signatures_by_inner!();
}
