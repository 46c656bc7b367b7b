//! What of a job file its algorithm has no use for.

/// A key, whether it is written, and why the algorithm has no use for it.
pub(super) type Unused = (&'static str, bool, &'static str);
