//! `conclave ca init`.

use std::path::PathBuf;

use clap::Args;
use conclave_proto::ca::{self, CA_DAYS, MEMBER_DAYS};
use conclave_proto::error::Fault;
use conclave_proto::identity::{PeerIdentity, Role};

use super::identity_files::{CA, CA_KEY, create_ca, create_identity};
use crate::faults::input;
use crate::files;
use crate::output::say;

/// Create a CA: ca.pem, for every member, and ca-key.pem, which never leaves its folder; optionally the coordinator's identity
#[derive(Args)]
pub(super) struct InitArgs {
    /// The consortium's name, as shown in every certificate
    #[arg(long, default_value = "Conclave consortium")]
    pub(super) name: String,
    /// The CA's folder
    #[arg(long, value_name = "DIR", default_value = "ca")]
    pub(super) out: PathBuf,
    /// Days until the CA expires
    #[arg(long, default_value_t = CA_DAYS)]
    pub(super) days: u32,
    /// Create the coordinator's identity too, reachable at this DNS name or IP address; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(super) coordinator: Vec<String>,
    /// The coordinator's name
    #[arg(long, value_name = "NAME", default_value = "main", requires = "coordinator")]
    pub(super) coordinator_name: String,
    /// The coordinator's identity folder
    #[arg(long, value_name = "DIR", default_value = "coordinator/identity", requires = "coordinator")]
    pub(super) coordinator_out: PathBuf,
}

pub(super) fn init(args: &InitArgs) -> Result<(), Fault> {
    let coordinator = PeerIdentity::new(Role::Coordinator, &args.coordinator_name)?;
    // Checked before the CA is made, so that a typing error leaves no files behind.
    if !args.coordinator.is_empty() {
        ca::make_request(&coordinator, &args.coordinator)?;
        if !files::is_vacant(&args.coordinator_out)? {
            return Err(input(format!(
                "{} already holds files: name another folder with --coordinator-out",
                args.coordinator_out.display()
            )));
        }
    }
    let made = create_ca(&args.out, &args.name, args.days)?;
    say!("Made {} (fingerprint {}).", args.out.join(CA).display(), ca::fingerprint(&made.pem)?);
    say!(
        "{} signs members: anyone who holds it can impersonate any member. Keep it here and back it up.",
        args.out.join(CA_KEY).display()
    );
    if !args.coordinator.is_empty() {
        let days = MEMBER_DAYS.min(args.days);
        create_identity(&args.coordinator_out, &made, &coordinator, &args.coordinator, days)?;
        say!(
            "Made the identity of {coordinator} in {}, reachable at {}. Its key was made here: if the coordinator runs \
             elsewhere, move the folder there and keep no copy.",
            args.coordinator_out.display(),
            args.coordinator.join(", ")
        );
    }
    Ok(())
}
