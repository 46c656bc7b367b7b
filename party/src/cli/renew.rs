//! `conclave-party renew` and `install`: replace a certificate without a restart.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use conclave_proto::ca;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::{days_until, renew};
use serde_json::json;

use super::common::{Common, load, print, print_json};
use crate::error::StartError;

#[derive(Debug, Args)]
pub(super) struct RenewArgs {
    #[command(flatten)]
    common: Common,
    /// Request a certificate for a new key, kept beside the current one until `install` installs the certificate.
    #[arg(long)]
    new_key: bool,
}

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// The certificate from the CA.
    #[arg(value_name = "CERTIFICATE.pem")]
    certificate: PathBuf,
    /// The consortium's CA, as received with the first certificate.
    #[arg(long, value_name = "CA.pem")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

pub(super) fn renew(args: &RenewArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    if !config.key.exists() {
        return Err(StartError::Input(format!(
            "{}: there is no key to renew; `conclave-party init` makes one",
            config.key.display()
        )));
    }
    let identity = PeerIdentity::new(Role::Party, &config.name)?;
    let path = renew::request(&config.identity, &config.key, &identity, &[], args.new_key)?;
    let fingerprint = ca::read_request(&read(&path)?)?.key_fingerprint;
    let key = match args.new_key {
        true => format!(" for a new key, kept as {}", renew::next_key(&config.key).display()),
        false => String::new(),
    };
    let text = format!(
        "{}: signing request created{key}\nfingerprint of its key: {}\n\nNext: send the request to the keeper of the \
         consortium's CA and read the fingerprint to them by telephone. Install the certificate that they return:\n    \
         conclave-party install certificate.pem --config {}\n\
         The party may keep running meanwhile.",
        path.display(),
        ca::grouped(&fingerprint),
        args.common.config.display()
    );
    args.common.print(&json!({ "request": path, "fingerprint_sha256": fingerprint, "new_key": args.new_key }), &text)
}

pub(super) fn install(args: &InstallArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let identity = PeerIdentity::new(Role::Party, &config.name)?;
    let certificate = read(&args.certificate)?;
    let ca_pem = args.ca.as_deref().map(read).transpose()?;
    let now = SystemTime::now();
    let done = renew::install(&config.identity, &config.key, &identity, &certificate, ca_pem.as_deref(), now)
        .map_err(|fault| StartError::Input(format!("{}: {fault}", args.certificate.display())))?;
    let days = days_until(done.expiry, now);
    if args.common.json {
        return print_json(
            &json!({ "identity": config.identity, "days_left": days, "new_key": done.new_key, "new_ca": done.new_ca }),
        );
    }
    print(&format!(
        "{}: installed the certificate of {identity}{}, valid for {days} days",
        config.identity.display(),
        if done.new_key { " with its new key" } else { "" }
    ))?;
    if done.new_ca {
        let fingerprint = ca::fingerprint(ca_pem.as_deref().unwrap_or_default())?;
        print(&format!("the consortium's CA now has the fingerprint {}", ca::grouped(&fingerprint)))?;
    }
    match crate::presence::running(&config.ledger) {
        Some(_) => print("The running party loads it by itself."),
        None => print(&format!(
            "\nNext:\n    conclave-party doctor --config {0}\n    conclave-party run --config {0}",
            args.common.config.display()
        )),
    }
}

fn read(path: &Path) -> Result<String, StartError> {
    std::fs::read_to_string(path).map_err(|e| StartError::Input(format!("{}: {e}", path.display())))
}
