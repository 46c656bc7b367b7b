//! Holds, which turn a kernel's numbers into integers under a public bound: interval, ball, trace, one-hot.
//!
//! A kernel returns a float, or a vector of floats, for each record, computed from that record and public constants alone. Its
//! numbers are not trusted. Whatever it returns, not-a-number and infinities included, a hold adds integers of the unit's
//! admissible set. So a wrong model costs accuracy and never privacy.
//!
//! The caller names the admissible set of each sum ([`Hold`]). A [`BlockPass`] reads the records once and asks the model for a kernel.
//! Only this module creates a [`LatticeSum`], and no code outside this crate merges two. A sum carries the largest distance by
//! which one unit of privacy moves it ([`Moves`]). A release compares this distance with the charge.
//!
//! ```compile_fail
//! # use conclave_privacy::pass::hold::LatticeSum;
//! // A model cannot make a sum of numbers of its own.
//! let sum = LatticeSum::whole(&[7], conclave_privacy::pass::hold::Moves::interval(-1, 1));
//! ```
//! ```
//! # use conclave_privacy::pass::hold::Moves;
//! let _ = Moves::interval(-1, 1);
//! ```

mod ball;
mod block_pass;
mod choice;
mod interval;
mod moves;
mod one_hot;
mod sum;
mod trace;

pub use ball::{Sloped, slope_weights};
#[cfg(any(test, feature = "test-util"))]
pub use block_pass::block_sums;
pub(super) use block_pass::sums_of_block;
pub use block_pass::{BlockPass, Hold, Kernels};
pub use choice::log_weights;
pub use interval::Values;
pub use moves::Moves;
pub use one_hot::Cells;
pub use sum::{LatticeSum, SumCache};
pub use trace::{Columns, DIAGONAL, Place};
