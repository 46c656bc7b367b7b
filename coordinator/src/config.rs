//! The configuration file `coordinator.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use conclave_common::schema::keys::{self, Keys};
use conclave_ops::{Settings, web};
use serde::Deserialize;

use crate::bounds::Bounds;
use crate::error::RunError;

/// The daemon's configuration, with paths resolved against the configuration file's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Address and port to listen on; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Folder with `certificate.pem`, `key.pem` and `ca.pem`.
    pub identity: PathBuf,
    /// SQLite file of jobs and the iteration log; created if missing.
    pub store: PathBuf,
    /// Folder of the jobs' Zarr stores; created if missing.
    pub draws: PathBuf,
    /// Logs and metrics.
    pub ops: Settings,
    /// File of revoked certificates, if there is one.
    pub revoked: Option<PathBuf>,
    /// Address of the dashboard; `None` disables it.
    pub dashboard: Option<SocketAddr>,
    /// Serves the dashboard over TLS with this coordinator's certificate; always true for an address that others can reach.
    pub dashboard_tls: bool,
    /// File of the token that opens the dashboard; created if missing.
    pub dashboard_token: PathBuf,
    /// Limits on concurrent work, in total and per analyst.
    pub bounds: Bounds,
    /// Days for which an ended job's draws are kept; `None` keeps them forever.
    pub keep_draws_days: Option<u32>,
    /// Host names that the dashboard accepts, besides the loopback's own names and, over TLS, those in the certificate.
    pub dashboard_hosts: Vec<String>,
}

/// Every key of `coordinator.toml`.
pub const KEYS: Keys = Keys::Table(&[
    ("listen", Keys::Any),
    ("identity", Keys::Any),
    ("store", Keys::Any),
    ("draws", Keys::Any),
    ("dashboard", Keys::Any),
    ("dashboard_token", Keys::Any),
    ("dashboard_hosts", Keys::Any),
    ("dashboard_tls", Keys::Any),
    ("revoked", Keys::Any),
    ("running_jobs", Keys::Any),
    ("unfinished_jobs_per_analyst", Keys::Any),
    ("submissions_per_minute", Keys::Any),
    ("keep_draws_days", Keys::Any),
    ("log", Keys::Any),
    ("log_level", Keys::Any),
    ("metrics", Keys::Any),
    ("otlp", Keys::Any),
]);

#[derive(Deserialize)]
struct Raw {
    listen: String,
    identity: PathBuf,
    store: PathBuf,
    draws: PathBuf,
    log: Option<String>,
    log_level: Option<String>,
    metrics: Option<String>,
    otlp: Option<String>,
    revoked: Option<PathBuf>,
    dashboard: Option<String>,
    dashboard_token: Option<PathBuf>,
    dashboard_tls: Option<bool>,
    running_jobs: Option<i64>,
    unfinished_jobs_per_analyst: Option<i64>,
    submissions_per_minute: Option<i64>,
    keep_draws_days: Option<i64>,
    #[serde(default)]
    dashboard_hosts: Vec<String>,
}

