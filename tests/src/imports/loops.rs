//! Finds import loops between files: components of the import graph in which every file reaches every other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use super::arrows::Arrows;
use super::tree::{FileId, Workspace};

/// Maximum number of items printed for one arrow.
const NAMES: usize = 4;

/// Describes each loop: its files, a shortest cycle, and the arrows between its files with the imported items.
pub(super) fn findings(workspace: &Workspace, arrows: &Arrows) -> Vec<String> {
    let mut graph = BTreeMap::<FileId, BTreeSet<FileId>>::new();
    for (from, to) in arrows.keys() {
        graph.entry(*from).or_default().insert(*to);
        graph.entry(*to).or_default();
    }
    components(&graph).iter().filter(|c| c.len() > 1).map(|c| describe(workspace, arrows, &graph, c)).collect()
}

fn describe(
    workspace: &Workspace,
    arrows: &Arrows,
    graph: &BTreeMap<FileId, BTreeSet<FileId>>,
    files: &BTreeSet<FileId>,
) -> String {
    let package = files.first().map(|f| workspace.crate_of(*f).package.as_str()).unwrap_or_default();
    let mut text = format!("import loop in {package}: {} files", files.len());
    for file in files {
        let _ = write!(text, "\n  {}", workspace.path(*file));
    }
    let cycle = shortest_loop(graph, files).iter().map(|f| workspace.path(*f)).collect::<Vec<_>>().join(" -> ");
    let _ = write!(text, "\n  shortest cycle: {cycle}\n  arrows:");
    for ((from, to), names) in arrows.iter().filter(|((from, to), _)| files.contains(from) && files.contains(to)) {
        let shown = names.iter().take(NAMES).map(|(name, line)| format!("{name} (line {line})")).collect::<Vec<_>>();
        let more = names.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let _ = write!(text, "\n    {} -> {}: {}{more}", workspace.path(*from), workspace.path(*to), shown.join(", "));
    }
    text
}

/// Returns the strongly connected components of a graph, by reachability; a few hundred files make this cheap.
pub(super) fn components<N: Ord + Copy>(graph: &BTreeMap<N, BTreeSet<N>>) -> Vec<BTreeSet<N>> {
    let reach = graph.keys().map(|n| (*n, reached(graph, *n))).collect::<BTreeMap<_, _>>();
    let mut found = Vec::<BTreeSet<N>>::new();
    for node in graph.keys() {
        if found.iter().any(|c| c.contains(node)) {
            continue;
        }
        let mut component = reach[node].iter().filter(|n| reach[n].contains(node)).copied().collect::<BTreeSet<_>>();
        component.insert(*node);
        found.push(component);
    }
    found
}

/// Returns all nodes that can be reached from `start`.
fn reached<N: Ord + Copy>(graph: &BTreeMap<N, BTreeSet<N>>, start: N) -> BTreeSet<N> {
    let mut found = BTreeSet::new();
    let mut left = vec![start];
    while let Some(node) = left.pop() {
        for next in graph.get(&node).into_iter().flatten() {
            if found.insert(*next) {
                left.push(*next);
            }
        }
    }
    found
}

/// Returns a shortest loop among the files of a component, with its first file repeated at the end.
fn shortest_loop(graph: &BTreeMap<FileId, BTreeSet<FileId>>, files: &BTreeSet<FileId>) -> Vec<FileId> {
    let loops = files.iter().filter_map(|start| loop_through(graph, *start));
    loops.min_by_key(Vec::len).unwrap_or_default()
}

fn loop_through(graph: &BTreeMap<FileId, BTreeSet<FileId>>, start: FileId) -> Option<Vec<FileId>> {
    let mut before = BTreeMap::new();
    let mut left = VecDeque::from([start]);
    while let Some(node) = left.pop_front() {
        for next in graph.get(&node).into_iter().flatten() {
            if *next == start {
                let mut cycle = vec![start, node];
                let mut at = node;
                while at != start {
                    at = before[&at];
                    cycle.push(at);
                }
                cycle.reverse();
                if node == start {
                    return None;
                }
                return Some(cycle);
            }
            if !before.contains_key(next) {
                before.insert(*next, node);
                left.push_back(*next);
            }
        }
    }
    None
}
