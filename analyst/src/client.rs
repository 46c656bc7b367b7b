//! The connection to the coordinator.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use conclave_proto::error::Fault;
use conclave_proto::identity::Role;
use conclave_proto::tls::{IdentityDir, connect, days_until, is_expiring};
use conclave_proto::v1::jobs_client::JobsClient;
use tonic::transport::Channel;

use crate::output::note;

/// Address of the coordinator and identity of the analyst.
#[derive(Args, Clone)]
pub(crate) struct Connection {
    /// The coordinator's address, https://HOST or https://HOST:PORT
    #[arg(long, value_name = "URL", env = "CONCLAVE_COORDINATOR")]
    pub(crate) coordinator: String,
    /// Your identity folder, with certificate.pem, key.pem and ca.pem (see `conclave ca --help`)
    #[arg(long, value_name = "DIR", env = "CONCLAVE_IDENTITY")]
    pub(crate) identity: PathBuf,
}

/// [`Connection`] of a command that needs none with `--from`.
#[derive(Args, Clone)]
pub(crate) struct OptionalConnection {
    /// The coordinator's address, https://HOST or https://HOST:PORT
    #[arg(long, value_name = "URL", env = "CONCLAVE_COORDINATOR", required_unless_present = "from")]
    coordinator: Option<String>,
    /// Your identity folder, with certificate.pem, key.pem and ca.pem (see `conclave ca --help`)
    #[arg(long, value_name = "DIR", env = "CONCLAVE_IDENTITY", required_unless_present = "from")]
    identity: Option<PathBuf>,
}

impl OptionalConnection {
    /// Returns the connection, if both options are given.
    pub(crate) fn given(self) -> Option<Connection> {
        Some(Connection { coordinator: self.coordinator?, identity: self.identity? })
    }
}

impl Connection {
    /// Dials the coordinator as the analyst of the identity folder.
    pub(crate) async fn open(&self) -> Result<JobsClient<Channel>, Fault> {
        let (client, warning) = self.dial().await?;
        if let Some(warning) = warning {
            note!("conclave: {warning}");
        }
        Ok(client)
    }

    /// Dials the coordinator, and returns the warning of a certificate that expires soon.
    pub(crate) async fn dial(&self) -> Result<(JobsClient<Channel>, Option<String>), Fault> {
        let identity = self.identity()?;
        let warning = expiry_warning(&identity);
        Ok((JobsClient::new(connect(&self.coordinator, &identity).await?), warning))
    }

    /// Loads the identity folder and checks that it is an analyst's.
    pub(crate) fn identity(&self) -> Result<IdentityDir, Fault> {
        let identity = IdentityDir::load(&self.identity)?;
        identity.require(Role::Analyst)?;
        Ok(identity)
    }

    /// Returns the connection options for suggested commands, without those already set by the environment.
    pub(crate) fn options(&self) -> String {
        let from_environment = |key: &str, value: &std::ffi::OsStr| std::env::var_os(key).is_some_and(|set| set == value);
        let mut options = String::new();
        if !from_environment("CONCLAVE_COORDINATOR", self.coordinator.as_ref()) {
            options += &format!(" --coordinator {}", self.coordinator);
        }
        if !from_environment("CONCLAVE_IDENTITY", self.identity.as_os_str()) {
            options += &format!(" --identity {}", self.identity.display());
        }
        options
    }
}

/// Returns a warning from 30 days before the certificate or the CA expires. Unreadable files are left to the dial to refuse.
fn expiry_warning(identity: &IdentityDir) -> Option<String> {
    let expires = identity.expiry().ok()?;
    let (now, folder) = (SystemTime::now(), identity.folder().display());
    if is_expiring(expires.certificate, now) {
        let days = days_until(expires.certificate, now);
        return Some(format!(
            "your certificate in {folder} expires in {days} days; request a new one with `conclave ca request --renew --out \
             {folder}`"
        ));
    }
    is_expiring(expires.ca, now).then(|| {
        let days = days_until(expires.ca, now);
        format!("the consortium's CA in {folder} expires in {days} days; request its new ca.pem")
    })
}
