//! The folders of a store, and how its files are replaced.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The two groups of a phase: draws, and what belongs to them. `prefix` is `warmup_`, or nothing for what is kept.
pub(super) fn group_folders(root: &Path, prefix: &str) -> [PathBuf; 2] {
    ["posterior", "sample_stats"].map(|group| root.join(format!("{prefix}{group}")))
}

/// The attributes by which ArviZ knows a group's maker.
#[must_use]
pub fn made_by() -> Map<String, Value> {
    let pairs = [("inference_library", "conclave"), ("inference_library_version", env!("CARGO_PKG_VERSION"))];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// Writes a group's `zarr.json`.
///
/// # Errors
/// The file system's.
pub(super) fn write_group(folder: &Path, attributes: &Map<String, Value>) -> io::Result<()> {
    write_json(folder, &json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
}

/// Writes a node's `zarr.json`.
///
/// # Errors
/// The file system's.
pub(super) fn write_json(folder: &Path, value: &Value) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    replace(&folder.join("zarr.json"), &text)
}

/// Replaces a file in one step, making its folder where needed.
///
/// # Errors
/// The file system's.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.tmp"));
    if let Err(e) = std::fs::write(&temporary, bytes) {
        if e.kind() != io::ErrorKind::NotFound {
            return Err(e);
        }
        std::fs::create_dir_all(folder)?;
        std::fs::write(&temporary, bytes)?;
    }
    std::fs::rename(&temporary, path)
}
