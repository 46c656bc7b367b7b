//! A temporary consortium: a CA, identity folders, a configuration.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::identity::{PeerIdentity, Role};

fn validity() -> Validity {
    Validity { now: SystemTime::now(), days: 1 }
}

pub(crate) fn new_ca() -> KeyedPem {
    ca::create_ca("test consortium", validity()).unwrap()
}

/// Writes an identity folder.
pub(crate) fn identity(ca: &KeyedPem, folder: &Path, role: Role, name: &str) {
    let hosts: Vec<String> = if role == Role::Coordinator { vec!["127.0.0.1".to_owned()] } else { Vec::new() };
    let keyed = ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), &hosts, validity()).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("certificate.pem"), &keyed.pem).unwrap();
    std::fs::write(folder.join("key.pem"), &keyed.key_pem).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.join("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::write(folder.join("ca.pem"), &ca.pem).unwrap();
}

/// Writes a coordinator's identity and configuration into `folder`; returns the configuration's path.
pub(crate) fn coordinator(ca: &KeyedPem, folder: &Path) -> PathBuf {
    identity(ca, &folder.join("identity"), Role::Coordinator, "c");
    let path = folder.join("coordinator.toml");
    let text = "listen = \"127.0.0.1:0\"\nidentity = \"identity\"\nstore = \"c.sqlite\"\ndraws = \"draws\"\n";
    std::fs::write(&path, text).unwrap();
    path
}
