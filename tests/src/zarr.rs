//! Reading a Zarr v3 store of draws from its raw files, by the format's specification and not with the writer's code.

use std::fs;
use std::path::Path;

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

/// A store's `zarr.json` of an array or group.
pub fn metadata(node: &Path) -> Value {
    let path = node.join("zarr.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let metadata: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(metadata["zarr_format"], 3, "{}", path.display());
    metadata
}

/// An array of shape (chain, draw), as `[chain][draw]`.
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
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
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
