//! `conclave-party dossier`.

use clap::Args;
use conclave_pages::document;
use conclave_pages::page::Footer;

use super::common::{Common, load};
use crate::error::StartError;
use crate::owner::dossier::{dossier as written, registry_entry};

#[derive(Debug, Args)]
pub(super) struct DossierArgs {
    #[command(flatten)]
    common: Common,
    /// Write one HTML file instead of Markdown; printed, it has the party's name and the page's number on every page.
    #[arg(long)]
    html: bool,
    /// Write only the entry for the public registry of deployments of differential privacy, as YAML.
    #[arg(long, conflicts_with = "html")]
    registry: bool,
}

pub(super) fn dossier(args: &DossierArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    if args.registry {
        let entry = registry_entry(&config, &conclave_vault::clock::now())?;
        return args.common.print(&serde_json::json!({ "party": config.name, "format": "yaml", "dossier": entry }), &entry);
    }
    let blocks = written(&config, &conclave_vault::clock::now())?;
    let footer = format!("Privacy dossier of {}", config.name);
    let text = match args.html {
        true => document::printed_file(&blocks, &Footer { text: &footer, at: "" }),
        false => document::markdown(&blocks),
    };
    let format = if args.html { "html" } else { "markdown" };
    args.common.print(&serde_json::json!({ "party": config.name, "format": format, "dossier": text }), &text)
}
