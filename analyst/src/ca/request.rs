//! `conclave ca request`: makes a key and a signing request, first or for renewal.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conclave_proto::ca;
use conclave_proto::error::Fault;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::renew;

use super::identity_files::{CERTIFICATE, KEY, REQUEST, in_file};
use crate::faults::input;
use crate::files;
use crate::output::say;

/// Make a key and a signing request; the key stays here, the request goes to the keeper of the CA
#[derive(Args)]
pub(super) struct RequestArgs {
    /// Role of the holder
    #[arg(value_enum, required_unless_present = "renew", conflicts_with = "renew")]
    pub(super) role: Option<RoleArg>,
    /// The holder's name: 1 to 63 of a-z, 0-9 and -
    #[arg(required_unless_present = "renew")]
    pub(super) name: Option<String>,
    /// For a coordinator: a DNS name or IP address at which members reach it; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(super) host: Vec<String>,
    /// The identity folder
    #[arg(long, value_name = "DIR", default_value = "identity")]
    pub(super) out: PathBuf,
    /// Request a new certificate for the identity in the folder, with its key, name and hosts
    #[arg(long)]
    pub(super) renew: bool,
    /// Renew with a new key, kept as key.next.pem until `conclave ca install` installs its certificate
    #[arg(long, requires = "renew")]
    pub(super) new_key: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleArg {
    Party,
    Analyst,
    Coordinator,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Party => Self::Party,
            RoleArg::Analyst => Self::Analyst,
            RoleArg::Coordinator => Self::Coordinator,
        }
    }
}

pub(super) fn request(args: &RequestArgs) -> Result<(), Fault> {
    let (Some(role), Some(name)) = (args.role, args.name.as_deref()) else { return renewal(args) };
    let identity = PeerIdentity::new(role.into(), name)?;
    check_hosts(&identity, &args.host)?;
    let made = ca::make_request(&identity, &args.host)?;
    files::make_folder(&args.out)?;
    files::write_secret(&args.out.join(KEY), &made.key_pem)?;
    files::write_new(&args.out.join(REQUEST), &made.pem)?;
    say!(
        "Made a key for {identity}. Send {} to the keeper of the CA, and put the certificate.pem and ca.pem that you receive \
         into {}.",
        args.out.join(REQUEST).display(),
        args.out.display()
    );
    print_fingerprint(&made.pem)
}

/// Makes a renewal request for the identity named in the folder's certificate.
fn renewal(args: &RequestArgs) -> Result<(), Fault> {
    let path = args.out.join(CERTIFICATE);
    let summary = ca::summarise(&files::read(&path)?).map_err(|e| in_file(&path, e))?;
    let identity = summary.identity.ok_or_else(|| input(format!("{} is a CA's certificate", path.display())))?;
    let hosts = if args.host.is_empty() { summary.hosts } else { args.host.clone() };
    check_hosts(&identity, &hosts)?;
    let written = renew::request(&args.out, &args.out.join(KEY), &identity, &hosts, args.new_key)?;
    let key = if args.new_key { "a new key, kept as key.next.pem until then" } else { "the same key" };
    say!(
        "Made a request to renew {identity} with {key}. Send {} to the keeper of the CA, then install the certificate that you \
         receive:\n    \
         conclave ca install certificate.pem --into {}",
        written.display(),
        args.out.display()
    );
    print_fingerprint(&files::read(&written)?)
}

fn print_fingerprint(request_pem: &str) -> Result<(), Fault> {
    let fingerprint = ca::read_request(request_pem)?.key_fingerprint;
    say!("Read its fingerprint to the keeper by telephone: {}", ca::grouped(&fingerprint));
    Ok(())
}

fn check_hosts(identity: &PeerIdentity, hosts: &[String]) -> Result<(), Fault> {
    match (identity.role, hosts.is_empty()) {
        (Role::Coordinator, true) => Err(input("a coordinator needs --host: a DNS name or IP address at which members reach it")),
        (Role::Party | Role::Analyst, false) => {
            Err(input("--host is for coordinators: parties and analysts accept no connections"))
        }
        _ => Ok(()),
    }
}
