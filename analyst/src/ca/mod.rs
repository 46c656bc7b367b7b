//! `conclave ca`: the consortium's certificates.

mod install;
mod request;
mod revoke;
mod show;
mod sign;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use conclave_proto::ca::{self, CA_DAYS, KeyedPem, MEMBER_DAYS, Validity};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::{PeerIdentity, Role};

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
#[command(after_help = "A consortium from nothing, its coordinator included:\n  \
    conclave ca init --name \"Readmission study\" --out ca/ --coordinator coordinator.example --coordinator-out coordinator/identity\n  \
    conclave ca request analyst alice --out alice-identity/\n  \
    conclave ca sign alice-identity/request.pem --ca ca/\n  \
    conclave ca show alice-identity/certificate.pem\n\n\
    Where somebody else runs the coordinator, its key is made there:\n  \
    conclave ca request coordinator main --host coordinator.example --out coordinator-identity/\n  \
    conclave ca sign coordinator-identity/request.pem --ca ca/ --coordinator\n\n\
    Before a certificate ends, and when it must count no more:\n  \
    conclave ca request --renew --out alice-identity/\n  \
    conclave ca sign alice-identity/request.pem --ca ca/ --renew\n  \
    conclave ca revoke analyst/alice --list revoked.txt")]
pub(crate) struct CaArgs {
    #[command(subcommand)]
    command: CaCommand,
}

#[derive(Subcommand)]
enum CaCommand {
    Init(InitArgs),
    Request(request::RequestArgs),
    Sign(sign::SignArgs),
    Install(install::InstallArgs),
    Revoke(revoke::RevokeArgs),
    Show(show::ShowArgs),
}

/// Make a CA: ca.pem, which every member gets, and ca-key.pem, which never leaves its folder; and the coordinator's identity, where asked
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
    /// Make the coordinator's identity too, reached under this DNS name or IP address; may be given several times
    #[arg(long, value_name = "HOST")]
    coordinator: Vec<String>,
    /// The coordinator's name
    #[arg(long, value_name = "NAME", default_value = "main", requires = "coordinator")]
    coordinator_name: String,
    /// The coordinator's identity folder
    #[arg(long, value_name = "DIR", default_value = "coordinator/identity", requires = "coordinator")]
    coordinator_out: PathBuf,
}

pub(crate) fn run(args: CaArgs) -> Result<ExitCode, Fault> {
    match args.command {
        CaCommand::Init(args) => init(&args),
        CaCommand::Request(args) => request::request(&args),
        CaCommand::Sign(args) => sign::sign(&args),
        CaCommand::Install(args) => install::install(&args),
        CaCommand::Revoke(args) => revoke::revoke(&args),
        CaCommand::Show(args) => show::show(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn init(args: &InitArgs) -> Result<(), Fault> {
    let coordinator = PeerIdentity::new(Role::Coordinator, &args.coordinator_name)?;
    // Before the CA is made, so that a slip of the pen leaves nothing behind.
    if !args.coordinator.is_empty() {
        ca::make_request(&coordinator, &args.coordinator)?;
        if !files::is_vacant(&args.coordinator_out)? {
            return Err(input(&format!(
                "{} holds files already: name another folder with --coordinator-out",
                args.coordinator_out.display()
            )));
        }
    }
    let made = create_ca(&args.out, &args.name, args.days)?;
    say!("Made {} (fingerprint {}).", args.out.join(CA).display(), ca::fingerprint(&made.pem)?);
    say!("{} signs members: whoever holds it can be anyone. Keep it here and back it up.", args.out.join(CA_KEY).display());
    if !args.coordinator.is_empty() {
        let days = MEMBER_DAYS.min(args.days);
        create_identity(&args.coordinator_out, &made, &coordinator, &args.coordinator, days)?;
        say!(
            "Made the identity of {coordinator} in {}, reached under {}. Its key was made here: if the coordinator runs elsewhere, \
             carry the folder there and keep no copy.",
            args.coordinator_out.display(),
            args.coordinator.join(", ")
        );
    }
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
mod tests;
