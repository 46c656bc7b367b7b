//! The command `conclave-coordinator forget`.

use clap::Args;
use conclave_proto::identity::{PeerIdentity, Role};
use serde_json::json;

use super::keep::Common;
use super::output::{print, print_json};
use crate::config::Config;
use crate::error::RunError;
use crate::retired::change;

#[derive(Args)]
pub(super) struct Forget {
    /// The member to retire, as party/NAME or analyst/NAME
    #[arg(value_name = "ROLE/NAME")]
    member: String,
    #[command(flatten)]
    common: Common,
    /// Take the member back
    #[arg(long)]
    undo: bool,
}

pub(super) fn forget(args: &Forget) -> Result<(), RunError> {
    let member = &args.member;
    let identity = PeerIdentity::parse_uri(&format!("conclave://{member}"));
    if !identity.is_ok_and(|identity| matches!(identity.role, Role::Party | Role::Analyst)) {
        return Err(RunError::Input(format!("{member:?} is not a member: write party/NAME or analyst/NAME")));
    }
    let config = Config::load(&args.common.config)?;
    let changed = change(&config.store, member, !args.undo)?;
    if args.common.json {
        print_json(&json!({ "member": member, "retired": !args.undo, "changed": changed }));
        return Ok(());
    }
    let says = match (args.undo, changed) {
        (_, false) => "nothing had to change",
        (true, true) => "it may take part in new jobs again",
        (false, true) => {
            "its unfinished jobs end within a second of a running coordinator, with the draws made so far, and no alert \
                          names it. It keeps its access: `conclave ca revoke` ends that"
        }
    };
    print(&format_args!("{member}: {says}"));
    Ok(())
}
