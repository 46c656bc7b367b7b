//! Keys of a job file that its algorithm does not use.

/// A key, whether it is written, and the reason why the algorithm does not use it.
pub(super) type Unused = (&'static str, bool, &'static str);
