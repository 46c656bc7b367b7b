//! Reads a workspace's sources and reports imports that break its order: loops between the files of a crate, imports
//! that point up the layers, test code within production code.
//!
//! An import is every mention of an item that another file defines: `use` trees, inline paths, paths in attributes and
//! macro calls, with re-exports followed to the defining file. A `mod` declaration is none. What only tests compile
//! (`#[cfg(test)]`, the feature `test-util`, `tests/`, `benches/`, `examples/`) counts for none of a crate's loops or layers.

mod arrows;
mod gate;
mod layers;
mod loops;
mod names;
mod tree;

use std::path::Path;

pub use layers::{Folders, HOUSE, Layers};

/// Every finding about the workspace at `root`, in words: empty when its order holds.
///
/// # Errors
/// A file that can't be read or parsed, by its path.
pub fn check(root: &Path, layers: &Layers) -> Result<Vec<String>, String> {
    let workspace = tree::Workspace::load(root, layers.left_out)?;
    let read = arrows::collect(&workspace);
    let mut findings = loops::findings(&workspace, &read.arrows);
    findings.extend(layers::findings(&workspace, &read.arrows, layers));
    findings.extend(read.faults);
    Ok(findings)
}
