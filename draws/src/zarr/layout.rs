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

/// A group's `zarr.json`.
pub(super) fn group(attributes: &Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// The root's `zarr.json` of a store that is complete, which holds those of all nodes below as well: who opens it reads one file
/// ("inline" consolidated metadata, as zarr-python 3 writes and reads them).
pub(super) fn consolidated(attributes: &Map<String, Value>, nodes: &[(String, Value)]) -> Value {
    let below: Map<String, Value> = nodes.iter().cloned().collect();
    let mut root = group(attributes);
    root["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": below});
    root
}

/// Writes a group's `zarr.json`.
///
/// # Errors
/// The file system's.
pub(super) fn write_group(folder: &Path, attributes: &Map<String, Value>) -> io::Result<()> {
    write_json(folder, &group(attributes))
}

/// Writes a node's `zarr.json`.
///
/// # Errors
/// The file system's.
pub(super) fn write_json(folder: &Path, value: &Value) -> io::Result<()> {
    replace(&folder.join("zarr.json"), &text_of(value)?)
}

/// A `zarr.json` as it is written.
///
/// # Errors
/// None of what is written here.
pub(super) fn text_of(value: &Value) -> io::Result<Vec<u8>> {
    // With all nodes of thousands of parameters in it the root's is long, and nobody reads it by eye.
    let long = value.get("consolidated_metadata").is_some();
    let mut text = if long { serde_json::to_vec(value)? } else { serde_json::to_vec_pretty(value)? };
    text.push(b'\n');
    Ok(text)
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

/// Every file below `root`, those left out that are still being written.
///
/// # Errors
/// The file system's.
pub(super) fn below(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            // Names are made by `encode`, hence ASCII.
            let own = entry.file_name().to_string_lossy().into_owned();
            let name = if folder.is_empty() { own.clone() } else { format!("{folder}/{own}") };
            if entry.file_type()?.is_dir() {
                folders.push(name);
            } else if !own.starts_with('.') {
                files.push(name);
            }
        }
    }
    files.sort();
    Ok(files)
}
