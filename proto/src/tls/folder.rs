//! An identity folder: `certificate.pem`, `key.pem` and `ca.pem`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use zeroize::Zeroizing;

use super::provider::{load_key, provider};
use super::verifier::CoordinatorVerifier;
use crate::chain::check_chain;
use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};
use crate::revoked::RevokedList;

/// The member's certificate chain, leaf first.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
/// The member's private key.
pub(crate) const KEY: &str = "key.pem";
/// The consortium's CA certificate, or several of them during a replacement.
pub(crate) const CA: &str = "ca.pem";
/// Timeout of a client's TLS handshake, after which it is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A loaded and checked identity folder: the files parse, key and certificate belong together, and the certificate has
/// exactly one role and name.
#[derive(Clone)]
pub struct IdentityDir {
    folder: PathBuf,
    key_file: PathBuf,
    identity: PeerIdentity,
    certificate_pem: String,
    /// Overwritten when it goes.
    key_pem: Zeroizing<String>,
    ca_pem: String,
    chain: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
}

impl IdentityDir {
    /// Loads and checks the folder.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] naming the file and the remedy.
    pub fn load(folder: &Path) -> Result<Self, Fault> {
        Self::load_with_key(folder, &folder.join(KEY))
    }

    /// Loads the folder like [`IdentityDir::load`], with the private key in a file elsewhere: a folder into which others may
    /// write certificates need not hold the key.
    ///
    /// # Errors
    /// As [`IdentityDir::load`].
    pub fn load_with_key(folder: &Path, key_file: &Path) -> Result<Self, Fault> {
        let certificate_pem = read(folder, CERTIFICATE)?;
        let key_pem = read_file(key_file)?;
        let ca_pem = read(folder, CA)?;
        Self::assemble(folder, key_file, certificate_pem, key_pem, ca_pem)
    }

    /// Checks the current or future content of the folder's files.
    pub(super) fn assemble(
        folder: &Path,
        key_file: &Path,
        certificate_pem: String,
        key_pem: String,
        ca_pem: String,
    ) -> Result<Self, Fault> {
        let key_pem = Zeroizing::new(key_pem);
        let chain = certificates(folder, CERTIFICATE, &certificate_pem)?;
        let key = private_key(key_file, &key_pem)?;
        CertifiedKey::from_der(chain.clone(), key, &provider()).map_err(|e| {
            file_fault(key_file, &format!("does not belong to {CERTIFICATE} ({e}): restore the key that signed the request"))
        })?;
        let mut roots = RootCertStore::empty();
        for root in certificates(folder, CA, &ca_pem)? {
            roots.add(root).map_err(|e| {
                fault(folder, CA, &format!("is not a usable CA certificate ({e}): ask the consortium for its ca.pem"))
            })?;
        }
        let identity = chain.first().ok_or_else(|| fault(folder, CERTIFICATE, "holds no certificate")).and_then(|leaf| {
            PeerIdentity::from_certificate(leaf).map_err(|e| fault(folder, CERTIFICATE, &format!("is unusable: {e}")))
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            key_file: key_file.to_owned(),
            identity,
            certificate_pem,
            key_pem,
            ca_pem,
            chain,
            roots: Arc::new(roots),
        })
    }

    /// Returns the role and name in the certificate.
    pub fn identity(&self) -> &PeerIdentity {
        &self.identity
    }

