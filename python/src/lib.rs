//! The native half of the Python package `conclave`: tables in, JSON and draws out, over the functions of [`conclave::api`].
//!
//! Everything that has a choice of words or of types is in the Python half. Long work runs on threads of its own while the
//! interpreter's lock is released, and signals are looked for every tenth of a second.

mod arrow;
mod client;
mod errors;
mod functions;
mod process;
mod rehearsals;
mod runs;
mod waiting;

use pyo3::prelude::*;

/// The native half of the package.
#[pymodule]
mod _conclave {
    #[pymodule_export]
    use super::client::{Client, Task};
    #[pymodule_export]
    use super::functions::{
        account, account_subsampled, completed, describe, error_codes, from_formula, main, mu_of, plan, predict, with_settings,
    };
    #[pymodule_export]
    use super::rehearsals::{check, rehearse};
    #[pymodule_export]
    use super::runs::Run;
}
