//! Dials the coordinator under the party's own identity. All settings are read again at every attempt: a
//! renewed certificate needs no restart.

use std::path::PathBuf;

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::Role;
use conclave_proto::revoked::{RevokedFile, RevokedList};
use conclave_proto::tls::{self, IdentityDir, ProxySettings};
use tonic::transport::Channel;

/// Settings of a party's connection to its coordinator.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) party: String,
    pub(crate) coordinator: String,
    pub(crate) proxy: ProxySettings,
    pub(crate) identity: PathBuf,
    pub(crate) key: PathBuf,
    /// List of revoked certificates; applies to the coordinator's too.
    pub(crate) revoked: Option<RevokedFile>,
}

impl Dial {
    /// Loads the current identity folder.
    pub(super) fn load(&self) -> Result<IdentityDir, Fault> {
        load_identity(&self.identity, &self.key, &self.party)
    }

    /// Reads the current list of revoked certificates; `None` if the owner has none.
    pub(super) fn revoked(&self) -> Result<Option<RevokedList>, Fault> {
        self.revoked.as_ref().map(RevokedFile::read).transpose()
    }

    /// Connects with this identity, and returns the list of revocations used to check the coordinator's certificate.
    pub(super) async fn connect_as(&self, identity: &IdentityDir) -> Result<(Channel, Option<RevokedList>), Fault> {
        let revoked = self.revoked()?;
        let channel = tls::connect_through(&self.coordinator, identity, &self.proxy, revoked.clone()).await?;
        Ok((channel, revoked))
    }
}

/// Loads the identity folder and checks that it is this party's.
pub(crate) fn load_identity(folder: &std::path::Path, key: &std::path::Path, party: &str) -> Result<IdentityDir, Fault> {
    let identity = IdentityDir::load_with_key(folder, key)?;
    identity.require(Role::Party)?;
    let name = &identity.identity().name;
    if name != party {
        return Err(Fault::new(
            ErrorCode::InvalidInput,
            format!(
                "{}: the certificate belongs to party {name:?}, but the configuration's name is {party:?}; use one name",
                folder.display()
            ),
        ));
    }
    Ok(identity)
}
