//! Reads and checks a configuration file, or reports its first error.

use std::path::{Path, PathBuf};

use conclave_common::settings;

use super::party::PartyConfig;
use super::raw;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .file.display())]
pub struct ConfigError {
    /// The configuration file.
    pub file: PathBuf,
    /// The error, with the key and the remedy.
    pub message: String,
}

impl PartyConfig {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// Returns the first error, with its key and remedy.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let fail = |message: String| ConfigError { file: path.to_owned(), message };
        let text = std::fs::read_to_string(path)
            .map_err(|e| fail(format!("cannot be read: {e}; --config names the party's configuration file")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(fail)
    }

    /// Checks a configuration's text; relative paths start at `folder`.
    ///
    /// # Errors
    /// Returns a sentence that names the key and the remedy.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let (raw, _): (raw::Config, _) = settings::read(text).map_err(|fault| fault.to_string())?;
        raw.check(folder)
    }
}
