//! Resource usage of this process, if the system reports it (Linux).

use std::fs;

/// Bytes of memory in use, open file descriptors and their limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_fds: Option<u64>,
    pub(crate) max_fds: Option<u64>,
}

impl Usage {
    /// Returns the current usage.
    pub(crate) fn now() -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
        Self {
            resident_bytes: resident(&read("status")),
            // The count includes the descriptor of the folder while it is read.
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_fds: soft_limit(&read("limits")),
        }
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_reports_are_parsed() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t   1234 kB\nThreads:\t1\n"), Some(1234 * 1024));
        assert_eq!(
            soft_limit("Limit  Soft Limit  Hard Limit\nMax open files            1024                 4096    files\n"),
            Some(1024)
        );
        assert_eq!(soft_limit("Max open files            unlimited            unlimited  files\n"), None);
        assert_eq!((resident(""), soft_limit("")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn open_files_are_counted() {
        let before = Usage::now();
        let files: Vec<_> = (0..64).map(|_| fs::File::open("/proc/self/status")).collect();
        let now = Usage::now();
        // Other tests of this process open and close files too.
        assert!(now.open_fds >= before.open_fds.map(|n| n + 32) && files.len() == 64, "{before:?} {now:?}");
        assert!(now.resident_bytes > Some(1 << 20), "{now:?}");
    }
}
