//! A histogram of survival times: the numbers of records with and without an event in ranges of time.
//!
//! The ranges have equal widths on the scale of log time, from the least to the greatest declared time. A usable record is in one
//! cell, given by its event and its time; an unusable one, without a time or with an event other than 0 or 1, in one further cell.
//! The counts and their sensitivity are those of one table of [`super::Tables`], with the event as the class.

use super::table::NOWHERE;
use super::times::Times;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::Cells;
use conclave_privacy::pass::tile::Tile;

/// The histogram. Cells are numbered by event, 0 first, and then by time.
#[derive(Debug, Clone, Copy)]
pub struct TimesTable {
    times: Times,
}

impl TimesTable {
    /// Number of ranges of time.
    pub const RANGES: usize = 32;

    pub(super) fn new(times: Times) -> Self {
        Self { times }
    }

    /// Returns the number of cells, including that of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        2 * Self::RANGES + 1
    }

    /// Returns the logarithm of the least time, in units of the greatest.
    #[must_use]
    pub fn least_log(&self) -> f64 {
        self.times.least_log
    }

    /// Gives itself to a pass. There is no branch on a record, and every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        assert_eq!(pass.columns().1, 1, "a time has its event");
        pass.one_hot(self, &[2 * Self::RANGES]);
    }
}

impl Cells for TimesTable {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let [codes] = codes else { return };
        let ranges = Self::RANGES as f64;
        let per_log = -ranges / self.times.least_log;
        for ((code, x), event) in codes.iter_mut().zip(rows.outcome()).zip(rows.auxiliary(0)) {
            // The last range includes the greatest time. Not-a-number stays so, and is in no cell.
            let range = ((self.times.log(*x) - self.times.least_log) * per_log).floor().clamp(0.0, ranges - 1.0);
            let usable = (*event == 0.0) | (*event == 1.0);
            *code = if usable { event * ranges + range } else { NOWHERE };
        }
    }
}

#[cfg(test)]
#[path = "tests/times_table.rs"]
mod tests;
