//! `conclave ca install`: checks a signed certificate and installs it.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use conclave_proto::ca;
use conclave_proto::error::Fault;
use conclave_proto::tls::{days_until, renew};

use super::identity_files::{CERTIFICATE, KEY, in_file};
use crate::faults::input;
use crate::files;
use crate::output::say;

/// Check a signed certificate and install it in its identity folder, with the pending key if there is one
///
/// Nothing is changed unless the certificate is for a key of the folder and for the same role and name, signed by the
/// folder's CA and valid now. A running coordinator loads it by itself.
#[derive(Args)]
pub(super) struct InstallArgs {
    /// The certificate
    #[arg(value_name = "CERTIFICATE.pem")]
    pub(super) certificate: PathBuf,
    /// The identity folder
    #[arg(long, value_name = "DIR")]
    pub(super) into: PathBuf,
    /// The consortium's CA, for a folder that has none yet
    #[arg(long, value_name = "CA.pem")]
    pub(super) ca: Option<PathBuf>,
}

pub(super) fn install(args: &InstallArgs) -> Result<(), Fault> {
    let pem = files::read(&args.certificate)?;
    let named = ca::summarise(&pem).map_err(|e| in_file(&args.certificate, e))?.identity;
    let named =
        named.ok_or_else(|| input(format!("{} is the certificate of a CA, not of a member", args.certificate.display())))?;
    let own = args.into.join(CERTIFICATE);
    // A folder's first certificate is checked only against the key of its request: there is no name to compare yet.
    let identity = match own.exists() {
        true => ca::summarise(&files::read(&own)?).map_err(|e| in_file(&own, e))?.identity.unwrap_or(named),
        false => named,
    };
    let ca_pem = args.ca.as_deref().map(files::read).transpose()?;
    let now = SystemTime::now();
    let done = renew::install(&args.into, &args.into.join(KEY), &identity, &pem, ca_pem.as_deref(), now)
        .map_err(|e| in_file(&args.certificate, e))?;
    say!(
        "{}: installed the certificate of {identity}{}, valid for {} days.",
        args.into.display(),
        if done.new_key { " with its new key" } else { "" },
        days_until(done.expiry, now)
    );
    Ok(())
}
