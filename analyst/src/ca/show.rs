//! `conclave ca show`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use conclave_pages::document::{self, Block, fact};
use conclave_proto::ca::{self, CertificateSummary};
use conclave_proto::error::Fault;
use conclave_proto::identity::PeerIdentity;
use conclave_proto::tls::{days_until, is_expiring};
use serde_json::json;

use super::identity_files::{CA, CERTIFICATE, in_file};
use crate::files;
use crate::output::show as show_either;

/// Show the role, name, validity and fingerprint of a certificate or an identity folder
#[derive(Args)]
pub(super) struct ShowArgs {
    /// A certificate (PEM), or a folder with certificate.pem or ca.pem
    pub(super) path: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn show(args: &ShowArgs) -> Result<(), Fault> {
    let path = if args.path.is_dir() {
        let own = args.path.join(CERTIFICATE);
        if own.exists() { own } else { args.path.join(CA) }
    } else {
        args.path.clone()
    };
    let pem = files::read(&path)?;
    let summary = ca::summarise(&pem).map_err(|e| in_file(&path, e))?;
    let (end, now) = (ca::not_after(&pem)?, SystemTime::now());
    let days = days_until(end, now);
    let CertificateSummary { identity, subject, issuer, serial, valid, fingerprint, key_fingerprint, hosts } = summary;
    let uri = identity.as_ref().map(PeerIdentity::uri);
    let object = json!({
        "identity": uri, "subject": subject, "issuer": issuer, "serial": serial, "not_before": valid.0, "not_after": valid.1,
        "days_left": days, "hosts": hosts, "fingerprint_sha256": fingerprint, "key_fingerprint_sha256": key_fingerprint,
    });
    let left = match days {
        ..0 => "expired".to_owned(),
        days if is_expiring(end, now) => format!("{days} days left: renew it"),
        days => format!("{days} days left"),
    };
    let mut facts = vec![
        fact("identity", uri.as_deref().unwrap_or("none (CA certificate)")),
        fact("subject", subject),
        fact("issuer", issuer),
        fact("serial", serial),
        fact("valid", format!("{} to {} ({left})", valid.0, valid.1)),
    ];
    facts.extend((!hosts.is_empty()).then(|| fact("hosts", hosts.join(", "))));
    facts.extend([fact("SHA-256", fingerprint), fact("key SHA-256", ca::grouped(&key_fingerprint))]);
    let text = document::text(&[Block::Heading(path.display().to_string()), Block::Facts(facts)]);
    show_either(args.json, &object, &text);
    Ok(())
}
