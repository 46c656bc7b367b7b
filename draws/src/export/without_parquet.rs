//! Replacement for the Parquet export in a build without it: an error that names the other formats.

use std::path::Path;

use conclave_proto::error::{ErrorCode, Fault};

use crate::Draws;

/// Fails.
///
/// # Errors
/// [`ErrorCode::InvalidInput`], always.
pub fn write(_: &Draws, path: &Path) -> Result<(u64, u64), Fault> {
    let message = format!(
        "{} cannot be written: this program was built without Parquet (feature `parquet`); use --format zarr or csv",
        path.display()
    );
    Err(Fault::new(ErrorCode::InvalidInput, message))
}
