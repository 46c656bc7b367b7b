//! `conclave ca`: the consortium's certificates.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Subcommand, ValueEnum};
use conclave_proto::ca::{self, CA_DAYS, CertificateSummary, KeyedPem, MEMBER_DAYS, Validity};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::{PeerIdentity, Role};
use serde_json::json;

use crate::files;
use crate::output::say;

/// The certificate of the CA, in its folder and in every identity folder.
pub(crate) const CA: &str = "ca.pem";
/// The CA's private key.
pub(crate) const CA_KEY: &str = "ca-key.pem";
/// A member's certificate.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
/// A member's private key.
pub(crate) const KEY: &str = "key.pem";
/// A member's signing request.
const REQUEST: &str = "request.pem";

/// Keep the consortium's certificates: who may attach, and under which name
///
/// One member keeps the CA. Every other member makes a key and a signing request (`conclave ca request` for analysts and
/// the coordinator, `conclave-party init` for a party), sends the request, and gets back certificate.pem and ca.pem. The
/// three files certificate.pem, key.pem and ca.pem in one folder are a member's identity.
#[derive(Args)]
#[command(after_help = "A consortium from nothing:\n  \
    conclave ca init --name \"Readmission study\" --out ca/\n  \
    conclave ca request coordinator main --host coordinator.example --out coordinator-identity/\n  \
    conclave ca sign coordinator-identity/request.pem --ca ca/ --coordinator\n  \
    conclave ca request analyst alice --out alice-identity/\n  \
    conclave ca sign alice-identity/request.pem --ca ca/\n  \
    conclave ca show alice-identity/certificate.pem")]
pub(crate) struct CaArgs {
    #[command(subcommand)]
    command: CaCommand,
}

#[derive(Subcommand)]
enum CaCommand {
    Init(InitArgs),
    Request(RequestArgs),
    Sign(SignArgs),
    Show(ShowArgs),
}

/// Make a CA: ca.pem, which every member gets, and ca-key.pem, which never leaves its folder
#[derive(Args)]
struct InitArgs {
    /// The consortium's name, as it will stand in every certificate
    #[arg(long, default_value = "Conclave consortium")]
    name: String,
    /// The CA's folder
    #[arg(long, value_name = "DIR", default_value = "ca")]
    out: PathBuf,
    /// Days until the CA expires
    #[arg(long, default_value_t = CA_DAYS)]
    days: u32,
}

/// Make a key and a signing request; the key stays, the request goes to whoever keeps the CA
#[derive(Args)]
struct RequestArgs {
    /// What the holder is to be
    #[arg(value_enum)]
    role: RoleArg,
    /// The holder's name: 1 to 63 of a-z, 0-9 and -
    name: String,
    /// For a coordinator: a DNS name or IP address under which members reach it; may be given several times
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// The identity folder
    #[arg(long, value_name = "DIR", default_value = "identity")]
    out: PathBuf,
}

/// Sign a member's request, having looked at who it is for
///
/// Writes certificate.pem and ca.pem. Check by telephone that the request came from whom it names: the role and name in
/// it are all that others will ever ask for.
#[derive(Args)]
struct SignArgs {
    /// The signing request
    #[arg(value_name = "REQUEST.pem")]
    request: PathBuf,
    /// The CA's folder
    #[arg(long, value_name = "DIR", default_value = "ca")]
    ca: PathBuf,
    /// Where to put certificate.pem and ca.pem [default: beside the request]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Agree to sign a coordinator's request, whose holder can pose as the server to every member
    #[arg(long)]
    coordinator: bool,
    /// Days until the certificate expires
    #[arg(long, default_value_t = MEMBER_DAYS)]
    days: u32,
}

