//! A core file would hold what a process keeps in memory alone: records, keys, numbers before their masks.

/// Lets this process leave no core file, whatever its service manager allows.
///
/// # Errors
/// The system's, where it does not take the limit.
#[cfg(unix)]
pub fn forbid() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(Into::into)
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn forbid() -> std::io::Result<()> {
    Ok(())
}
