//! `conclave ca revoke`: adds an entry to a list of revoked certificates.

use std::path::{Path, PathBuf};

use clap::Args;
use conclave_common::text::one_line;
use conclave_proto::ca;
use conclave_proto::error::Fault;
use conclave_proto::identity::{PeerIdentity, valid_name};
use conclave_proto::revoked::RevokedList;
use conclave_proto::tls::renew;
use time::OffsetDateTime;

use super::identity_files::in_file;
use crate::faults::input;
use crate::files;
use crate::output::say;

/// Add a certificate or a member to a list of revoked ones
///
/// The list is a text file named by `revoked` in coordinator.toml and party.toml. Each daemon reads its own copy again at
/// every check, so none needs a restart. A certificate is revoked by its serial number, and its holder may receive another; a
/// name is revoked for good.
#[derive(Args)]
pub(super) struct RevokeArgs {
    /// A certificate (PEM), or a member: party/hospital-a, analyst/alice, or alice in any role
    #[arg(value_name = "CERTIFICATE.pem|NAME")]
    pub(super) what: String,
    /// The list; created if missing
    #[arg(long, value_name = "FILE")]
    pub(super) list: PathBuf,
    /// Reason in a few words, written as a comment in the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
}

pub(super) fn revoke(args: &RevokeArgs) -> Result<(), Fault> {
    let mut text = if args.list.exists() { files::read(&args.list)? } else { String::new() };
    let list = RevokedList::parse(&text).map_err(|e| input(format!("{}: {e}; correct it first", args.list.display())))?;
    let path = Path::new(&args.what);
    let (entry, subject) = if path.is_file() { by_serial(path)? } else { by_name(&args.what)? };
    let listed = match path.is_file() {
        true => list.check_pem(&files::read(path)?).is_err(),
        false => list.has_member(&entry),
    };
    if listed {
        say!("{}: {subject} is already revoked; nothing was changed.", args.list.display());
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // A line break in the reason would begin another entry.
    let reason = one_line(&args.reason);
    let why = if reason.trim().is_empty() { String::new() } else { format!(": {}", reason.trim()) };
    text.push_str(&format!("{entry} # {subject}, revoked {}{why}\n", OffsetDateTime::now_utc().date()));
    RevokedList::parse(&text).map_err(input)?;
    // Replaced in one step: a reader of a half-written list would treat every certificate as revoked.
    renew::replace(&args.list, &text)?;
    say!(
        "{}: {subject} is revoked wherever this list is used; the coordinator and the parties read their copies again at every \
         check.",
        args.list.display()
    );
    Ok(())
}

fn by_serial(path: &Path) -> Result<(String, String), Fault> {
    let summary = ca::summarise(&files::read(path)?).map_err(|e| in_file(path, e))?;
    let identity = summary.identity.ok_or_else(|| {
        input(format!("{} is a CA's certificate: members stop trusting it once it is removed from their ca.pem", path.display()))
    })?;
    Ok((summary.serial, format!("a certificate of {}/{}", identity.role, identity.name)))
}

fn by_name(name: &str) -> Result<(String, String), Fault> {
    let plain = name.strip_prefix("conclave://").unwrap_or(name);
    let known = valid_name(plain) || PeerIdentity::parse_uri(&format!("conclave://{plain}")).is_ok();
    if !known {
        return Err(input(format!("{name:?} is neither a certificate file nor a member's name such as analyst/alice")));
    }
    Ok((plain.to_owned(), plain.to_owned()))
}
