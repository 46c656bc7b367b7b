//! `conclave-coordinator doctor`: checks everything that the coordinator depends on and prints remedies. It changes nothing and
//! takes no lock, so it may be used before the coordinator runs and while it runs.

use std::path::Path;
use std::time::SystemTime;

use conclave_draws::zarr::StoreFiles;
use conclave_ops::check::{check_port, check_writable};
use conclave_ops::disk::{database_bytes, format_bytes, free_bytes};
use conclave_ops::doctor::{Finding, long_log};
use conclave_ops::files::parent_folder;
use conclave_proto::tls::{IdentityDir, days_until, is_expiring};

use crate::config::Config;
use crate::driver::Job;
use crate::operations::{Standing, health_of, running_pid};
use crate::retention::bytes_and_end;
use crate::server::Credentials;
use crate::store::{StoreError, ended_jobs, inspect, wal};

/// Free space below which the check fails: a full disk fails the store, and jobs stop.
const LEAST: u64 = 64 << 20;
/// Free space below which the check warns.
const LITTLE: u64 = 1 << 30;

/// Runs every check.
pub(crate) fn examine(file: &Path) -> Vec<Finding> {
    let config = match Config::load(file) {
        Ok(config) => config,
        Err(e) => {
            return vec![Finding::fail(
                "config",
                e.to_string(),
                "correct the configuration first: every other check depends on it",
            )];
        }
    };
    let mut findings = vec![Finding::ok("config", format!("{} is valid", file.display())), identity(&config)];
    findings.extend(revoked(&config));
    findings.push(daemon(&config));
    findings.extend(store(&config));
    let emptied = "a running coordinator empties the log within a minute";
    findings.extend(long_log(&config.store, wal::LONG, running_pid(&config.store), emptied));
    findings.extend(disk(&config));
    findings.extend(permissions(&config));
    findings
}

fn identity(config: &Config) -> Finding {
    const CODE: &str = "identity";
    const ISSUE: &str =
        "see docs/how-to/operator/enrol-members.md: the folder `identity` must contain certificate.pem, key.pem and ca.pem";
    if let Err(fault) = Credentials::of(config) {
        return Finding::fail(CODE, fault.to_string(), ISSUE);
    }
    let identity = match IdentityDir::load(&config.identity) {
        Ok(identity) => identity,
        Err(fault) => return Finding::fail(CODE, fault.to_string(), ISSUE),
    };
    let now = SystemTime::now();
    if let Err(fault) = identity.check_at(now) {
        return Finding::fail(CODE, fault.to_string(), "renew it: see docs/how-to/operator/renew-and-revoke.md");
    }
    let expires = match identity.expiry() {
        Ok(expires) => expires,
        Err(fault) => return Finding::fail(CODE, fault.to_string(), ISSUE),
    };
    let (own, ca) = (days_until(expires.certificate, now), days_until(expires.ca, now));
    let found = format!("{}: its certificate expires in {own} days, the CA in {ca} days", identity.identity());
    if is_expiring(expires.certificate, now) {
        return Finding::warn(
            CODE,
            found,
            "run conclave ca request --renew and have the request signed before then; no restart is needed",
        );
    }
    if is_expiring(expires.ca, now) {
        return Finding::warn(CODE, found, "obtain the next CA's certificate, and put both into ca.pem of every member");
    }
    Finding::ok(CODE, found)
}

fn revoked(config: &Config) -> Option<Finding> {
    const CODE: &str = "revoked";
    let path = config.revoked.as_deref()?;
    Some(match conclave_proto::revoked::RevokedFile::at(path).read() {
        Ok(_) => Finding::ok(CODE, format!("{} can be read", path.display())),
        Err(fault) => Finding::fail(CODE, fault.message, "make it readable: no member can connect until then"),
    })
}

fn daemon(config: &Config) -> Finding {
    const CODE: &str = "daemon";
    match health_of(&config.store) {
        (Standing::Serving, says) => Finding::ok(CODE, says),
        (Standing::NotServing, why) => Finding::fail(CODE, why, "see its log, and fix the cause"),
        (Standing::Hung, why) => Finding::fail(CODE, why, "see its log, fix the cause and restart it"),
        (Standing::Halted, why) => Finding::fail(
            CODE,
            why,
            "do not stop it: first copy what it has written (docs/how-to/operator/back-up-and-restore.md, Recover a deleted store)",
        ),
        (Standing::NotRunning, _) => match check_port(config.listen) {
            Ok(free) => Finding::skipped(CODE, format!("the coordinator is not running; {free}")),
            Err(taken) => Finding::fail(CODE, taken, "two programs can't listen on one address"),
        },
    }
}

