//! File names of the CA's folder and of identity folders, and the functions that create them.

use std::path::Path;
use std::time::SystemTime;

use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::error::Fault;
use conclave_proto::identity::PeerIdentity;

use crate::files;

/// The certificate of the CA, in its folder and in every identity folder.
pub(super) const CA: &str = "ca.pem";
pub(super) const CA_KEY: &str = "ca-key.pem";
pub(super) const CERTIFICATE: &str = "certificate.pem";
pub(super) const KEY: &str = "key.pem";
pub(super) const REQUEST: &str = "request.pem";

/// Creates a CA in a folder and returns it.
pub(crate) fn create_ca(folder: &Path, name: &str, days: u32) -> Result<KeyedPem, Fault> {
    let made = ca::create_ca(name, from_now(days))?;
    files::make_folder(folder)?;
    files::write_secret(&folder.join(CA_KEY), &made.key_pem)?;
    files::write_new(&folder.join(CA), &made.pem)?;
    Ok(made)
}

/// Creates an identity folder with a key made by the CA's keeper, as the demo does for every member.
pub(crate) fn create_identity(
    folder: &Path,
    authority: &KeyedPem,
    identity: &PeerIdentity,
    hosts: &[String],
    days: u32,
) -> Result<(), Fault> {
    let made = ca::issue(authority, identity, hosts, from_now(days))?;
    files::make_folder(folder)?;
    files::write_secret(&folder.join(KEY), &made.key_pem)?;
    files::write_new(&folder.join(CERTIFICATE), &made.pem)?;
    files::write_new(&folder.join(CA), &authority.pem)
}

/// Returns a validity that begins now.
pub(super) fn from_now(days: u32) -> Validity {
    Validity { now: SystemTime::now(), days }
}

/// Prefixes a fault's message with the path of its file.
pub(super) fn in_file(path: &Path, fault: Fault) -> Fault {
    Fault { message: format!("{}: {}", path.display(), fault.message), ..fault }
}
