//! `conclave-coordinator doctor` looks at all that the coordinator depends on and says how to mend it. It changes nothing, takes no lock, and may be
//! used before the coordinator runs and while it runs.

use std::path::Path;
use std::time::SystemTime;

use conclave_draws::zarr::StoreFiles;
use conclave_ops::check::{port_free, writable};
use conclave_ops::disk::{database_bytes, free_bytes, in_words};
use conclave_ops::doctor::Finding;
use conclave_ops::files::folder_of;
use conclave_proto::tls::{IdentityDir, days_until, ends_soon};

use crate::config::Config;
use crate::driver::Job;
use crate::operations::{Unwell, health_of};
use crate::retention::bytes_and_end;
use crate::server::Credentials;
use crate::store::{StoreError, ended_jobs, inspect};

/// Less room than this ends in a full disk: the store fails, and jobs stop.
const LEAST: u64 = 64 << 20;
/// Less room than this earns a warning.
const LITTLE: u64 = 1 << 30;

/// Looks at everything.
pub(crate) fn examine(file: &Path) -> Vec<Finding> {
    let config = match Config::load(file) {
        Ok(config) => config,
        Err(e) => {
            return vec![Finding::fail("config", e.to_string(), "mend the configuration: nothing else can be looked at before")];
        }
    };
    let mut findings = vec![Finding::ok("config", format!("{} is in order", file.display())), identity(&config)];
    findings.extend(revoked(&config));
    findings.push(daemon(&config));
    findings.extend(store(&config));
    findings.extend(disk(&config));
    findings.extend(permissions(&config));
    findings
}

fn identity(config: &Config) -> Finding {
    const CODE: &str = "identity";
    const ISSUE: &str = "see docs/how-to/operator/enrol-members.md: certificate.pem, key.pem and ca.pem are to be in the folder `identity`";
    if let Err(fault) = Credentials::of(config) {
        return Finding::fail(CODE, fault.to_string(), ISSUE);
    }
    let identity = match IdentityDir::load(&config.identity) {
        Ok(identity) => identity,
        Err(fault) => return Finding::fail(CODE, fault.to_string(), ISSUE),
    };
    let now = SystemTime::now();
    if let Err(fault) = identity.check_at(now) {
        return Finding::fail(CODE, fault.to_string(), "have it renewed: docs/how-to/operator/renew-and-revoke.md");
    }
    let expires = match identity.expires() {
        Ok(expires) => expires,
        Err(fault) => return Finding::fail(CODE, fault.to_string(), ISSUE),
    };
    let (own, ca) = (days_until(expires.certificate, now), days_until(expires.ca, now));
    let found = format!("{}: its certificate ends in {own} days, the CA in {ca}", identity.identity());
    if ends_soon(expires.certificate, now) {
        return Finding::warn(
            CODE,
            found,
            "conclave ca request --renew, and have the request signed before then: no restart is needed",
        );
    }
    if ends_soon(expires.ca, now) {
        return Finding::warn(CODE, found, "ask for the next CA's certificate, and put both into ca.pem of every member");
    }
    Finding::ok(CODE, found)
}

fn revoked(config: &Config) -> Option<Finding> {
    const CODE: &str = "revoked";
    let path = config.revoked.as_deref()?;
    Some(match conclave_proto::revoked::RevokedFile::at(path).read() {
        Ok(_) => Finding::ok(CODE, format!("{} can be read", path.display())),
        Err(fault) => Finding::fail(CODE, fault.message, "as long as it can't be read nobody is let in"),
    })
}

fn daemon(config: &Config) -> Finding {
    const CODE: &str = "daemon";
    match health_of(&config.store) {
        Ok(state) => Finding::ok(CODE, format!("serves on {}, process {}", state.address, state.pid)),
        Err(Unwell::NotServing(why)) => Finding::fail(CODE, why, "see its log; mend the cause, and restart it"),
        Err(Unwell::NotRunning(_)) => match port_free(config.listen) {
            Ok(free) => Finding::skipped(CODE, format!("the coordinator does not run; {free}")),
            Err(taken) => Finding::fail(CODE, taken, "two programs can't listen on one address"),
        },
    }
}

