//! A life table: the number of records whose follow-up ends in each interval of time, by event and by group.
//!
//! A usable record is in one cell, given by its group, by the interval in which its time lies and by how its follow-up ends: with the
//! event, without it within the interval, or without it at the interval's end. An unusable record, without a time, a group or an event that is 0 or
//! 1, is in one further cell; so is one that was followed for no time at all, which says nothing. The counts and their sensitivity are those of
//! one table of [`super::table::Tables`].
//!
//! # Law
//!
//! With `h_k` the probability of an event in interval `k` of the records at risk at its start, an event in interval `k` has the log likelihood
//! `log h_k + sum_{j<k} log(1 - h_j)`. A record that is censored at the end of interval `k` has `sum_{j<=k} log(1 - h_j)`, and one that is
//! censored within it half of the last term: the actuarial convention of Cutler & Ederer, *Maximum utilization of the life table method in
//! analyzing survival*, Journal of Chronic Diseases 8 (1958). With a cut at every distinct time it is the law of Kaplan and Meier (1958).

use super::survival::TIE;
use super::table::NOWHERE;
use crate::schema::{self, ColumnSpec};
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::Cells;
use conclave_privacy::pass::tile::Tile;

/// The ways in which a record's follow-up ends in an interval: cells 0, 1, 2 of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUpEnd {
    /// With the event.
    Event,
    /// Without it, within the interval.
    Within,
    /// Without it, at the interval's end.
    AtEnd,
}

impl FollowUpEnd {
    /// Number of ways.
    pub const COUNT: usize = 3;
}

/// Probabilities of an event in intervals of time, by group.
#[derive(Debug, Clone)]
pub struct LifeTable {
    pub(super) names: Vec<String>,
    /// The intervals' ends in units of the longest declared time: the cuts, 1.
    ends: Vec<f64>,
    groups: usize,
    by: bool,
    /// A time for `x = 0` on the scale of the shard, and its slope in `x`.
    scale: (f64, f64),
}

impl LifeTable {
    /// Creates the model. `names` are the parameters, group by group in the order of the intervals; `time` is the column of times.
    pub(super) fn new(names: Vec<String>, spec: &schema::LifeTable, time: &ColumnSpec) -> Self {
        let longest = time.centre() + time.half_width();
        let ends = spec.cuts.iter().map(|cut| cut / longest).chain([1.0]).collect();
        let scale = (time.centre() / longest, time.half_width() / longest);
        Self { names, ends, groups: spec.groups(), by: spec.by.is_some(), scale }
    }

    /// Returns the number of intervals.
    #[must_use]
    pub fn intervals(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the number of cells, including that of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.groups * self.intervals() * FollowUpEnd::COUNT + 1
    }

    /// Returns the number of a cell.
    #[must_use]
    pub fn cell(&self, group: usize, interval: usize, end: FollowUpEnd) -> usize {
        (group * self.intervals() + interval) * FollowUpEnd::COUNT + end as usize
    }

    /// Gives itself to a pass. There is no branch on a record, and every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        assert_eq!(pass.columns().1, 1 + usize::from(self.by), "a shard has the event's column, and the group's");
        pass.one_hot(self, &[self.cells() - 1]);
    }

    /// Returns a record's cell from its time and event on the scale of the shard and its group; [`NOWHERE`] for an unusable record.
    #[inline(always)]
    pub(super) fn code(&self, x: f64, event: f64, group: f64) -> f64 {
        let (middle, half) = self.scale;
        let time = middle + half * x;
        // Products and sums of these have no branch. A comparison with not-a-number is false.
        let one_if = |condition: bool| f64::from(u8::from(condition));
        let (mut interval, mut at_end) = (0.0, 0.0);
        for end in &self.ends {
            interval += one_if(time > end + TIE);
            at_end += one_if(time > end - TIE) * one_if(time <= end + TIE);
        }
        // At the longest declared time follow-up ends for all: a longer one is clamped to it.
        let event_seen = event * one_if(x < 1.0);
        let way = (1.0 - event_seen) * (1.0 + at_end);
        let followed = (time > TIE) | ((event == 1.0) & (time >= 0.0));
        let usable = ((event == 0.0) | (event == 1.0))
            & followed
            & (group >= 0.0)
            & (group < self.groups as f64)
            & (group.floor() == group);
        let cell = (group * self.ends.len() as f64 + interval) * FollowUpEnd::COUNT as f64 + way;
        if usable { cell } else { NOWHERE }
    }

    /// Returns the log likelihood of a record in a cell, and 0 for an unusable record.
    pub(super) fn of_cell(&self, cell: usize, theta: &[f64]) -> f64 {
        let (at, way) = (cell / FollowUpEnd::COUNT, cell % FollowUpEnd::COUNT);
        let first = at - at % self.intervals();
        let (Some(before), Some(hazard)) = (theta.get(first..at), theta.get(at)) else { return 0.0 };
        let survived: f64 = before.iter().map(|h| libm::log1p(-h)).sum();
        survived
            + match way {
                0 => libm::log(*hazard),
                1 => 0.5 * libm::log1p(-hazard),
                _ => libm::log1p(-hazard),
            }
    }
}

impl Cells for LifeTable {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let [codes] = codes else { return };
        let records = codes[..rows.len()].iter_mut().zip(rows.outcome()).zip(rows.auxiliary(0));
        if self.by {
            records.zip(rows.auxiliary(1)).for_each(|(((code, x), event), group)| *code = self.code(*x, *event, *group));
        } else {
            records.for_each(|((code, x), event)| *code = self.code(*x, *event, 0.0));
        }
    }
}

#[cfg(test)]
#[path = "tests/life_table.rs"]
mod tests;
