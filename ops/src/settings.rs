//! The operational keys in both configuration files: `log`, `log_level`, `metrics`, `otlp`.

use std::net::SocketAddr;

use crate::log_filter::is_filter;
use crate::log_format::LogFormat;

/// The keys' names, for a table of known keys.
pub const KEYS: [&str; 4] = ["log", "log_level", "metrics", "otlp"];

/// The operational settings of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The format of log lines.
    pub log: LogFormat,
    /// The filter of log lines in the absence of `RUST_LOG`: levels by target, such as `warn,conclave_party=debug`.
    pub level: Option<String>,
    /// The address of the metrics; `None` disables them.
    pub metrics: Option<SocketAddr>,
    /// The collector of traces; `None` disables their export.
    pub otlp: Option<String>,
}

impl Settings {
    /// Parses the keys' values from the file.
    ///
    /// # Errors
    /// A message that names the key and the remedy.
    pub fn parse(log: Option<&str>, level: Option<&str>, metrics: Option<&str>, otlp: Option<&str>) -> Result<Self, String> {
        let log = match log {
            None => LogFormat::default(),
            Some(name) => LogFormat::parse(name)
                .ok_or_else(|| format!("`log` is {name:?}: it must be one of {}", LogFormat::NAMES.join(", ")))?,
        };
        if let Some(level) = level.filter(|level| !is_filter(level)) {
            return Err(format!(
                "`log_level` is {level:?}: write a level (error, warn, info, debug, trace, off), or levels by target as in \
                                \"info,conclave_party=debug\""
            ));
        }
        let metrics = metrics.map(|text| {
            text.parse().map_err(|_| format!("`metrics` = {text:?} is not an address with a port, such as \"127.0.0.1:9464\""))
        });
        if let Some(endpoint) = otlp {
            check_otlp(endpoint)?;
        }
        Ok(Self { log, level: level.map(str::to_owned), metrics: metrics.transpose()?, otlp: otlp.map(str::to_owned) })
    }
}

fn check_otlp(endpoint: &str) -> Result<(), String> {
    if !cfg!(feature = "otlp") {
        return Err(
            "`otlp` needs a build that can export traces (cargo build --release --features otlp): use one, or remove the line"
                .into(),
        );
    }
    match endpoint.strip_prefix("http://").is_some_and(|rest| !rest.is_empty()) {
        true => Ok(()),
        false => Err(format!(
            "`otlp` = {endpoint:?} is not a collector's address, such as \"http://127.0.0.1:4317\" (gRPC without TLS: run the \
             collector on the same machine)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_their_key() {
        let log = |name| Settings::parse(Some(name), None, None, None).map(|s| s.log);
        assert_eq!((log("json"), log("plain")), (Ok(LogFormat::Json), Ok(LogFormat::Plain)));
        assert!(log("text").is_err_and(|e| e.contains("`log`") && e.contains("plain, json")));
        assert_eq!(Settings::parse(None, None, None, None), Ok(Settings::default()));
        let level = |level| Settings::parse(None, Some(level), None, None).map(|s| s.level);
        assert_eq!(level("warn,conclave_party=debug"), Ok(Some("warn,conclave_party=debug".to_owned())));
        assert!(["loud", "no=such=filter", ""].iter().all(|word| level(word).is_err_and(|e| e.contains("`log_level`"))));
        let metrics = |address| Settings::parse(None, None, Some(address), None).map(|s| s.metrics);
        assert_eq!(metrics("127.0.0.1:9464"), Ok(Some(([127, 0, 0, 1], 9464).into())));
        assert!(metrics("9464").is_err_and(|e| e.contains("`metrics`")));
        let otlp = |address| Settings::parse(None, None, None, Some(address)).map(|s| s.otlp);
        if cfg!(feature = "otlp") {
            assert_eq!(otlp("http://127.0.0.1:4317"), Ok(Some("http://127.0.0.1:4317".to_owned())));
            assert!(otlp("127.0.0.1:4317").is_err_and(|e| e.contains("`otlp`")));
        } else {
            assert!(otlp("http://127.0.0.1:4317").is_err_and(|e| e.contains("--features otlp")));
        }
    }
}
