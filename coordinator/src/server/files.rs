//! A Zarr store as a stream of file chunks.

use std::io;
use std::path::Path;

use conclave_draws::zarr::StoreFiles;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::FileChunk;
use tokio::sync::mpsc;
use tonic::Status;

/// Size of a chunk, well below the 4 MiB that gRPC clients accept by default.
const CHUNK_BYTES: usize = 256 << 10;

/// Sends every file below `root`. `over` is true if the job has ended with draws. Blocks: call it on a thread that may.
pub(super) fn send(root: &Path, over: bool, sender: &mpsc::Sender<Result<FileChunk, Status>>) {
    if let Err(error) = each(root, &mut |chunk| sender.blocking_send(Ok(chunk)).is_ok()) {
        let fault = match error.kind() {
            io::ErrorKind::NotFound if over => Fault::new(
                ErrorCode::NotFound,
                "the coordinator no longer keeps this job's draws (`keep_draws_days`); its summary and its log are kept",
            ),
            io::ErrorKind::NotFound => {
                Fault::new(ErrorCode::NotFound, "the job has no draws yet: they begin when every party has opened it")
            }
            _ => Fault::new(ErrorCode::Internal, format!("the draws can't be read: {error}")),
        };
        let _ = sender.blocking_send(Err(fault.into()));
    }
}

/// Passes every file of the store at `root` to `take`, until `take` returns false because nobody reads any more.
///
/// Metadata come first: chunks only grow, so a store that is still being written never arrives with a shape larger than its
/// chunks.
///
/// # Errors
/// A file system error; [`io::ErrorKind::NotFound`] if there is no file.
pub(super) fn each(root: &Path, take: &mut impl FnMut(FileChunk) -> bool) -> io::Result<()> {
    let files = StoreFiles::open(root)?;
    let names = files.names()?;
    if names.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    for name in &names {
        let sent = hand_over(&files, name, take).map_err(|e| match e.kind() {
            // The job has ended since the folder was opened: its draws are in one file now.
            io::ErrorKind::NotFound => io::Error::other(format!("{name} is gone, because the job has just ended: try again")),
            _ => e,
        });
        if !sent? {
            break;
        }
    }
    Ok(())
}

/// Passes a file on in chunks; returns false if nobody reads any more.
fn hand_over(files: &StoreFiles, name: &str, take: &mut impl FnMut(FileChunk) -> bool) -> io::Result<bool> {
    let (mut left, mut file) = files.stream(name)?;
    loop {
        let mut data = vec![0; CHUNK_BYTES.min(left as usize)];
        file.read_exact(&mut data)?;
        left -= data.len() as u64;
        if !take(FileChunk { path: name.to_owned(), data, last: left == 0 }) {
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
        send(root, false, &sender);
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
        for (over, word) in [(false, "no draws yet"), (true, "keep_draws_days")] {
            let (sender, mut receiver) = mpsc::channel(1);
            send(Path::new("/nowhere/at/all"), over, &sender);
            let fault = conclave_proto::error::from_status(&receiver.blocking_recv().unwrap().unwrap_err());
            assert!(fault.code == ErrorCode::NotFound && fault.message.contains(word), "{fault}");
        }
    }
}
