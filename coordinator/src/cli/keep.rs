//! The commands `backup`, `doctor` and `prune` of `conclave-coordinator`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use conclave_ops::disk::format_bytes;
use conclave_ops::doctor::{object, table, verdict};
use serde_json::json;

use super::output::{print, print_json};
use crate::backup::backup as copy;
use crate::config::Config;
use crate::doctor::examine;
use crate::error::RunError;
use crate::retention::{old_draws, remove};

/// Arguments that these commands share.
#[derive(Args)]
pub(super) struct Common {
    /// The configuration file, coordinator.toml
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Backup {
    #[command(flatten)]
    common: Common,
    /// Folder of the backup; it must not exist yet
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

#[derive(Args)]
pub(super) struct Prune {
    #[command(flatten)]
    common: Common,
    /// Remove draws of jobs that ended at least this many days ago; 0 removes all [default: `keep_draws_days`]
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn backup(args: &Backup) -> Result<(), RunError> {
    let config = Config::load(&args.common.config)?;
    let done = copy(&config, &args.to)?;
    if args.common.json {
        let (jobs, rounds) = (done.jobs, done.rounds);
        print_json(
            &json!({ "folder": args.to, "jobs": jobs, "rounds": rounds, "draws": done.with_draws, "without_draws": done.without_draws }),
        );
        return Ok(());
    }
    let without =
        if done.without_draws > 0 { format!(" ({} more no longer keep theirs)", done.without_draws) } else { String::new() };
    print(&format_args!(
        "{}: {} jobs with {} rounds, each read back, and the draws of {} ended jobs{without}\nKeep it on another machine. To restore it, \
         stop the coordinator, then copy coordinator.sqlite to `store` and draws to `draws`. It does not contain the identity {} or {}.",
        args.to.display(),
        done.jobs,
        done.rounds,
        done.with_draws,
        config.identity.display(),
        args.common.config.display()
    ));
    Ok(())
}

pub(super) fn doctor(common: &Common) -> Result<(), RunError> {
    let findings = examine(&common.config);
    match common.json {
        true => print_json(&object(&findings)),
        false => print(&table(&findings)),
    }
    verdict(&findings).map_err(RunError::System)
}

pub(super) fn prune(args: &Prune) -> Result<(), RunError> {
    let config = Config::load(&args.common.config)?;
    let days = args.older_than.or(config.keep_draws_days).ok_or_else(|| {
        RunError::Input("no retention period: give --older-than DAYS, or set `keep_draws_days` in coordinator.toml".into())
    })?;
    if !config.store.is_file() {
        return Err(RunError::Input(format!("there is no store at {} yet", config.store.display())));
    }
    let old = old_draws(&config, days, SystemTime::now())?;
    let bytes = old.iter().map(|old| old.bytes).sum();
    if !args.dry_run {
        old.iter().try_for_each(remove)?;
    }
    if args.common.json {
        let jobs: Vec<_> =
            old.iter().map(|old| json!({ "job": old.job, "name": old.name, "bytes": old.bytes, "days": old.days })).collect();
        print_json(&json!({ "removed": !args.dry_run, "older_than_days": days, "bytes": bytes, "jobs": jobs }));
        return Ok(());
    }
    for old in &old {
        print(&format_args!("{}  {} days  {}  {}", old.job, old.days, format_bytes(old.bytes), old.name));
    }
    let verb = if args.dry_run { "would be removed" } else { "removed" };
    print(&format_args!("draws of {} jobs {verb}, {}", old.len(), format_bytes(bytes)));
    Ok(())
}
