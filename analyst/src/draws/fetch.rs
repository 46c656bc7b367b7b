//! Fetches a job's store of draws file by file.

use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{FileChunk, JobRequest};
use tonic::transport::Channel;

use crate::faults::{input, internal, refused};
use crate::files;

/// Fetches a job's store of draws into a folder; returns the number of files and of bytes.
pub(crate) async fn fetch(client: &mut JobsClient<Channel>, job: &str, folder: &Path) -> Result<(u64, u64), Fault> {
    let mut chunks = client.draws(JobRequest { job: job.to_owned() }).await.map_err(refused)?.into_inner();
    if !files::is_vacant(folder)? {
        return Err(
            input(format!("{} is left over from an interrupted fetch", folder.display())).with_remedy("remove it and try again")
        );
    }
    let mut store = FetchedStore::new(folder)?;
    while let Some(chunk) = chunks.message().await.map_err(refused)? {
        store.accept(chunk)?;
    }
    store.finish()
}

/// Returns the name beside `out` for an incomplete store.
pub(crate) fn partial_name(out: &Path) -> PathBuf {
    let mut name = out.components().as_path().as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Files received in sequence, each in one or more chunks.
struct FetchedStore {
    root: PathBuf,
    open: Option<(String, File)>,
    files: u64,
    bytes: u64,
}

impl FetchedStore {
    fn new(root: &Path) -> Result<Self, Fault> {
        files::make_folder(root)?;
        Ok(Self { root: root.to_owned(), open: None, files: 0, bytes: 0 })
    }

    fn accept(&mut self, chunk: FileChunk) -> Result<(), Fault> {
        let (name, mut file) = match self.open.take() {
            Some((name, file)) if name == chunk.path => (name, file),
            Some((name, _)) => return Err(broken(&format!("the file {name} is incomplete"))),
            None => {
                let path = self.root.join(relative(&chunk.path)?);
                if let Some(folder) = path.parent() {
                    files::make_folder(folder)?;
                }
                let file = File::create_new(&path).map_err(|e| Fault::of_file(&path, "be written", &e))?;
                self.files += 1;
                (chunk.path, file)
            }
        };
        file.write_all(&chunk.data).map_err(|e| Fault::of_file(&self.root.join(&name), "be written", &e))?;
        self.bytes += chunk.data.len() as u64;
        if !chunk.last {
            self.open = Some((name, file));
        }
        Ok(())
    }

    fn finish(self) -> Result<(u64, u64), Fault> {
        match self.open {
            Some((name, _)) => Err(broken(&format!("the file {name} is incomplete"))),
            None if self.files == 0 => Err(Fault::new(ErrorCode::NotFound, "the job has no draws yet")),
            None => Ok((self.files, self.bytes)),
        }
    }
}

/// Checks that a path stays inside the store. The coordinator is not trusted with the rest of this machine.
fn relative(path: &str) -> Result<&Path, Fault> {
    let relative = Path::new(path);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.is_empty() {
        return Ok(relative);
    }
    Err(broken(&format!("the path {path:?} leads out of the store")))
}

fn broken(what: &str) -> Fault {
    internal(format!("the coordinator's draws cannot be used: {what}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn chunk(path: &str, data: &[u8], last: bool) -> FileChunk {
        FileChunk { path: path.to_owned(), data: data.to_vec(), last }
    }

    #[test]
    fn files_are_put_together() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = FetchedStore::new(&folder.path().join("s")).unwrap();
        store.accept(chunk("a/b/c", b"12", false)).unwrap();
        store.accept(chunk("a/b/c", b"34", true)).unwrap();
        store.accept(chunk("zarr.json", b"{}", true)).unwrap();
        assert_eq!(store.finish().unwrap(), (2, 6));
        assert_eq!(std::fs::read(folder.path().join("s/a/b/c")).unwrap(), b"1234");
    }

    #[test]
    fn a_store_that_breaks_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = FetchedStore::new(folder.path()).unwrap();
        store.accept(chunk("a", b"1", false)).unwrap();
        assert!(store.accept(chunk("b", b"1", true)).is_err());
        let mut store = FetchedStore::new(folder.path()).unwrap();
        store.accept(chunk("c", b"1", false)).unwrap();
        assert!(store.finish().is_err());
    }

    #[test]
    fn no_path_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["", "/etc/x", "../x", "a/../../x", "./x", "a/./../x"] {
            let mut store = FetchedStore::new(folder.path()).unwrap();
            assert!(store.accept(chunk(path, b"", true)).is_err(), "{path}");
        }
    }

    #[test]
    fn partial_names() {
        assert_eq!(partial_name(Path::new("x/draws/")), Path::new("x/draws.partial"));
    }
}
