//! Element types of a store of draws, and their little-endian encoding.

use serde_json::{Value, json};

/// An element type of the store.
pub trait Element: Copy {
    /// Its name in `data_type`.
    const DATA_TYPE: &'static str;
    /// The padding of an unfinished chunk.
    const FILL: Self;
    /// Returns [`Self::FILL`] for `zarr.json`.
    fn fill_value() -> Value;
    /// Appends the element's little-endian bytes.
    fn put(self, out: &mut Vec<u8>);
    /// Decodes an element from its little-endian bytes, of the length that [`Self::put`] appends.
    fn get(bytes: &[u8]) -> Self;
}

impl Element for f64 {
    const DATA_TYPE: &'static str = "float64";
    const FILL: Self = f64::NAN;
    fn fill_value() -> Value {
        json!("NaN")
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn get(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(Self::FILL, Self::from_le_bytes)
    }
}

impl Element for i64 {
    const DATA_TYPE: &'static str = "int64";
    const FILL: Self = 0;
    fn fill_value() -> Value {
        json!(0)
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn get(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(Self::FILL, Self::from_le_bytes)
    }
}

impl Element for bool {
    const DATA_TYPE: &'static str = "bool";
    const FILL: Self = false;
    fn fill_value() -> Value {
        json!(false)
    }
    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
    fn get(bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|byte| *byte != 0)
    }
}