    /// Returns the folder of the identity.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the certificate chain, PEM, leaf first.
    pub(super) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the CA's certificates, PEM.
    pub(super) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the consortium's CA certificates.
    pub(super) fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.roots)
    }

    /// Returns the certificate chain for a handshake, and its key.
    pub(super) fn chain_and_key(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Fault> {
        Ok((self.chain.clone(), private_key(&self.key_file, &self.key_pem)?))
    }

    pub(super) fn signing_key(&self) -> Result<Arc<dyn rustls::sign::SigningKey>, Fault> {
        load_key(private_key(&self.key_file, &self.key_pem)?)
            .map_err(|e| file_fault(&self.key_file, &format!("is unusable: {e}")))
    }

    /// Returns true if the files of both identities are identical.
    pub fn has_same_files(&self, other: &Self) -> bool {
        self.certificate_pem == other.certificate_pem && self.key_pem == other.key_pem && self.ca_pem == other.ca_pem
    }

    /// Checks that the certificate has the required role.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] naming the folder and both roles.
    pub fn require(&self, role: Role) -> Result<(), Fault> {
        if self.identity.role == role {
            return Ok(());
        }
        Err(fault(
            &self.folder,
            CERTIFICATE,
            &format!("is the certificate of {}: a certificate of role {role} is required", self.identity.uri()),
        ))
    }

    /// Returns the coordinator's configuration: it presents this certificate and requires a client certificate of the
    /// consortium's CA.
    ///
    /// # Errors
    /// As [`require`](Self::require) for the role of coordinator.
    pub fn server_config(&self) -> Result<ServerTlsConfig, Fault> {
        self.require(Role::Coordinator)?;
        Ok(ServerTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate_pem, self.key_pem.as_str()))
            .client_ca_root(Certificate::from_pem(&self.ca_pem))
            .client_auth_optional(false)
            .timeout(HANDSHAKE_TIMEOUT))
    }

    /// Returns the member's configuration: it presents this certificate and requires a coordinator's certificate of the
    /// consortium's CA.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if key or CA are unusable; [`ErrorCode::Internal`] if TLS cannot be set up.
    pub(crate) fn client_config(&self, revoked: Option<RevokedList>) -> Result<ClientConfig, Fault> {
        let verifier = self.verifier(revoked)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|e| Fault::new(ErrorCode::Internal, format!("could not set up TLS: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(self.chain.clone(), private_key(&self.key_file, &self.key_pem)?)
            .map_err(|e| file_fault(&self.key_file, &format!("is unusable: {e}")))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(config)
    }

    /// Returns the verifier of the server's certificate.
    pub(super) fn verifier(&self, revoked: Option<RevokedList>) -> Result<Arc<dyn ServerCertVerifier>, Fault> {
        let verifier = CoordinatorVerifier::new(Arc::clone(&self.roots), provider(), revoked)
            .map_err(|e| fault(&self.folder, CA, &format!("is not a usable CA certificate: {e}")))?;
        Ok(Arc::new(verifier))
    }

    /// Checks at `now` that the certificate is within its validity and was signed by this folder's CA, so that a
    /// member gets a clear error before it dials.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] naming the file and the remedy.
    pub fn check_at(&self, now: std::time::SystemTime) -> Result<(), Fault> {
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        check_chain(&self.chain, &self.roots.roots, self.identity.role, UnixTime::since_unix_epoch(since))
            .map_err(|reason| fault(&self.folder, CERTIFICATE, &reason))
    }
}

fn read(folder: &Path, name: &str) -> Result<String, Fault> {
    read_file(&folder.join(name))
}

fn read_file(file: &Path) -> Result<String, Fault> {
    // Reading a pipe could block for ever.
    let regular = || match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(std::io::Error::other("not a regular file")),
    };
    regular().and_then(|()| std::fs::read_to_string(file)).map_err(|e| {
        file_fault(
            file,
            &format!("cannot be read ({e}): an identity folder holds {CERTIFICATE}, {KEY} and {CA}, see `conclave ca --help`"),
        )
    })
}

fn certificates(folder: &Path, name: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(fault(folder, name, "holds no PEM certificate")),
        Err(e) => Err(fault(folder, name, &format!("is not readable PEM ({e})"))),
    }
}

fn private_key(file: &Path, pem: &str) -> Result<PrivateKeyDer<'static>, Fault> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|e| file_fault(file, &format!("holds no PEM private key ({e})")))
}

fn fault(folder: &Path, name: &str, what: &str) -> Fault {
    file_fault(&folder.join(name), what)
}

fn file_fault(file: &Path, what: &str) -> Fault {
    Fault::new(ErrorCode::InvalidInput, format!("{} {what}", file.display()))
}
