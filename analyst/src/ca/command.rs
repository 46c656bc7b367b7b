//! `conclave ca` and its subcommands.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use conclave_proto::error::Fault;

use super::{init, install, request, revoke, show, sign};

/// Manage the consortium's certificates: its members and their names
///
/// One member keeps the CA. Every other member makes a key and a signing request (`conclave ca request` for analysts and
/// the coordinator, `conclave-party init` for a party), sends the request and receives certificate.pem and ca.pem. One folder
/// with the three files certificate.pem, key.pem and ca.pem is a member's identity.
#[derive(Args)]
#[command(after_help = "Set up a consortium and its coordinator:\n  \
    conclave ca init --name \"Readmission study\" --out ca/ --coordinator coordinator.example --coordinator-out coordinator/identity\n  \
    conclave ca request analyst alice --out alice-identity/\n  \
    conclave ca sign alice-identity/request.pem --ca ca/\n  \
    conclave ca show alice-identity/certificate.pem\n\n\
    If another organisation runs the coordinator, it makes its own key:\n  \
    conclave ca request coordinator main --host coordinator.example --out coordinator-identity/\n  \
    conclave ca sign coordinator-identity/request.pem --ca ca/ --coordinator\n\n\
    Renew a certificate before it expires, or revoke it:\n  \
    conclave ca request --renew --out alice-identity/\n  \
    conclave ca sign alice-identity/request.pem --ca ca/ --renew\n  \
    conclave ca revoke analyst/alice --list revoked.txt")]
pub(crate) struct CaArgs {
    #[command(subcommand)]
    command: CaCommand,
}

#[derive(Subcommand)]
enum CaCommand {
    Init(init::InitArgs),
    Request(request::RequestArgs),
    Sign(sign::SignArgs),
    Install(install::InstallArgs),
    Revoke(revoke::RevokeArgs),
    Show(show::ShowArgs),
}

pub(crate) fn run(args: CaArgs) -> Result<ExitCode, Fault> {
    match args.command {
        CaCommand::Init(args) => init::init(&args),
        CaCommand::Request(args) => request::request(&args),
        CaCommand::Sign(args) => sign::sign(&args),
        CaCommand::Install(args) => install::install(&args),
        CaCommand::Revoke(args) => revoke::revoke(&args),
        CaCommand::Show(args) => show::show(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}
