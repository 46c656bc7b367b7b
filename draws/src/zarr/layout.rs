//! The folders of a store, and the replacement of its files.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Returns the folders of a phase's two groups, draws and statistics. `prefix` is `warmup_`, or empty for kept draws.
pub(super) fn group_folders(root: &Path, prefix: &str) -> [PathBuf; 2] {
    ["posterior", "sample_stats"].map(|group| root.join(format!("{prefix}{group}")))
}

/// Returns the attributes by which ArviZ identifies the library that wrote a group.
#[must_use]
pub fn maker_attributes() -> Map<String, Value> {
    let pairs = [("inference_library", "conclave"), ("inference_library_version", env!("CARGO_PKG_VERSION"))];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

pub(super) fn group(attributes: &Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// Builds the root's `zarr.json` of a complete store, which includes the metadata of all nodes below, so that a reader needs one
/// file ("inline" consolidated metadata, as zarr-python 3 writes and reads them).
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

/// Formats a `zarr.json`.
///
/// # Errors
/// None for the values written here.
pub(super) fn text_of(value: &Value) -> io::Result<Vec<u8>> {
    // The root's metadata of thousands of parameters are long and not meant for people, so they are not indented.
    let long = value.get("consolidated_metadata").is_some();
    let mut text = if long { serde_json::to_vec(value)? } else { serde_json::to_vec_pretty(value)? };
    text.push(b'\n');
    Ok(text)
}

/// Replaces a file atomically, and creates its folder if needed.
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

/// Lists every file below `root`, except those still being written.
///
/// # Errors
/// The file system's.
pub(super) fn below(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            // Names come from `encode` and are ASCII.
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
