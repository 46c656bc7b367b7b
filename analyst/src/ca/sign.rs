//! `conclave ca sign`: signs a request once a person has confirmed it.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use conclave_ops::terminal;
use conclave_proto::ca::{self, KeyedPem, MEMBER_DAYS, RequestedIdentity};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::Role;
use conclave_proto::tls::renew;

use super::identity_files::{CA, CA_KEY, CERTIFICATE, KEY, from_now, in_file};
use crate::faults::input;
use crate::files;
use crate::output::say;

/// Sign a member's request after confirming its origin
///
/// Writes certificate.pem and ca.pem. Confirm by telephone, using the fingerprint of the key, that the request came from the
/// member it names: the role and name in it are all that other members check.
#[derive(Args)]
pub(super) struct SignArgs {
    /// The signing request
    #[arg(value_name = "REQUEST.pem")]
    pub(super) request: PathBuf,
    /// The CA's folder
    #[arg(long, value_name = "DIR", default_value = "ca")]
    pub(super) ca: PathBuf,
    /// Folder for certificate.pem and ca.pem [default: beside the request]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Allow signing a coordinator's request; its holder can act as the server for every member
    #[arg(long)]
    pub(super) coordinator: bool,
    /// Days until the certificate expires
    #[arg(long, default_value_t = MEMBER_DAYS)]
    pub(super) days: u32,
    /// Replace an earlier certificate of the same role and name
    #[arg(long)]
    pub(super) renew: bool,
    /// Sign only if the request's key has this fingerprint, as stated by its maker; spaces and colons are ignored
    #[arg(long, value_name = "HEX")]
    pub(super) expect_fingerprint: Option<String>,
    /// Sign without confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

pub(super) fn sign(args: &SignArgs) -> Result<(), Fault> {
    let csr = files::read(&args.request)?;
    let requested = ca::read_request(&csr).map_err(|e| in_file(&args.request, e))?;
    say!("The request is for {}", requested.identity.uri());
    if requested.identity.role == Role::Coordinator {
        say!("reachable at {}", requested.hosts.join(", "));
    }
    say!("Fingerprint of its key: {}", ca::grouped(&requested.key_fingerprint));
    let authority = KeyedPem { pem: files::read(&args.ca.join(CA))?, key_pem: files::read(&args.ca.join(CA_KEY))? };
    // Signed before confirmation: a request that would be refused needs no confirmation.
    let certificate = ca::sign(&authority, &csr, args.coordinator, from_now(args.days))?;
    let beside = args.request.parent().unwrap_or(Path::new("")).to_owned();
    let out = args.out.clone().unwrap_or(beside);
    check_place(args, &out, &requested, &authority)?;
    agree(args, &requested)?;
    if !out.as_os_str().is_empty() {
        files::make_folder(&out)?;
    }
    let (certificate_path, ca_path) = (out.join(CERTIFICATE), out.join(CA));
    match args.renew {
        true => renew::replace(&certificate_path, &certificate)?,
        false => files::write_new(&certificate_path, &certificate)?,
    }
    if !ca_path.exists() {
        files::write_new(&ca_path, &authority.pem)?;
    }
    say!(
        "Signed: {} (fingerprint {}). Send it back with {}.",
        certificate_path.display(),
        ca::fingerprint(&certificate)?,
        ca_path.display()
    );
    Ok(())
}

/// Checks that files at the destination belong to this consortium and this member.
fn check_place(args: &SignArgs, out: &Path, requested: &RequestedIdentity, authority: &KeyedPem) -> Result<(), Fault> {
    let (certificate, ca_path, key) = (out.join(CERTIFICATE), out.join(CA), out.join(KEY));
    if ca_path.exists() && !ca::fingerprints(&files::read(&ca_path)?)?.is_superset(&ca::fingerprints(&authority.pem)?) {
        return Err(input(format!("{} is another CA's certificate", ca_path.display()))
            .with_remedy("choose a folder of this consortium with --out"));
    }
    if !certificate.exists() {
        return Ok(());
    }
    if !args.renew {
        return Err(input(format!("{} already exists: --renew replaces it, --out DIR writes elsewhere", certificate.display())));
    }
    let earlier = ca::summarise(&files::read(&certificate)?).map_err(|e| in_file(&certificate, e))?;
    if earlier.identity.as_ref() != Some(&requested.identity) {
        let owner = earlier.identity.map_or_else(|| "of a CA".to_owned(), |identity| format!("of {}", identity.uri()));
        return Err(input(format!(
            "{} is the certificate {owner}: --renew replaces only a certificate of the same role and name",
            certificate.display()
        )));
    }
    // A certificate beside a key that it does not match would stop the member.
    if key.exists() && ca::key_fingerprint(&files::read(&key)?).map_err(|e| in_file(&key, e))? != requested.key_fingerprint {
        return Err(input(format!(
            "the request is for another key than {}: sign with --out DIR, and install key and certificate together with \
             `conclave ca install` (`conclave-party install` for a party)",
            key.display()
        )));
    }
    Ok(())
}

/// Requires confirmation: the expected fingerprint, --yes, or y at a terminal. Without a terminal the script has decided.
fn agree(args: &SignArgs, requested: &RequestedIdentity) -> Result<(), Fault> {
    if let Some(expected) = &args.expect_fingerprint {
        let plain: String = expected.chars().filter(|c| !c.is_whitespace() && *c != ':').collect::<String>().to_ascii_lowercase();
        if plain == requested.key_fingerprint {
            return Ok(());
        }
        return Err(Fault::new(
            ErrorCode::Policy,
            "not signed: the fingerprint differs from the expected one, so the request may be somebody else's; ask its maker for \
             it again",
        ));
    }
    let stdin = std::io::stdin();
    if args.yes || !stdin.is_terminal() {
        return Ok(());
    }
    let system = |e: std::io::Error| Fault::new(ErrorCode::Internal, format!("the terminal can't be used: {e}"));
    terminal::prompt("Has its maker confirmed this fingerprint? Sign? [y/N] ").map_err(system)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(system)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Fault::new(ErrorCode::Policy, "not signed")),
    }
}
