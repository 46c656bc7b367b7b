//! Compares the published draws, file by file as they arrive, with those implied by the log: bit for bit.

use conclave_proto::array_name::encode;
use conclave_proto::v1::FileChunk;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

use super::check::Check;
use super::drawn::{Column, DrawRange};
use super::replayed::Replayed;
use super::summary;
use conclave_vault::text::clip;

const NAME: &str = "draws";
/// Maximum size of a file in a store of draws.
const MAX_BYTES: usize = 1 << 24;

/// An array required in the store.
struct Array {
    warmup: bool,
    column: Column,
    /// Length of its growing dimension and of its chunks along it, once its metadata have arrived.
    shape: Option<(usize, usize)>,
    /// Chunks received, as `(row, number)`.
    chunks: BTreeSet<(usize, usize)>,
}

/// A store of draws being received, with the replay that it is compared with.
pub(super) struct Published {
    replayed: Replayed,
    /// Arrays by folder.
    arrays: BTreeMap<String, Array>,
    /// The file being received.
    file: Option<(String, Vec<u8>)>,
    wrong: Option<String>,
    any: bool,
}

impl Published {
    pub(super) fn of(replayed: Replayed) -> Self {
        let mut arrays = BTreeMap::new();
        let names = replayed.spec.draw_names();
        for (warmup, prefix) in [(false, ""), (true, "warmup_")] {
            let mut add = |folder: String, column| {
                arrays.insert(format!("{prefix}{folder}"), Array { warmup, column, shape: None, chunks: BTreeSet::new() })
            };
            for (at, name) in names.iter().enumerate() {
                add(format!("posterior/{}", encode(name, at)), Column::Theta(at));
            }
            let stats = [("accepted", Column::Accepted), ("log_alpha", Column::LogAlpha), ("iteration", Column::Iteration)];
            stats.into_iter().for_each(|(name, column)| drop(add(format!("sample_stats/{name}"), column)));
            for group in ["posterior", "sample_stats"] {
                add(format!("{group}/chain"), Column::Chain);
                add(format!("{group}/draw"), Column::Draw);
            }
        }
        Self { replayed, arrays, file: None, wrong: None, any: false }
    }

    /// Adds a piece of a file.
    pub(super) fn take(&mut self, chunk: FileChunk) {
        self.any = true;
        if self.wrong.is_some() || !self.replayed.whole {
            return;
        }
        let (path, mut bytes) = self.file.take().unwrap_or_else(|| (chunk.path.clone(), Vec::new()));
        bytes.extend(chunk.data);
        if path != chunk.path || bytes.len() > MAX_BYTES {
            self.wrong = Some(format!("{} is incomplete, or longer than any array's file", shown(&path)));
        } else if chunk.last {
            self.wrong = self.compare(&path, &bytes).err();
        } else {
            self.file = Some((path, bytes));
        }
    }

    /// Compares one complete file; files outside the arrays of draws are ignored.
    fn compare(&mut self, path: &str, bytes: &[u8]) -> Result<(), String> {
        if let Some(array) = path.strip_suffix("/zarr.json").and_then(|folder| self.arrays.get_mut(folder)) {
            let stretch = stretch(&self.replayed, array.warmup);
            array.shape = Some(
                shape(bytes, array.column, stretch.chains())
                    .ok_or_else(|| format!("{} does not describe an array of draws as this version writes them", shown(path)))?,
            );
            return Ok(());
        }
        let Some((folder, key)) = path.split_once("/c/") else { return Ok(()) };
        let Some(array) = self.arrays.get_mut(folder) else { return Ok(()) };
        let stretch = stretch(&self.replayed, array.warmup);
        let numbers: Option<Vec<usize>> = key.split('/').map(|n| n.parse().ok()).collect();
        let place = match (numbers.as_deref(), array.column.by_chain()) {
            (Some([row, chunk]), true) if *row < stretch.chains() => Some((*row, *chunk)),
            (Some([chunk]), false) => Some((0, *chunk)),
            _ => None,
        };
        let (Some((row, chunk)), Some((length, columns))) = (place, array.shape) else {
            return Err(format!("{} is not part of the array described by its metadata", shown(path)));
        };
        array.chunks.insert((row, chunk));
        let size = array.column.size();
        if bytes.len() != columns.saturating_mul(size) {
            return Err(format!("the length of {} differs from its metadata", shown(path)));
        }
        // A running job may have published draws since its log was read.
        let known = if array.column == Column::Chain { stretch.chains() } else { stretch.draws() };
        let from = chunk.saturating_mul(columns);
        let to = length.min(known).min(from.saturating_add(columns));
        if from >= to {
            return Ok(());
        }
        let expected = stretch.bytes(array.column, row, (from, to));
        let differs = expected.chunks(size).zip(bytes.chunks(size)).position(|(a, b)| a != b);
        match differs {
            None => Ok(()),
            Some(at) => Err(format!(
                "{}, chain {row}, draw {}: {} is published, but the log implies {}",
                shown(folder),
                from + at,
                element(array.column, &bytes[at * size..(at + 1) * size]),
                element(array.column, &expected[at * size..(at + 1) * size])
            )),
        }
    }

