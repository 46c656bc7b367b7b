//! Free space and speed of the ledger's disk.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use conclave_ops::disk::{format_bytes, free_bytes};
use conclave_ops::files::parent_folder;

use crate::config::PartyConfig;
use conclave_ops::doctor::Finding;
use conclave_vault::ledger::Durability;

/// Minimum free space: a full disk halts the ledger.
const LEAST: u64 = 64 << 20;
/// Free space below which a warning is shown.
const LITTLE: u64 = 1 << 30;
const SYNCS: usize = 15;
/// Sync time above which `durability = "strict"` is slow: every release waits for two.
const SLOW: Duration = Duration::from_millis(5);
/// Sync time below which the data can't have reached a disk that survives a power cut.
const UNLIKELY: Duration = Duration::from_micros(5);

pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    vec![space(&config.ledger), sync(config)]
}

fn space(ledger: &Path) -> Finding {
    const CODE: &str = "disk";
    let folder = parent_folder(ledger);
    let Some(free) = free_bytes(folder) else {
        return Finding::skipped(CODE, format!("the free space of {} can't be determined", folder.display()));
    };
    let found = format!("{} free for the ledger in {}", format_bytes(free), folder.display());
    if free < LEAST {
        return Finding::fail(CODE, found, "free disk space: a full disk halts the ledger, and no query is answered any more");
    }
    if free < LITTLE {
        return Finding::warn(CODE, found, "free disk space before the next job");
    }
    Finding::ok(CODE, found)
}

fn sync(config: &PartyConfig) -> Finding {
    const CODE: &str = "fsync";
    let folder = parent_folder(&config.ledger);
    let median = match time_syncs(folder) {
        Ok(median) => median,
        Err(e) => return Finding::skipped(CODE, format!("no file can be written in {}: {e}", folder.display())),
    };
    let found = format!("a sync to the ledger's disk takes {:.2} ms (median of {SYNCS})", 1e3 * median.as_secs_f64());
    let strict = config.durability == Durability::Strict;
    if median < UNLIKELY {
        let remedy = "keep the ledger on a disk that survives a power cut, not on a memory file system; for trials this is \
                      acceptable";
        return Finding::warn(CODE, format!("{found}: too fast for a disk"), remedy);
    }
    match (strict, median > SLOW) {
        (true, true) => Finding::warn(
            CODE,
            format!("{found}, and durability = \"strict\" waits for two per release"),
            "durability = \"reserve\" syncs once per block, but a crash forfeits a block's charge; or use a faster disk",
        ),
        (true, false) => Finding::ok(CODE, format!("{found}: fast enough for durability = \"strict\"")),
        (false, true) => Finding::ok(CODE, format!("{found}; durability = \"reserve\" suits it")),
        (false, false) => Finding::ok(
            CODE,
            format!("{found}; durability = \"strict\" would also be fast enough, and forfeits nothing in a crash"),
        ),
    }
}

fn time_syncs(folder: &Path) -> std::io::Result<Duration> {
    let path = folder.join(format!(".conclave-doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let timed = time_each(file);
    std::fs::remove_file(&path)?;
    let mut times = timed?;
    times.sort();
    Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
}

fn time_each(mut file: File) -> std::io::Result<Vec<Duration>> {
    // One page, the size of a short commit in SQLite's log.
    let page = [0x5a; 4096];
    (0..SYNCS)
        .map(|_| {
            let begun = Instant::now();
            file.write_all(&page)?;
            file.sync_data()?;
            Ok(begun.elapsed())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn syncs_are_timed_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(time_syncs(folder.path()).unwrap() > Duration::ZERO);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(time_syncs(&folder.path().join("none")).is_err());
    }
}