impl Config {
    /// Reads a configuration file. Relative paths in it are relative to the file's folder.
    ///
    /// # Errors
    /// [`RunError::Input`], naming the file and the faulty key.
    pub fn load(path: &Path) -> Result<Self, RunError> {
        let named = |message: String| RunError::Input(format!("{}: {message}", path.display()));
        let text = std::fs::read_to_string(path)
            .map_err(|e| named(format!("can't be read ({e}); name the configuration with --config FILE")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(named)
    }

    /// Parses a configuration's text; relative paths are resolved against `folder`.
    ///
    /// # Errors
    /// A sentence that names the faulty key.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        keys::check(&table, &KEYS).map_err(|e| e.to_string())?;
        let raw: Raw = toml::from_str(text).map_err(|e| e.to_string())?;
        let listen = raw
            .listen
            .parse()
            .map_err(|_| format!("`listen` = \"{}\" is not an address with a port, such as \"0.0.0.0:443\"", raw.listen))?;
        let dashboard = raw.dashboard.map(|address| web::parse_address("dashboard", &address)).transpose()?;
        let dashboard_tls = raw.dashboard_tls.unwrap_or_else(|| dashboard.is_some_and(|address| !address.ip().is_loopback()));
        if let Some(address) = dashboard.filter(|_| !dashboard_tls) {
            web::check_loopback("dashboard", address)
                .map_err(|refused| format!("{refused}; or remove `dashboard_tls` to serve it over TLS"))?;
        }
        let bounds = Bounds::default();
        let bounds = Bounds {
            running: bound("running_jobs", raw.running_jobs, bounds.running)?,
            unfinished: bound("unfinished_jobs_per_analyst", raw.unfinished_jobs_per_analyst, bounds.unfinished)?,
            submissions: bound("submissions_per_minute", raw.submissions_per_minute, bounds.submissions)?,
        };
        let keep_draws_days = raw.keep_draws_days.map(|days| match u32::try_from(days) {
            Ok(days) if (1..=36_500).contains(&days) => Ok(days),
            _ => Err(format!("`keep_draws_days` must be from 1 to 36500 days, not {days}; omit it to keep draws forever")),
        });
        Ok(Self {
            bounds,
            keep_draws_days: keep_draws_days.transpose()?,
            listen,
            identity: folder.join(raw.identity),
            store: folder.join(raw.store),
            draws: folder.join(raw.draws),
            ops: Settings::parse(raw.log.as_deref(), raw.log_level.as_deref(), raw.metrics.as_deref(), raw.otlp.as_deref())?,
            revoked: raw.revoked.map(|file| folder.join(file)),
            dashboard,
            dashboard_tls,
            dashboard_token: folder.join(raw.dashboard_token.unwrap_or_else(|| "dashboard-token".into())),
            dashboard_hosts: raw.dashboard_hosts,
        })
    }
}

/// Parses a limit: an integer from 1 to 1000000.
fn bound(key: &str, written: Option<i64>, default: usize) -> Result<usize, String> {
    match written.map(usize::try_from) {
        None => Ok(default),
        Some(Ok(bound)) if (1..=1_000_000).contains(&bound) => Ok(bound),
        Some(_) => Err(format!("`{key}` must be from 1 to 1000000, not {}", written.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &str = "listen = \"127.0.0.1:0\"\nidentity = \"identity/\"\nstore = \"c.sqlite\"\ndraws = \"/var/draws\"\n";

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("/etc/conclave"))
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let config = parse(GOOD).unwrap();
        assert_eq!(config.store, Path::new("/etc/conclave/c.sqlite"));
        assert_eq!(config.draws, Path::new("/var/draws"));
        assert_eq!((config.listen.port(), config.revoked), (0, None));
        let revoked = parse(&format!("{GOOD}revoked = \"revoked.txt\"\n")).unwrap().revoked;
        assert_eq!(revoked.as_deref(), Some(Path::new("/etc/conclave/revoked.txt")));
    }

    #[test]
    fn other_machines_see_the_dashboard_over_tls_alone() {
        let tls = |lines: &str| parse(&format!("{GOOD}{lines}\n")).unwrap().dashboard_tls;
        assert!(!tls("") && !tls("dashboard = \"127.0.0.1:8080\"") && !tls("dashboard = \"[::1]:8080\""));
        assert!(tls("dashboard = \"127.0.0.1:8080\"\ndashboard_tls = true"));
        assert!(tls("dashboard = \"0.0.0.0:8080\"") && tls("dashboard = \"[::]:8080\"\ndashboard_tls = true"));
    }

    #[test]
    fn faults_name_the_key() {
        for (from, to, expect) in [
            ("store =", "stroe =", "did you mean `store`"),
            ("127.0.0.1:0", "localhost", "`listen`"),
            ("draws = \"/var/draws\"\n", "", "missing field `draws`"),
            ("draws =", "log = \"text\"\ndraws =", "`log`"),
            ("draws =", "running_jobs = 0\ndraws =", "`running_jobs` must be"),
            ("draws =", "keep_draws_days = 0\ndraws =", "`keep_draws_days` must be"),
            ("draws =", "submissions_per_minute = -1\ndraws =", "`submissions_per_minute` must be"),
            ("draws =", "revokd = \"r.txt\"\ndraws =", "did you mean `revoked`"),
            ("draws =", "revoked = 7\ndraws =", "expected path string"),
            ("draws =", "dashboard = \"x\"\ndraws =", "`dashboard`"),
            ("draws =", "dashboard = \"0.0.0.0:8080\"\ndashboard_tls = false\ndraws =", "ssh -L"),
            ("draws =", "dashbord = \"127.0.0.1:8080\"\ndraws =", "did you mean `dashboard`"),
        ] {
            let message = parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(message.contains(expect), "{message}");
        }
        let missing = Config::load(Path::new("/nowhere/coordinator.toml")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/coordinator.toml"));
    }
}
