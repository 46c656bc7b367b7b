//! A Zarr store as a stream of file chunks.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use conclave_proto::error::{ErrorCode, Fault, to_status};
use conclave_proto::v1::FileChunk;
use tokio::sync::mpsc;
use tonic::Status;

/// Well below the 4 MiB that gRPC clients take by default.
const CHUNK_BYTES: usize = 256 << 10;

/// Sends every file below `root`. Blocks: for a thread that may.
pub(super) fn send(root: &Path, sender: &mpsc::Sender<Result<FileChunk, Status>>) {
    if let Err(error) = each(root, &mut |chunk| sender.blocking_send(Ok(chunk)).is_ok()) {
        let fault = match error.kind() {
            io::ErrorKind::NotFound => {
                Fault::new(ErrorCode::NotFound, "the job has no draws yet: they begin when every party has opened it")
            }
            _ => Fault::new(ErrorCode::Internal, format!("the draws can't be read: {error}")),
        };
        let _ = sender.blocking_send(Err(to_status(&fault)));
    }
}

/// Hands over every file below `root` until `take` says that nobody reads any more.
///
/// Metadata come first: chunks only ever grow, so a store that is still being written arrives with no shape that
/// promises more than its chunks hold.
///
/// # Errors
/// The file system's; [`io::ErrorKind::NotFound`] where there is no file.
pub(super) fn each(root: &Path, take: &mut impl FnMut(FileChunk) -> bool) -> io::Result<()> {
    let files = list(root)?;
    if files.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    for file in &files {
        if !hand_over(root, file, take)? {
            break;
        }
    }
    Ok(())
}

/// Every file below `root`, relative to it, metadata first.
fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with('.') {
                files.push(path);
            }
        }
    }
    files.sort_by_key(|path| (path.file_name().is_none_or(|name| name != "zarr.json"), path.clone()));
    Ok(files)
}

/// False where nobody reads any more.
fn hand_over(root: &Path, path: &Path, take: &mut impl FnMut(FileChunk) -> bool) -> io::Result<bool> {
    // Names are made by `zarr::encode`, hence ASCII; the wire's separator is a slash on every platform.
    let name = path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
    let mut file = File::open(root.join(path))?;
    let mut left = file.metadata()?.len();
    loop {
        let mut data = vec![0; CHUNK_BYTES.min(left as usize)];
        file.read_exact(&mut data)?;
        left -= data.len() as u64;
        if !take(FileChunk { path: name.clone(), data, last: left == 0 }) {
            return Ok(false);
        }
        if left == 0 {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_file_arrives_whole_and_metadata_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let big: Vec<u8> = (0..CHUNK_BYTES + 5).map(|i| i as u8).collect();
        std::fs::create_dir_all(root.join("posterior/age/c/0")).unwrap();
        std::fs::write(root.join("posterior/age/c/0/0"), &big).unwrap();
        std::fs::write(root.join("posterior/age/c/0/.0.tmp"), b"half").unwrap();
        std::fs::write(root.join("posterior/age/zarr.json"), b"{}").unwrap();
        std::fs::write(root.join("empty"), b"").unwrap();
        let (sender, mut receiver) = mpsc::channel(100);
        send(root, &sender);
        drop(sender);
        let mut got: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut first = None;
        let mut lasts = 0;
        while let Some(chunk) = receiver.blocking_recv() {
            let chunk = chunk.unwrap();
            first.get_or_insert(chunk.path.clone());
            lasts += usize::from(chunk.last);
            got.entry(chunk.path).or_default().extend(chunk.data);
        }
        assert_eq!(first.as_deref(), Some("posterior/age/zarr.json"));
        assert_eq!(lasts, 3);
        assert_eq!(got["posterior/age/c/0/0"], big);
        assert_eq!(got.keys().collect::<Vec<_>>(), ["empty", "posterior/age/c/0/0", "posterior/age/zarr.json"]);
    }

    #[test]
    fn no_draws_is_not_found() {
        let (sender, mut receiver) = mpsc::channel(1);
        send(Path::new("/nowhere/at/all"), &sender);
        let status = receiver.blocking_recv().unwrap().unwrap_err();
        assert_eq!(conclave_proto::error::from_status(&status).code, ErrorCode::NotFound);
    }
}
