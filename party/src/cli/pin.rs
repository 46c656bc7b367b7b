//! `conclave-party fingerprint` and `pin`: owners know each other's identity keys by themselves, and not from the consortium's CA.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use conclave_proto::ca;
use serde_json::{Map, Value, json};

use super::common::{Common, load, print, print_json};
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::link::load_identity;
use conclave_vault::secure::{Fingerprint, MemberList, member_line};

#[derive(Debug, Args)]
pub(super) struct PinArgs {
    /// The list of the study's parties, a line each as `conclave-party fingerprint` prints it.
    #[arg(long, value_name = "FILE")]
    list: PathBuf,
    /// The list's SHA-256 as it was read out to you: nothing is printed for another list. Spaces don't count.
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// This party's line of a list of members, before its certificate is signed too.
pub(super) fn fingerprint(common: &Common) -> Result<(), StartError> {
    let config = load(common)?;
    let own = own_fingerprint(&config)?;
    if common.json {
        return print_json(&json!({ "party": config.name, "fingerprint": own.to_string() }));
    }
    print(&member_line(&config.name, &own))
}

/// Checks a list of members against this party's own key and what was read out, and prints what pins them. The configuration is the owner's
/// to change.
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
                "it has another fingerprint for {name:?} than this party's own, {own}: somebody has changed the list"
            )));
        }
        None => return Err(wrong(format!("it does not name this party: add the line {:?}", member_line(name, &own)))),
    }
    let digest = list.digest();
    if let Some(heard) = &args.sha256 {
        let heard: String = heard.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        if heard != digest {
            return Err(wrong(format!(
                "its SHA-256 is {} and not the one that was read out: compare the lists",
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
        "# SHA-256 of this list of members: {}\n# Compare it with every owner in one call before this goes into {}.\n{}",
        ca::grouped(&digest),
        args.common.config.display(),
        list.to_toml(name).trim_end()
    ))
}

fn own_fingerprint(config: &PartyConfig) -> Result<Fingerprint, StartError> {
    let file = config.identity.join("certificate.pem");
    let read = |file: &Path| fs::read_to_string(file).map_err(|e| StartError::Input(format!("{}: {e}", file.display())));
    if !file.exists() {
        // Not signed yet: the certificate will be of the key that there is.
        return Ok(Fingerprint(ca::digest_of_key(&read(&config.key)?)?));
    }
    // Read as the daemon reads it, so that key, certificate and name belong together.
    load_identity(&config.identity, &config.key, &config.name)?;
    Ok(Fingerprint(ca::key_digest(&read(&file)?)?))
}
