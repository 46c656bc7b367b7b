//! Arguments, configuration loading and printing shared by the commands.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use conclave_ops::terminal;

use crate::config::PartyConfig;
use crate::error::StartError;

/// Arguments of every command.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The party's configuration file.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_PARTY_CONFIG")]
    pub(super) config: PathBuf,
    /// Print one JSON object on standard output; `run` writes its log as JSON lines instead.
    #[arg(long)]
    pub(super) json: bool,
}

/// A job of this party, with the arguments of every command.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// The job's id, or its first characters if no other job of this party has them.
    #[arg(value_name = "JOB")]
    pub(super) job: String,
    #[command(flatten)]
    pub(super) common: Common,
}

impl Common {
    /// Prints the object with `--json`, else the text.
    pub(super) fn print(&self, object: &impl serde::Serialize, text: &str) -> Result<(), StartError> {
        if self.json { print_json(object) } else { print(text) }
    }
}

pub(super) fn load(common: &Common) -> Result<PartyConfig, StartError> {
    Ok(PartyConfig::load(&common.config)?)
}

pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), StartError> {
    let text = serde_json::to_string(value).map_err(|e| StartError::System(e.to_string()))?;
    terminal::print_json(&text).map_err(|e| StartError::System(format!("standard output: {e}")))
}

/// Asks the user at the terminal for confirmation.
///
/// # Errors
/// Returns [`StartError::Input`] with the message from `no_terminal` if there is no terminal.
pub(super) fn confirm(prompt: &str, no_terminal: impl FnOnce() -> String) -> Result<bool, StartError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(StartError::Input(no_terminal()));
    }
    let system = |e: std::io::Error| StartError::System(e.to_string());
    terminal::prompt(prompt).map_err(system)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(system)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Prints a line on standard output; does not panic if the reader hangs up.
pub(super) fn print(text: &str) -> Result<(), StartError> {
    terminal::print(&text).map_err(|e| StartError::System(format!("standard output: {e}")))
}
