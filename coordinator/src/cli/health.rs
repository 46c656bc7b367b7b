//! The command `conclave-coordinator health`.

use std::process::ExitCode;

use clap::Args;
use conclave_ops::terminal;

use super::keep::Common;
use super::output::{print, print_json};
use crate::config::Config;
use crate::operations::{Standing, health_of};

#[derive(Args)]
pub(super) struct Health {
    #[command(flatten)]
    common: Common,
    /// Succeed for every coordinator that a restart would not help: 0 unless it hangs (1) or does not run (4). For a liveness
    /// check: one that fails restarts the process, and a halted coordinator must not be stopped
    #[arg(long)]
    alive: bool,
}

pub(super) fn health(options: &Health) -> ExitCode {
    let config = match Config::load(&options.common.config) {
        Ok(config) => config,
        Err(error) => {
            terminal::print_error(&format_args!("conclave-coordinator: {error}"));
            return error.exit_code();
        }
    };
    let (standing, says) = health_of(&config.store);
    if options.common.json {
        print_json(&serde_json::json!({
            "serving": standing == Standing::Serving, "alive": standing.is_alive(), "state": standing.as_str(), "says": says,
        }));
    } else if standing == Standing::Halted {
        print(&format!("{}: {says}", standing.as_str()));
    } else {
        print(&says);
    }
    ExitCode::from(match standing {
        Standing::Serving => 0,
        Standing::NotRunning => 4,
        _ if options.alive && standing.is_alive() => 0,
        _ => 1,
    })
}