fn store(config: &Config) -> Vec<Finding> {
    let path = config.store.display();
    if !config.store.exists() {
        let skipped = |code| Finding::skipped(code, format!("{path} will be created at the first start"));
        return vec![skipped("store"), skipped("draws")];
    }
    match inspect(&config.store) {
        Ok((jobs, rounds)) => {
            let size = format_bytes(database_bytes(&config.store));
            vec![Finding::ok("store", format!("{path} is intact: {jobs} jobs, {rounds} rounds, {size}")), draws(config)]
        }
        Err(e @ StoreError::Damaged { .. }) => vec![
            Finding::fail(
                "store",
                e.to_string(),
                "stop the coordinator and restore the newest backup: see docs/how-to/operator/back-up-and-restore.md",
            ),
            Finding::skipped("draws", "the store can't be read"),
        ],
        Err(e) => vec![
            Finding::fail("store", e.to_string(), "check the path `store` and that this user may read it"),
            Finding::skipped("draws", "the store can't be read"),
        ],
    }
}

/// Checks every ended job's draws by reading each file to its end.
fn draws(config: &Config) -> Finding {
    const CODE: &str = "draws";
    let jobs = match ended_jobs(&config.store) {
        Ok(jobs) => jobs,
        Err(e) => return Finding::fail(CODE, e.to_string(), "check the path `store` and that this user may read it"),
    };
    let (mut kept, mut gone, mut bytes, mut damaged) = (0, 0, 0, Vec::new());
    for job in jobs.iter().filter(|job| job.has_draws) {
        let path = Job::current_draws(&config.draws, &job.id);
        match bytes_and_end(&path) {
            Ok(None) => gone += 1,
            Ok(Some((size, _))) => {
                (kept, bytes) = (kept + 1, bytes + size);
                damaged.extend(readable(&path).err());
            }
            Err(e) => damaged.push(format!("{}: {e}", path.display())),
        }
    }
    let found = format!("{kept} ended jobs have their draws in {}, {}", config.draws.display(), format_bytes(bytes));
    let found = if gone > 0 { format!("{found}; the draws of {gone} more are no longer kept") } else { found };
    match (damaged.as_slice(), config.keep_draws_days) {
        ([first, ..], _) => Finding::fail(
            CODE,
            format!("draws of {} jobs can't be read. {first}", damaged.len()),
            "restore the job's file from the newest backup; its summary and log are in the store",
        ),
        ([], None) => Finding::ok(CODE, format!("{found}; kept forever")),
        ([], Some(days)) => Finding::ok(CODE, format!("{found}; kept for {days} days")),
    }
}

fn readable(path: &Path) -> Result<(), String> {
    let files = StoreFiles::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let names = files.names().map_err(|e| format!("{}: {e}", path.display()))?;
    // Each member of a one-file store has a checksum, which reading verifies.
    names.iter().try_for_each(|name| files.read(name).map(drop).map_err(|e| format!("{}: {e}", files.path(name).display())))
}

fn disk(config: &Config) -> Vec<Finding> {
    const CODE: &str = "disk";
    let store = parent_folder(&config.store);
    let existing = |path: &Path| path.ancestors().find(|path| path.exists()).map(Path::to_owned);
    let mut findings = Vec::new();
    for (folder, what) in [(store, "the store"), (config.draws.as_path(), "draws")] {
        if let Err(fault) = check_writable(folder) {
            findings.push(Finding::fail(CODE, fault, "the coordinator's user must be able to write there"));
            continue;
        }
        let Some(free) = existing(folder).as_deref().and_then(free_bytes) else {
            findings.push(Finding::skipped(CODE, format!("the free space of {} is unknown", folder.display())));
            continue;
        };
        let found = format!("{} free for {what} in {}", format_bytes(free), folder.display());
        findings.push(match free {
            0..LEAST => Finding::fail(CODE, found, "free some space: a full disk fails the store and stops every job"),
            LEAST..LITTLE => {
                Finding::warn(CODE, found, "free some space before the next job; conclave-coordinator prune removes old draws")
            }
            _ => Finding::ok(CODE, found),
        });
    }
    findings
}

#[cfg(not(unix))]
fn permissions(_: &Config) -> Vec<Finding> {
    vec![Finding::skipped("permissions", "file modes are checked on Unix only")]
}

#[cfg(unix)]
fn permissions(config: &Config) -> Vec<Finding> {
    use conclave_ops::files::mode;
    const CODE: &str = "permissions";
    let mut findings = Vec::new();
    for (path, bits, remedy) in [
        (config.identity.join("key.pem"), 0o027, "chmod 600"),
        (config.store.clone(), 0o077, "chmod 600"),
        (config.dashboard_token.clone(), 0o077, "chmod 600"),
        (config.draws.clone(), 0o007, "chmod 700"),
    ] {
        findings.extend(mode(&path).filter(|mode| mode & bits != 0).map(|mode| {
            let path = path.display();
            Finding::fail(CODE, format!("{path} can be read or replaced by others (mode {mode:03o})"), format!("{remedy} {path}"))
        }));
    }
    for folder in [parent_folder(&config.store), config.identity.as_path()] {
        findings.extend(mode(folder).filter(|mode| mode & 0o002 != 0).map(|mode| {
            let path = folder.display();
            let found = format!("every user of this machine can replace files in {path} (mode {mode:03o})");
            Finding::fail(CODE, found, format!("chmod o-w {path}"))
        }));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CODE, "the modes of key, store, draws and token are safe"));
    }
    findings
}
