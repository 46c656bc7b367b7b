//! Warnings to the owner about the data of pending jobs. Computing them loads the data: once per job, and one load at a time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::config::PartyConfig;
use crate::owner::inquiries::Inquiry;
use crate::owner::{JobView, pending_job};
use conclave_vault::data::{DataError, Stamp};

/// Maximum number of jobs with cached warnings; one more clears the cache.
const MOST: usize = 64;

/// Cached warnings, valid while the data file is unchanged. A job's id identifies its text.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    stamp: Option<Stamp>,
    of_job: HashMap<String, Vec<Inquiry>>,
}

impl Warnings {
    /// Returns the warnings about a pending job. Blocks: it reads files and waits for other readers.
    pub(super) fn of(&self, config: &PartyConfig, job: &JobView) -> Vec<Inquiry> {
        self.cached_or(config, &job.request.job, || pending_job::try_inquiries(config, job))
    }

    fn cached_or(&self, config: &PartyConfig, id: &str, load: impl FnOnce() -> Result<Vec<Inquiry>, DataError>) -> Vec<Inquiry> {
        // Locked while the data are loaded, so that there is no second copy. A load that panicked leaves the cache unchanged.
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Stamped before loading: a file that changes meanwhile is loaded again.
        let stamp = std::fs::metadata(&config.data.path).ok().map(|about| Stamp::of(&about));
        if stamp.is_none() || stamp != cache.stamp {
            *cache = Cache { stamp, of_job: HashMap::new() };
        }
        if let Some(warnings) = cache.of_job.get(id) {
            return warnings.clone();
        }
        match load() {
            Ok(warnings) => {
                if cache.of_job.len() >= MOST {
                    cache.of_job.clear();
                }
                if cache.stamp.is_some() {
                    cache.of_job.insert(id.to_owned(), warnings.clone());
                }
                warnings
            }
            Err(e) => vec![Inquiry { found: vec![pending_job::unread(&e)], remedy: String::new() }],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn inquiry(found: String) -> Inquiry {
        Inquiry { found: vec![found], remedy: String::new() }
    }

    fn config(folder: &std::path::Path) -> PartyConfig {
        let text = "name = \"a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l\"\n[data]\npath = \"a.csv\"\n\
                    [budget]\nepsilon = 8.0\ndelta = 1e-6\n[policy]\nmax_epsilon_per_job = 3.0\n";
        PartyConfig::parse(text, folder).unwrap()
    }

    #[test]
    fn data_are_loaded_once_for_a_job_until_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let (config, warnings, loads) = (config(folder.path()), Warnings::default(), AtomicUsize::new(0));
        let ask = |id: &str| {
            let load = || Ok(vec![inquiry(format!("load {}", loads.fetch_add(1, Ordering::Relaxed)))]);
            warnings.cached_or(&config, id, load).into_iter().flat_map(|inquiry| inquiry.found).collect::<Vec<_>>()
        };
        // Without a file there is no stamp to cache by.
        assert_eq!([ask("x"), ask("x")], [["load 0"], ["load 1"]]);
        std::fs::write(&config.data.path, "height\n150\n").unwrap();
        assert_eq!(
            [ask("x"), ask("x"), ask("y"), ask("x"), ask("y")],
            [["load 2"], ["load 2"], ["load 3"], ["load 2"], ["load 3"]]
        );
        std::fs::write(&config.data.path, "height\n150\n160\n").unwrap();
        assert_eq!([ask("y"), ask("y")], [["load 4"], ["load 4"]]);
        (0..10 * MOST).for_each(|id| drop(ask(&id.to_string())));
        assert!(warnings.0.lock().unwrap().of_job.len() <= MOST);
    }

    #[test]
    fn what_could_not_be_read_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (config, warnings) = (config(folder.path()), Warnings::default());
        std::fs::write(&config.data.path, "height\n150\n").unwrap();
        let missing = || Err(DataError::Unreadable { file: config.data.path.clone(), reason: "cut off".to_owned() });
        assert!(warnings.cached_or(&config, "x", missing)[0].found[0].contains("can't be read"));
        assert!(warnings.cached_or(&config, "x", || Ok(Vec::new())).is_empty());
        assert!(warnings.cached_or(&config, "x", missing).is_empty());
    }

    #[test]
    fn data_are_loaded_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (config, warnings, loading) = (config(folder.path()), Warnings::default(), AtomicUsize::new(0));
        std::fs::write(&config.data.path, "height\n150\n").unwrap();
        std::thread::scope(|threads| {
            for id in 0..8 {
                let (config, warnings, loading) = (&config, &warnings, &loading);
                threads.spawn(move || {
                    warnings.cached_or(config, &id.to_string(), || {
                        assert_eq!(loading.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::sleep(std::time::Duration::from_millis(2));
                        loading.fetch_sub(1, Ordering::SeqCst);
                        Ok(Vec::new())
                    })
                });
            }
        });
        assert_eq!(warnings.0.lock().unwrap().of_job.len(), 8);
    }
}
