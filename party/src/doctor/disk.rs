//! Room and speed of the disk that the ledger lies on.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use conclave_ops::disk::{format_bytes, free_bytes};
use conclave_ops::files::parent_folder;

use crate::config::PartyConfig;
use conclave_ops::doctor::Finding;
use conclave_vault::ledger::Durability;

/// Less room than this ends in a full disk, and a full disk halts the ledger.
const LEAST: u64 = 64 << 20;
/// Less room than this earns a warning.
const LITTLE: u64 = 1 << 30;
/// Syncs that are timed.
const SYNCS: usize = 15;
/// A sync that takes longer makes `durability = "strict"` slow: every release waits for two.
const SLOW: Duration = Duration::from_millis(5);
/// A sync that takes less time than this did not reach a disk that keeps it through a power cut.
const UNLIKELY: Duration = Duration::from_micros(5);

pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    vec![space(&config.ledger), sync(config)]
}

fn space(ledger: &Path) -> Finding {
    const CODE: &str = "disk";
    let folder = parent_folder(ledger);
    let Some(free) = free_bytes(folder) else {
        return Finding::skipped(CODE, format!("how much room {} has can't be told", folder.display()));
    };
    let found = format!("{} free for the ledger in {}", format_bytes(free), folder.display());
    if free < LEAST {
        return Finding::fail(CODE, found, "make room: a full disk halts the ledger, and nothing is answered any more");
    }
    if free < LITTLE {
        return Finding::warn(CODE, found, "make room before the next job");
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
        let remedy = "keep the ledger on a disk that survives a power cut, not on a memory file system; for trials this is fine";
        return Finding::warn(CODE, format!("{found}: too little for a disk"), remedy);
    }
    match (strict, median > SLOW) {
        (true, true) => Finding::warn(
            CODE,
            format!("{found}, and durability = \"strict\" waits for two a release"),
            "durability = \"reserve\" syncs once a block; a crash then forfeits a block's charge. Or a faster disk",
        ),
        (true, false) => Finding::ok(CODE, format!("{found}: fast enough for durability = \"strict\"")),
        (false, true) => Finding::ok(CODE, format!("{found}; durability = \"reserve\" suits it")),
        (false, false) => {
            Finding::ok(CODE, format!("{found}; durability = \"strict\" would do too, and forfeits nothing in a crash"))
        }
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
    // A page, as SQLite's log takes for a short commit.
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
