//! Reads a workspace's sources and reports imports that violate its order: loops between the files of a crate, imports into a
//! higher layer, and test code within production code.
//!
//! Every mention of an item that another file defines is an import: `use` trees, inline paths, and paths in attributes and macro
//! calls; re-exports are followed to the defining file. A `mod` declaration is not an import. Code compiled only by tests
//! (`#[cfg(test)]`, the feature `test-util`, `tests/`, `benches/`, `examples/`) is ignored in loops and layers.

mod arrows;
mod gate;
mod layers;
mod loops;
mod names;
mod tree;

use std::path::Path;

pub use layers::{Folders, Layers, WORKSPACE};

/// Returns a description of every finding about the workspace at `root`; empty when its order holds.
///
/// # Errors Names a file that cannot be read or parsed.
pub fn check(root: &Path, layers: &Layers) -> Result<Vec<String>, String> {
    let workspace = tree::Workspace::load(root, layers.left_out)?;
    let read = arrows::collect(&workspace);
    let mut findings = loops::findings(&workspace, &read.arrows);
    findings.extend(layers::findings(&workspace, &read.arrows, layers));
    findings.extend(read.faults);
    Ok(findings)
}
