//! Prevention of core files, which would hold data that is kept only in memory: records, keys, unmasked numbers.

/// Prevents this process from writing a core file, whatever its service manager allows.
///
/// # Errors
/// The system's error if it rejects the limit.
#[cfg(unix)]
pub fn forbid() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(Into::into)
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub fn forbid() -> std::io::Result<()> {
    Ok(())
}
