//! Reads the facts of the pages from the party's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::{Listed, Listing, Report, list, report_kept};
use crate::owner::{JobView, jobs, releases_by_day};
use crate::presence::{Presence, running};
use conclave_ops::private_files::with_suffix;
use conclave_vault::ledger::LedgerError;

const LAST: u64 = 20;

/// All facts at one moment.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) daemon: Option<Presence>,
    pub(super) ledger: Result<Ledger, String>,
    /// True if an audit has written its plot.
    pub(super) audited: bool,
}

/// Content of the ledger and of the file of decisions.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) report: Report,
    pub(super) jobs: Vec<JobView>,
    /// Releases by day, days since 1970.
    pub(super) days: BTreeMap<i64, u64>,
    pub(super) last: Vec<Listed>,
}

/// Releases by day, counted up to some entry: only later ones are counted next time.
#[derive(Debug, Clone, Default)]
pub(super) struct Days {
    upto: u64,
    counts: BTreeMap<i64, u64>,
}

impl Facts {
    pub(super) fn unreadable(why: &str) -> Self {
        Self { daemon: None, ledger: Err(why.to_owned()), audited: false }
    }
}

/// Returns the path of the plot that `conclave-party audit --config` writes beside the ledger.
pub(crate) fn audit_of(ledger: &Path) -> PathBuf {
    with_suffix(ledger, ".audit.svg")
}

/// Reads everything; returns the counts together with those of new entries.
pub(super) fn read(config: &PartyConfig, mut days: Days) -> (Facts, Days) {
    let ledger = ledger(config, &mut days).map_err(|e| e.to_string());
    let audited = audit_of(&config.ledger).exists();
    (Facts { daemon: running(&config.ledger).flatten(), ledger, audited }, days)
}

fn ledger(config: &PartyConfig, days: &mut Days) -> Result<Ledger, StartError> {
    let report = report_kept(&config.ledger_settings())?;
    let jobs = jobs(&config.ledger)?;
    for (day, count, last) in releases_by_day(&config.ledger, days.upto)? {
        *days.counts.entry(day).or_default() += count;
        days.upto = days.upto.max(last);
    }
    let mut last = Vec::new();
    list::<LedgerError>(&config.ledger_settings(), &Listing { job: None, last: Some(LAST) }, |release| {
        last.push(release);
        Ok(())
    })?;
    last.reverse();
    Ok(Ledger { report, jobs, days: days.counts.clone(), last })
}