/// Show what a certificate or an identity folder says: role, name, validity, fingerprint
#[derive(Args)]
struct ShowArgs {
    /// A certificate (PEM), or a folder with certificate.pem or ca.pem
    path: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
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

pub(crate) fn run(args: CaArgs) -> Result<ExitCode, Fault> {
    match args.command {
        CaCommand::Init(args) => init(&args),
        CaCommand::Request(args) => request(args),
        CaCommand::Sign(args) => sign(&args),
        CaCommand::Show(args) => show(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn init(args: &InitArgs) -> Result<(), Fault> {
    let made = create_ca(&args.out, &args.name, args.days)?;
    say!("Made {} (fingerprint {}).", args.out.join(CA).display(), ca::fingerprint(&made.pem)?);
    say!("{} signs members: whoever holds it can be anyone. Keep it here and back it up.", args.out.join(CA_KEY).display());
    Ok(())
}

/// Makes a CA in a folder and gives it.
pub(crate) fn create_ca(folder: &Path, name: &str, days: u32) -> Result<KeyedPem, Fault> {
    let made = ca::create_ca(name, from_now(days))?;
    files::make_folder(folder)?;
    files::write_secret(&folder.join(CA_KEY), &made.key_pem)?;
    files::write_new(&folder.join(CA), &made.pem)?;
    Ok(made)
}

/// Makes an identity folder whose key the CA's keeper makes too, as the demo does for everyone.
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

fn request(args: RequestArgs) -> Result<(), Fault> {
    let identity = PeerIdentity::new(args.role.into(), &args.name)?;
    match (identity.role, args.host.is_empty()) {
        (Role::Coordinator, true) => {
            return Err(input("a coordinator needs --host: a DNS name or IP address under which members reach it"));
        }
        (Role::Party | Role::Analyst, false) => {
            return Err(input("--host is for coordinators: nobody dials a party or an analyst"));
        }
        _ => {}
    }
    let made = ca::make_request(&identity, &args.host)?;
    files::make_folder(&args.out)?;
    files::write_secret(&args.out.join(KEY), &made.key_pem)?;
    files::write_new(&args.out.join(REQUEST), &made.pem)?;
    say!(
        "Made a key for {identity}. Send {} to whoever keeps the CA, and put the certificate.pem and ca.pem that come \
         back into {}.",
        args.out.join(REQUEST).display(),
        args.out.display()
    );
    Ok(())
}

fn sign(args: &SignArgs) -> Result<(), Fault> {
    let csr = files::read(&args.request)?;
    let requested = ca::read_request(&csr).map_err(|e| in_file(&args.request, e))?;
    say!("The request is for {}", requested.identity.uri());
    if requested.identity.role == Role::Coordinator {
        say!("reached under {}", requested.hosts.join(", "));
    }
    let authority = KeyedPem { pem: files::read(&args.ca.join(CA))?, key_pem: files::read(&args.ca.join(CA_KEY))? };
    let certificate = ca::sign(&authority, &csr, args.coordinator, from_now(args.days))?;
    let beside = args.request.parent().unwrap_or(Path::new("")).to_owned();
    let out = args.out.clone().unwrap_or(beside);
    let (certificate_path, ca_path) = (out.join(CERTIFICATE), out.join(CA));
    if !out.as_os_str().is_empty() {
        files::make_folder(&out)?;
    }
    if ca_path.exists() && files::read(&ca_path)? != authority.pem {
        return Err(input(&format!("{} is another CA's certificate: give --out a folder of this consortium", ca_path.display())));
    }
    files::write_new(&certificate_path, &certificate)?;
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

fn show(args: &ShowArgs) -> Result<(), Fault> {
    let path = if args.path.is_dir() {
        let own = args.path.join(CERTIFICATE);
        if own.exists() { own } else { args.path.join(CA) }
    } else {
        args.path.clone()
    };
    let summary = ca::summarise(&files::read(&path)?).map_err(|e| in_file(&path, e))?;
    let CertificateSummary { identity, subject, issuer, serial, valid, fingerprint } = summary;
    let uri = identity.as_ref().map(PeerIdentity::uri);
    if args.json {
        say!(
            "{}",
            json!({
                "identity": uri,
                "subject": subject,
                "issuer": issuer,
                "serial": serial,
                "not_before": valid.0,
                "not_after": valid.1,
                "fingerprint_sha256": fingerprint,
            })
        );
    } else {
        say!("{}", path.display());
        say!("  identity     {}", uri.as_deref().unwrap_or("none: the certificate of a CA"));
        say!("  subject      {subject}");
        say!("  issuer       {issuer}");
        say!("  serial       {serial}");
        say!("  valid        {} to {}", valid.0, valid.1);
        say!("  SHA-256      {fingerprint}");
    }
    Ok(())
}

fn from_now(days: u32) -> Validity {
    Validity { now: SystemTime::now(), days }
}

fn in_file(path: &Path, fault: Fault) -> Fault {
    Fault { message: format!("{}: {}", path.display(), fault.message), ..fault }
}

fn input(message: &str) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::tls::IdentityDir;

    fn request_args(role: RoleArg, name: &str, host: &[&str], out: &Path) -> RequestArgs {
        RequestArgs { role, name: name.to_owned(), host: host.iter().map(|h| (*h).to_owned()).collect(), out: out.to_owned() }
    }

    fn sign_args(folder: &Path, ca: &Path, coordinator: bool) -> SignArgs {
        SignArgs { request: folder.join(REQUEST), ca: ca.to_owned(), out: None, coordinator, days: 10 }
    }

    #[test]
    fn a_consortium_from_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca");
        let args = InitArgs { name: "Test".to_owned(), out: ca.clone(), days: 10 };
        init(&args).unwrap();
        assert!(init(&args).is_err(), "a CA is never overwritten");

        let alice = folder.path().join("alice");
        request(request_args(RoleArg::Analyst, "alice", &[], &alice)).unwrap();
        sign(&sign_args(&alice, &ca, false)).unwrap();
        let identity = IdentityDir::load(&alice).unwrap();
        identity.check_at(SystemTime::now()).unwrap();
        assert_eq!(identity.identity().uri(), "conclave://analyst/alice");
        assert!(sign(&sign_args(&alice, &ca, false)).is_err(), "a certificate is never overwritten");

        let main = folder.path().join("main");
        request(request_args(RoleArg::Coordinator, "main", &["localhost", "::1"], &main)).unwrap();
        let refused = sign(&sign_args(&main, &ca, false)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Policy);
        sign(&sign_args(&main, &ca, true)).unwrap();
        let identity = IdentityDir::load(&main).unwrap();
        identity.check_at(SystemTime::now()).unwrap();
        identity.server_config().unwrap();
        for path in [&ca, &main] {
            show(&ShowArgs { path: path.clone(), json: false }).unwrap();
        }
    }

    #[test]
    fn hosts_are_for_coordinators() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("x");
        for (role, host) in [(RoleArg::Coordinator, &[][..]), (RoleArg::Party, &["h"][..])] {
            let fault = request(request_args(role, "x", host, &out)).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidInput);
        }
        assert!(request(request_args(RoleArg::Party, "X y", &[], &out)).is_err());
    }
}
