//! The commands share their arguments, how they load the configuration, and how they print.

use std::path::PathBuf;

use clap::Args;
use conclave_ops::terminal;

use crate::config::PartyConfig;
use crate::error::StartError;

/// What every command takes.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The party's configuration file.
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Print one JSON object on standard output; `run` writes its log as JSON lines instead.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn load(common: &Common) -> Result<PartyConfig, StartError> {
    Ok(PartyConfig::load(&common.config)?)
}

pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), StartError> {
    let text = serde_json::to_string(value).map_err(|e| StartError::System(e.to_string()))?;
    terminal::say_json(&text).map_err(|e| StartError::System(format!("standard output: {e}")))
}

/// Prints a line on standard output; a reader that hangs up is no panic.
pub(super) fn print(text: &str) -> Result<(), StartError> {
    terminal::say(&text).map_err(|e| StartError::System(format!("standard output: {e}")))
}
