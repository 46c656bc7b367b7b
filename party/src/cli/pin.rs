//! `conclave-party fingerprint` and `pin`: owners verify each other's identity keys themselves, independently of the consortium's
//! CA.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use conclave_proto::ca;
use serde_json::{Map, Value, json};

use super::common::{Common, load, print, print_json};
use super::member_list::{MemberList, member_line};
use crate::error::StartError;
use crate::owner::papers::own_fingerprint;

#[derive(Debug, Args)]
pub(super) struct PinArgs {
    /// The list of the study's parties, one line each as printed by `conclave-party fingerprint`.
    #[arg(long, value_name = "FILE")]
    list: PathBuf,
    /// The list's SHA-256 as read out in the call; any other list is refused. Spaces are ignored.
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Prints this party's line of a list of members, even before its certificate is signed.
pub(super) fn fingerprint(common: &Common) -> Result<(), StartError> {
    let config = load(common)?;
    let own = own_fingerprint(&config)?;
    common.print(&json!({ "party": config.name, "fingerprint": own.to_string() }), &member_line(&config.name, &own))
}

/// Checks a list of members against this party's own key and the stated digest, and prints the lines that pin the members. The
/// owner edits the configuration.
pub(super) fn pin(args: &PinArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let own = own_fingerprint(&config)?;
    let wrong = |what: String| StartError::Input(format!("{}: {what}", args.list.display()));
    let text = fs::read_to_string(&args.list).map_err(|e| wrong(e.to_string()))?;
    let list = MemberList::parse(&text).map_err(wrong)?;
    let name = &config.name;
    match list.pins().of(name) {
        Some(named) if named.contains(&own) => {}
        Some(_) => {
            return Err(wrong(format!(
                "its fingerprint for {name:?} differs from this party's own, {own}: the list has been changed"
            )));
        }
        None => return Err(wrong(format!("it does not name this party: add the line {:?}", member_line(name, &own)))),
    }
    let digest = list.digest();
    if let Some(stated) = &args.sha256 {
        let stated: String = stated.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        if stated != digest {
            return Err(wrong(format!(
                "its SHA-256 is {}, which differs from the stated one: compare the lists",
                ca::grouped(&digest)
            )));
        }
    }
    if args.common.json {
        let others = list.pins().iter().filter(|(other, _)| other != name);
        let pinned: Map<String, Value> =
            others.map(|(other, pins)| (other.to_owned(), pins.iter().map(ToString::to_string).collect())).collect();
        return print_json(&json!({ "sha256": digest, "heard": args.sha256.is_some(), "pinned": pinned }));
    }
    if args.sha256.is_some() {
        return print(list.to_toml(name).trim_end());
    }
    print(&format!(
        "# SHA-256 of this list of members: {}\n# Compare it with every owner in one call before adding this to {}.\n{}",
        ca::grouped(&digest),
        args.common.config.display(),
        list.to_toml(name).trim_end()
    ))
}