    /// Makes the checks after the last file; returns the rounds replayed and the resulting draws per chain.
    pub(super) fn finish(mut self, damage: Option<String>, removed: bool, checks: &mut Vec<Check>) -> (u64, u64) {
        let counts = (self.replayed.count, self.replayed.drawn.sampling.draws() as u64);
        if let Some(damage) = &damage {
            checks.push(Check::fails("log", format!("the coordinator can't read its own log to its end: {damage}")));
        }
        checks.append(&mut self.replayed.checks);
        checks.push(match &self.replayed {
            _ if damage.is_some() => Check::skipped(NAME, "the log can't be read to its end"),
            replayed if !replayed.whole => Check::skipped(NAME, "the log can't be replayed to its end"),
            _ => self.complete(removed),
        });
        checks.push(match damage {
            Some(_) => Check::skipped("result", "the log can't be read to its end"),
            None => summary::check(&self.replayed),
        });
        counts
    }

    /// Checks that everything required was published; `removed` is the coordinator's statement that it no longer keeps the draws.
    fn complete(&self, removed: bool) -> Check {
        let (over, drawn) = (self.replayed.claim.over(), &self.replayed.drawn);
        let (kept, warmup) = (drawn.sampling.draws(), drawn.warmup.draws());
        if !self.any {
            return match (kept + warmup, over) {
                (0, _) => Check::skipped(NAME, "there are none yet"),
                (_, false) => Check::skipped(NAME, "none are published yet"),
                (_, true) if removed => Check::skipped(NAME, "the coordinator states that it no longer keeps them"),
                (_, true) => Check::fails(NAME, "the log implies draws, but none are published"),
            };
        }
        let wrong = self.wrong.clone().or_else(|| self.arrays.iter().find_map(|(folder, array)| self.lacks(folder, array, over)));
        let mut detail = format!("{kept} draws per chain and {warmup} of the warm-up follow from the log, bit for bit");
        if !over {
            detail += ", as far as they are published";
        }
        Check::of(NAME, wrong, detail)
    }

    /// Describes the missing part of an array.
    fn lacks(&self, folder: &str, array: &Array, over: bool) -> Option<String> {
        let stretch = stretch(&self.replayed, array.warmup);
        let expected = if array.column == Column::Chain { stretch.chains() } else { stretch.draws() };
        let Some((length, columns)) = array.shape else {
            return Some(format!("{folder} is not published"));
        };
        if length != expected && (over || array.column == Column::Chain) {
            return Some(format!("{folder} is published with {length} elements per row, but the log implies {expected}"));
        }
        let rows = if array.column.by_chain() { stretch.chains() } else { 1 };
        let all = (0..rows).flat_map(|row| (0..length.min(expected).div_ceil(columns)).map(move |chunk| (row, chunk)));
        let missing = all.into_iter().find(|place| !array.chunks.contains(place));
        missing.map(|(row, chunk)| format!("{folder}: part {chunk} of row {row} is not published"))
    }
}

fn stretch(replayed: &Replayed, warmup: bool) -> &DrawRange {
    if warmup { &replayed.drawn.warmup } else { &replayed.drawn.sampling }
}

fn shown(path: &str) -> String {
    clip(path, 120)
}

/// Returns the lengths of an array and of its chunks; `None` if its layout is not the one that readers of draws expect.
fn shape(metadata: &[u8], column: Column, chains: usize) -> Option<(usize, usize)> {
    let metadata: Value = serde_json::from_slice(metadata).ok()?;
    for (key, expected) in [
        ("zarr_format", json!(3)),
        ("node_type", json!("array")),
        ("data_type", json!(column.data_type())),
        ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "/"}})),
        ("codecs", json!([{"name": "bytes", "configuration": {"endian": "little"}}])),
    ] {
        if metadata[key] != expected {
            return None;
        }
    }
    let lengths = |value: &Value| -> Option<Vec<usize>> {
        value.as_array()?.iter().map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok())).collect()
    };
    let grid = &metadata["chunk_grid"];
    let (shape, chunk) = (lengths(&metadata["shape"])?, lengths(&grid["configuration"]["chunk_shape"])?);
    let found = match (column.by_chain(), shape.as_slice(), chunk.as_slice()) {
        (true, [rows, length], [1, columns]) if *rows == chains => (*length, *columns),
        (false, [length], [columns]) => (*length, *columns),
        _ => return None,
    };
    (grid["name"] == "regular" && found.1 > 0).then_some(found)
}

fn element(column: Column, bytes: &[u8]) -> String {
    let eight = || bytes.try_into().unwrap_or_default();
    match column.data_type() {
        "float64" => format!("{:?}", f64::from_le_bytes(eight())),
        "int64" => i64::from_le_bytes(eight()).to_string(),
        _ => (bytes != [0]).to_string(),
    }
}