fn store(config: &Config) -> Vec<Finding> {
    let path = config.store.display();
    if !config.store.exists() {
        let skipped = |code| Finding::skipped(code, format!("{path} will be made at the first start"));
        return vec![skipped("store"), skipped("draws")];
    }
    match inspect(&config.store) {
        Ok((jobs, rounds)) => {
            let size = in_words(database_bytes(&config.store));
            vec![Finding::ok("store", format!("{path} is whole: {jobs} jobs, {rounds} rounds, {size}")), draws(config)]
        }
        Err(e @ StoreError::Damaged { .. }) => vec![
            Finding::fail(
                "store",
                e.to_string(),
                "stop the coordinator, and restore the newest backup: docs/how-to/operator/back-up-and-restore.md",
            ),
            Finding::skipped("draws", "the store can't be read"),
        ],
        Err(e) => vec![
            Finding::fail("store", e.to_string(), "check the path `store`, and that this user may read it"),
            Finding::skipped("draws", "the store can't be read"),
        ],
    }
}

/// Every ended job's draws, each file read to its end.
fn draws(config: &Config) -> Finding {
    const CODE: &str = "draws";
    let jobs = match ended_jobs(&config.store) {
        Ok(jobs) => jobs,
        Err(e) => return Finding::fail(CODE, e.to_string(), "check the path `store`, and that this user may read it"),
    };
    let (mut kept, mut gone, mut bytes, mut damaged) = (0, 0, 0, Vec::new());
    for job in jobs.iter().filter(|job| job.drew) {
        let path = Job::draws_now(&config.draws, &job.id);
        match bytes_and_end(&path) {
            Ok(None) => gone += 1,
            Ok(Some((size, _))) => {
                (kept, bytes) = (kept + 1, bytes + size);
                damaged.extend(readable(&path).err());
            }
            Err(e) => damaged.push(format!("{}: {e}", path.display())),
        }
    }
    let found = format!("{kept} ended jobs have their draws in {}, {}", config.draws.display(), in_words(bytes));
    let found = if gone > 0 { format!("{found}; those of {gone} are not kept any more") } else { found };
    match (damaged.as_slice(), config.keep_draws_days) {
        ([first, ..], _) => Finding::fail(
            CODE,
            format!("draws of {} jobs can't be read. {first}", damaged.len()),
            "put the job's file back from the newest backup; its summary and log are in the store",
        ),
        ([], None) => Finding::ok(CODE, format!("{found}; kept for ever")),
        ([], Some(days)) => Finding::ok(CODE, format!("{found}; kept for {days} days")),
    }
}

fn readable(path: &Path) -> Result<(), String> {
    let files = StoreFiles::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let names = files.names().map_err(|e| format!("{}: {e}", path.display()))?;
    // Each member of one file has its checksum, which is compared.
    names.iter().try_for_each(|name| files.read(name).map(drop).map_err(|e| format!("{}: {e}", files.path(name).display())))
}

fn disk(config: &Config) -> Vec<Finding> {
    const CODE: &str = "disk";
    let store = folder_of(&config.store);
    let existing = |path: &Path| path.ancestors().find(|path| path.exists()).map(Path::to_owned);
    let mut findings = Vec::new();
    for (folder, what) in [(store, "the store"), (config.draws.as_path(), "draws")] {
        if let Err(fault) = writable(folder) {
            findings.push(Finding::fail(CODE, fault, "the coordinator's user must be able to write there"));
            continue;
        }
        let Some(free) = existing(folder).as_deref().and_then(free_bytes) else {
            findings.push(Finding::skipped(CODE, format!("how much room {} has can't be told", folder.display())));
            continue;
        };
        let found = format!("{} free for {what} in {}", in_words(free), folder.display());
        findings.push(match free {
            0..LEAST => Finding::fail(CODE, found, "make room: a full disk fails the store, and no job goes on"),
            LEAST..LITTLE => {
                Finding::warn(CODE, found, "make room before the next job; conclave-coordinator prune removes old draws")
            }
            _ => Finding::ok(CODE, found),
        });
    }
    findings
}

#[cfg(not(unix))]
fn permissions(_: &Config) -> Vec<Finding> {
    vec![Finding::skipped("permissions", "file modes are looked at on Unix alone")]
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
    for folder in [folder_of(&config.store), config.identity.as_path()] {
        findings.extend(mode(folder).filter(|mode| mode & 0o002 != 0).map(|mode| {
            let path = folder.display();
            let found = format!("everybody on this machine may replace files in {path} (mode {mode:03o})");
            Finding::fail(CODE, found, format!("chmod o-w {path}"))
        }));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CODE, "key, store, draws and token are the coordinator's alone"));
    }
    findings
}
