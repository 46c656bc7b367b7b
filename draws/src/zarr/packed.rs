//! A packed store: a ZIP archive of the store's files, uncompressed, as zarr-python's `ZipStore` reads it.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use serde_json::Value;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::layout::{below, text_of};

/// A packed store being written.
pub(super) struct PackedFile(ZipWriter<BufWriter<File>>);

impl PackedFile {
    /// Adds a node's `zarr.json`; the root's name is empty.
    pub(super) fn node(&mut self, name: &str, metadata: &Value) -> io::Result<()> {
        let name = if name.is_empty() { "zarr.json".to_owned() } else { format!("{name}/zarr.json") };
        self.put(&name, &text_of(metadata)?)
    }

    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).unix_permissions(0o600);
        self.0.start_file(name, options).map_err(io::Error::from)?;
        self.0.write_all(bytes)
    }
}

/// Writes a file atomically: it has a temporary name until it is complete and synced.
///
/// # Errors
/// The file system's.
pub(super) fn write(to: &Path, fill: impl FnOnce(&mut PackedFile) -> io::Result<()>) -> io::Result<()> {
    let mut draft = to.as_os_str().to_owned();
    draft.push(".tmp");
    let draft = Path::new(&draft);
    let mut file = PackedFile(ZipWriter::new(BufWriter::new(File::create(draft)?)));
    fill(&mut file)?;
    file.0.finish().map_err(io::Error::from)?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(draft, to)
}

/// Packs every file below a folder into the file `to`.
///
/// # Errors
/// The file system's.
pub fn pack_folder(root: &Path, to: &Path) -> io::Result<()> {
    let names = below(root)?;
    write(to, |file| names.iter().try_for_each(|name| file.put(name, &std::fs::read(root.join(name))?)))
}

/// A packed store opened for reading.
pub(super) type Archive = ZipArchive<File>;

pub(super) fn open(path: &Path) -> io::Result<Archive> {
    ZipArchive::new(File::open(path)?).map_err(as_io)
}

/// Reads a whole member and checks its checksum.
pub(super) fn read(archive: &mut Archive, name: &str) -> io::Result<Vec<u8>> {
    let mut member = archive.by_name(name).map_err(as_io)?;
    let mut bytes = Vec::new();
    member.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts an error; a missing member becomes a missing file.
pub(super) fn as_io(error: ZipError) -> io::Error {
    match error {
        ZipError::FileNotFound => io::ErrorKind::NotFound.into(),
        ZipError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}
