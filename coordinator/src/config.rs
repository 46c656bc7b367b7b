//! The configuration file `coordinator.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use conclave_common::settings;
use conclave_common::settings::{Keys, Setting, or, within};
use conclave_ops::{Settings, web};

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
pub const KEYS: Keys = Raw::KEYS;

/// Largest number of jobs and of submissions.
const MOST: usize = 1_000_000;

settings! {
    struct Raw {
        listen: String,
        identity: PathBuf,
        store: PathBuf,
        draws: PathBuf,
        dashboard: Option<String>,
        dashboard_token: PathBuf = "dashboard-token".into(),
        dashboard_hosts: Vec<String>,
        dashboard_tls: Option<bool>,
        revoked: Option<PathBuf>,
        running_jobs: usize = Bounds::default().running => within(1..=MOST),
        unfinished_jobs_per_analyst: usize = Bounds::default().unfinished => within(1..=MOST),
        submissions_per_minute: usize = Bounds::default().submissions => within(1..=MOST),
        keep_draws_days: Option<u32> => or("omit it to keep draws forever", within(1..=36_500)),
        log: Option<String>,
        log_level: Option<String>,
        metrics: Option<String>,
        otlp: Option<String>,
    }
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
        let (raw, _): (Raw, _) = settings::read(text).map_err(|fault| fault.to_string())?;
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
        Ok(Self {
            bounds: Bounds {
                running: raw.running_jobs,
                unfinished: raw.unfinished_jobs_per_analyst,
                submissions: raw.submissions_per_minute,
            },
            keep_draws_days: raw.keep_draws_days,
            listen,
            identity: folder.join(raw.identity),
            store: folder.join(raw.store),
            draws: folder.join(raw.draws),
            ops: Settings::parse(raw.log.as_deref(), raw.log_level.as_deref(), raw.metrics.as_deref(), raw.otlp.as_deref())?,
            revoked: raw.revoked.map(|file| folder.join(file)),
            dashboard,
            dashboard_tls,
            dashboard_token: folder.join(raw.dashboard_token),
            dashboard_hosts: raw.dashboard_hosts,
        })
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
            ("draws = \"/var/draws\"\n", "", "`draws` is missing"),
            ("draws =", "log = \"text\"\ndraws =", "`log`"),
            ("draws =", "running_jobs = 0\ndraws =", "`running_jobs` must be"),
            ("draws =", "keep_draws_days = 0\ndraws =", "`keep_draws_days` must be"),
            ("draws =", "submissions_per_minute = -1\ndraws =", "`submissions_per_minute` must be"),
            ("draws =", "revokd = \"r.txt\"\ndraws =", "did you mean `revoked`"),
            ("draws =", "revoked = 7\ndraws =", "`revoked` must be a text"),
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
