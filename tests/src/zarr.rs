//! Reads a Zarr v3 store of draws from its raw files, by the format's specification and without the writer's code. A path may
//! lead into a store that is one file: `JOB.zarr.zip/posterior/age`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// An element as its eight (or one) little-endian bytes.
pub trait Element: Sized {
    /// Its `data_type`.
    const DATA_TYPE: &'static str;
    /// Its size in bytes.
    const SIZE: usize;
    /// Reads one element.
    fn read(bytes: &[u8]) -> Self;
}

impl Element for f64 {
    const DATA_TYPE: &'static str = "float64";
    const SIZE: usize = 8;
    fn read(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Element for i64 {
    const DATA_TYPE: &'static str = "int64";
    const SIZE: usize = 8;
    fn read(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Element for bool {
    const DATA_TYPE: &'static str = "bool";
    const SIZE: usize = 1;
    fn read(bytes: &[u8]) -> Self {
        assert!(bytes[0] <= 1, "{bytes:?} is not a bool");
        bytes[0] == 1
    }
}

/// Reads the `zarr.json` of an array or group.
pub fn metadata(node: &Path) -> Value {
    let path = node.join("zarr.json");
    let metadata: Value = serde_json::from_slice(&bytes(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(metadata["zarr_format"], 3, "{}", path.display());
    metadata
}

/// Reads an array of shape (chain, draw), as `[chain][draw]`.
pub fn read<T: Element>(array: &Path) -> Vec<Vec<T>> {
    let metadata = metadata(array);
    let what = array.display();
    assert_eq!(metadata["node_type"], "array", "{what}");
    assert_eq!(metadata["data_type"], T::DATA_TYPE, "{what}");
    assert_eq!(metadata["dimension_names"], json!(["chain", "draw"]), "{what}");
    assert_eq!(metadata["chunk_key_encoding"], json!({"name": "default", "configuration": {"separator": "/"}}), "{what}");
    assert_eq!(metadata["codecs"], json!([{"name": "bytes", "configuration": {"endian": "little"}}]), "{what}");
    let pair = |value: &Value| -> [usize; 2] {
        let numbers = value.as_array().expect("an array").iter().map(|v| v.as_u64().expect("a length") as usize);
        numbers.collect::<Vec<_>>().try_into().unwrap_or_else(|v| panic!("{what}: {v:?} is not two lengths"))
    };
    let [chains, draws] = pair(&metadata["shape"]);
    let [rows, columns] = pair(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
    let chunk = |i: usize, j: usize| {
        let path = array.join("c").join(i.to_string()).join(j.to_string());
        let bytes = bytes(&path);
        assert_eq!(bytes.len(), rows * columns * T::SIZE, "{}", path.display());
        bytes
    };
    let mut out: Vec<Vec<T>> = (0..chains).map(|_| Vec::with_capacity(draws)).collect();
    for (i, block) in out.chunks_mut(rows).enumerate() {
        for j in 0..draws.div_ceil(columns) {
            let bytes = chunk(i, j);
            let wanted = columns.min(draws - j * columns);
            for (row, line) in block.iter_mut().zip(bytes.chunks(columns * T::SIZE)) {
                row.extend(line.chunks(T::SIZE).take(wanted).map(T::read));
            }
        }
    }
    out
}

/// Reads a file, which may be a member of a ZIP archive.
pub fn bytes(path: &Path) -> Vec<u8> {
    let archive = path.ancestors().skip(1).find(|above| above.is_file());
    let Some(archive) = archive else { return fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())) };
    let name = path.strip_prefix(archive).expect("it is below").to_str().expect("ASCII");
    members(archive).remove(name).unwrap_or_else(|| panic!("{} has no {name}", archive.display()))
}

/// Reads the members of a ZIP archive that stores them uncompressed (APPNOTE.TXT 4.3.12, 4.3.16, 4.3.7), by its central
/// directory.
pub fn members(archive: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = fs::read(archive).unwrap_or_else(|e| panic!("{}: {e}", archive.display()));
    let short = |at: usize| usize::from(u16::from_le_bytes([all[at], all[at + 1]]));
    let long = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four bytes")) as usize;
    let end = all.windows(4).rposition(|four| four == b"PK\x05\x06").expect("the end of a central directory");
    let mut at = long(end + 16);
    let member = |_| {
        assert_eq!(&all[at..at + 4], b"PK\x01\x02", "{}", archive.display());
        assert_eq!(short(at + 10), 0, "it is not compressed");
        let (length, name, header) = (long(at + 24), short(at + 28), long(at + 42));
        let text = String::from_utf8(all[at + 46..at + 46 + name].to_vec()).expect("a name");
        at += 46 + name + short(at + 30) + short(at + 32);
        let from = header + 30 + short(header + 26) + short(header + 28);
        (text, all[from..from + length].to_vec())
    };
    (0..short(end + 10)).map(member).collect()
}

/// Replaces a store that is one file by the folder of files that earlier versions wrote; returns the folder.
pub fn unpack(archive: &Path) -> PathBuf {
    let folder = archive.with_extension("");
    for (name, bytes) in members(archive) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    fs::remove_file(archive).expect("removed");
    folder
}
