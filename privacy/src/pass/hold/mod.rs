//! The holds turn what a kernel computes of records into integers under a public bound: interval, ball, trace, one-hot.
//!
//! A kernel returns a float, or a vector of floats, for each record, computed from that record and public constants alone. Its
//! numbers are not trusted. Whatever it returns, not-a-number and infinities included, a hold adds integers of the unit's
//! admissible set. So a wrong model costs accuracy and never privacy.
//! No other code makes a [`LatticeSum`]: its constructors are private to this module. A sum carries how far one unit of privacy
//! can move it ([`Moves`]), and a release compares that with what was charged.
//!
//! ```compile_fail
//! # use conclave_privacy::pass::hold::LatticeSum;
//! // A model cannot make a sum of numbers of its own.
//! let sum = LatticeSum::whole(&[7], conclave_privacy::pass::hold::Moves::interval(-1, 1));
//! ```
//! ```
//! # use conclave_privacy::pass::hold::{Moves, fallback};
//! let _ = fallback(Moves::interval(-1, 1), 1);
//! ```

mod ball;
mod interval;
mod moves;
mod one_hot;
mod sum;
mod trace;

pub use ball::{Sloped, ball, slope_weights};
pub use interval::{Values, ratios, statistic, values};
pub use moves::Moves;
pub use one_hot::{Cells, one_hot};
pub use sum::{LatticeSum, SumCache, log_weights};
pub use trace::{Columns, DIAGONAL, Place, trace};

/// Returns the fallback contribution of a unit whose kernel failed: the admissible vector closest to zero, `length` integers.
///
/// That is zero, except for an interval that does not hold zero: there it is the end closest to zero.
#[must_use]
pub fn fallback(moves: Moves, length: usize) -> LatticeSum {
    LatticeSum::whole(&vec![moves.closest_to_zero(); length.max(1)], moves)
}
