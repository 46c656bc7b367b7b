//! Defines the layers of crates and of a crate's folders, and finds imports that violate them.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::Arrows;
use super::loops::components;
use super::tree::{FileId, Workspace};

/// The layers of a workspace.
pub struct Layers<'a> {
    /// Packages that are not part of the product.
    pub left_out: &'a [&'a str],
    /// Every package with its permitted dependencies.
    pub crates: &'a [(&'a str, &'a [&'a str])],
    /// The order of folders within packages.
    pub folders: &'a [Folders<'a>],
}

/// The order of one package's folders: each floor may import the floors after it. Folders of one floor may import one another
/// unless that makes a loop.
pub struct Folders<'a> {
    /// The package.
    pub package: &'a str,
    /// Its floors, the highest first; each names folders, and files beside them.
    pub floors: &'a [&'a [&'a str]],
}

/// The layers of this workspace.
pub const WORKSPACE: Layers<'static> = Layers {
    left_out: &["conclave-tests"],
    crates: &[
        ("conclave-privacy", &[]),
        ("conclave-common", &["conclave-privacy"]),
        ("conclave-ops", &["conclave-common"]),
        ("conclave-pages", &["conclave-common"]),
        ("conclave-proto", &["conclave-common", "conclave-privacy"]),
        ("conclave-vault", &["conclave-common", "conclave-ops", "conclave-privacy", "conclave-proto"]),
        ("conclave-inference", &["conclave-common", "conclave-privacy"]),
        ("conclave-predict", &["conclave-common", "conclave-inference"]),
        ("conclave-draws", &["conclave-common", "conclave-inference", "conclave-privacy", "conclave-proto"]),
        (
            "conclave-party",
            &[
                "conclave-common",
                "conclave-inference",
                "conclave-ops",
                "conclave-pages",
                "conclave-privacy",
                "conclave-proto",
                "conclave-vault",
            ],
        ),
        (
            "conclave-coordinator",
            &[
                "conclave-common",
                "conclave-draws",
                "conclave-inference",
                "conclave-ops",
                "conclave-pages",
                "conclave-privacy",
                "conclave-proto",
            ],
        ),
        (
            "conclave",
            &[
                "conclave-common",
                "conclave-coordinator",
                "conclave-draws",
                "conclave-inference",
                "conclave-ops",
                "conclave-pages",
                "conclave-party",
                "conclave-predict",
                "conclave-privacy",
                "conclave-proto",
                "conclave-vault",
            ],
        ),
        ("conclave-python", &["conclave", "conclave-draws", "conclave-proto"]),
    ],
    folders: &[
        Folders { package: "conclave-privacy", floors: &[&["pass"], &["accounting"], &["secagg"], &["mechanism"]] },
        Folders {
            package: "conclave-common",
            floors: &[
                &["query"],
                &["job"],
                &["model"],
                &["schema"],
                &["formula", "parameter"],
                &["elementary", "epsilon", "settings", "spelling", "text"],
            ],
        },
        Folders {
            package: "conclave-inference",
            floors: &[&["planner"], &["rehearsal"], &["sampler"], &["diagnostics"], &["figures"]],
        },
        Folders {
            package: "conclave-vault",
            floors: &[
                &["answer", "testing"],
                &["policy"],
                &["secure"],
                &["ports"],
                &["data"],
                &["ledger"],
                &["consent", "members", "noise"],
                &["clock", "config", "text"],
            ],
        },
    ],
};

/// Returns every import into a higher layer, and every folder and crate without a place.
pub(super) fn findings(workspace: &Workspace, arrows: &Arrows, layers: &Layers) -> Vec<String> {
    let mut found = crates(workspace, arrows, layers);
    for folders in layers.folders {
        found.extend(floors(workspace, arrows, folders));
    }
    found
}

fn crates(workspace: &Workspace, arrows: &Arrows, layers: &Layers) -> Vec<String> {
    let mut found = Vec::new();
    for one in &workspace.crates {
        let Some((_, allowed)) = layers.crates.iter().find(|(package, _)| *package == one.package) else {
            found.push(format!("layers: the crate {} ({}) has no place in the table", one.package, one.folder));
            continue;
        };
        for dependency in one.dependencies.iter().filter(|d| !allowed.contains(&d.as_str())) {
            found.push(format!("layers: {}/Cargo.toml depends on {dependency}, which is not below it", one.folder));
        }
    }
    for ((from, to), names) in arrows {
        let (above, below) = (workspace.crate_of(*from), workspace.crate_of(*to));
        let row = layers.crates.iter().find(|(package, _)| *package == above.package);
        let allowed = row.is_none_or(|(_, allowed)| allowed.contains(&below.package.as_str()));
        if above.package != below.package && !allowed {
            found.push(points_up(workspace, *from, *to, names));
        }
    }
    found
}

fn floors(workspace: &Workspace, arrows: &Arrows, folders: &Folders) -> Vec<String> {
    let Some(one) = workspace.crates.iter().find(|c| c.package == folders.package) else { return Vec::new() };
    let source = format!("{}/src/", one.folder);
    let folder_of = |file: FileId| {
        let (first, rest) = workspace.path(file).strip_prefix(&source)?.split_once('/').map_or_else(
            || (workspace.path(file).strip_prefix(&source).unwrap_or_default(), None),
            |(first, rest)| (first, Some(rest)),
        );
        let root = rest.is_none() && ["lib.rs", "main.rs"].contains(&first);
        (!root).then(|| first.trim_end_matches(".rs").to_owned())
    };
    let floor_of = |folder: &str| folders.floors.iter().position(|floor| floor.contains(&folder));
    let mut found = Vec::new();
    let all = (0..workspace.files.len()).filter(|f| workspace.crate_of(*f).package == folders.package);
    for folder in all.filter_map(folder_of).collect::<BTreeSet<_>>() {
        if floor_of(&folder).is_none() {
            found.push(format!("layers: {source}{folder} has no floor in the table of {}", folders.package));
        }
    }
    let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
    for ((from, to), names) in arrows {
        let (Some(above), Some(below)) = (folder_of(*from), folder_of(*to)) else { continue };
        if above == below {
            continue;
        }
        if floor_of(&above) > floor_of(&below) {
            found.push(points_up(workspace, *from, *to, names));
        }
        graph.entry(below.clone()).or_default();
        graph.entry(above).or_default().insert(below);
    }
    let graph = graph.iter().map(|(k, v)| (k.as_str(), v.iter().map(String::as_str).collect())).collect();
    for floor in components(&graph).iter().filter(|c| c.len() > 1) {
        let names = floor.iter().copied().collect::<Vec<_>>().join(", ");
        found.push(format!("layers: the folders {names} of {} import one another in a loop", folders.package));
    }
    found
}

fn points_up(workspace: &Workspace, from: FileId, to: FileId, names: &BTreeMap<String, usize>) -> String {
    let names = names.iter().map(|(name, line)| format!("{name} (line {line})")).collect::<Vec<_>>().join(", ");
    format!("layers: {} must not import {}: {names}", workspace.path(from), workspace.path(to))
}
