//! The intervals of a piecewise constant hazard, and a record's follow-up in them.

use crate::elementary::exp;
use crate::model::weighted::WeightedSum;
use crate::schema::ColumnSpec;
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;

/// The greatest log hazard in units of the longest time. A cumulative hazard beyond any cap stays a number.
const MOST_LOG: f64 = 80.0;
/// The distance within which a time counts as a cut, and an entry as a time: above the rounding of scaled values in single precision.
pub(in crate::model) const TIE: f64 = 1e-6;
/// An empty lane.
pub(super) const ZERO: TileLane<f64> = TileLane([0.0; SMALL_TILE]);

/// The intervals, in units of the longest declared time.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    /// The interval's ends: 0, the cuts, 1.
    pub(super) ends: Vec<f64>,
    /// The longest declared time, in the data's unit of time.
    pub(super) longest: f64,
    /// A time for `x = 0` on the scale of the shard, and its slope in `x`.
    scale: (f64, f64),
    /// True if records have an entry.
    pub(super) entry: bool,
}

impl Intervals {
    pub(super) fn new(time: &ColumnSpec, cuts: &[f64], entry: bool) -> Self {
        let longest = time.centre() + time.half_width();
        let cuts = cuts.iter().map(|cut| cut / longest);
        let ends = std::iter::once(0.0).chain(cuts).chain([1.0]).collect();
        Self { ends, longest, scale: (time.centre() / longest, time.half_width() / longest), entry }
    }

    /// Returns the number of intervals.
    pub(super) fn count(&self) -> usize {
        self.ends.len() - 1
    }
}

/// Space for the follow-up of a tile's records, interval by interval.
pub(super) struct Followed {
    /// The linear predictor.
    eta: TileLane<f64>,
    from: TileLane<f64>,
    to: TileLane<f64>,
    /// The cumulative hazard without the cap.
    total: TileLane<f64>,
    /// 1 for an event in the interval, else 0; not-a-number for an inert record.
    pub(super) events: Vec<TileLane<f64>>,
    /// The cumulative hazard in the interval, up to the cap; not-a-number for an inert record.
    pub(super) hazards: Vec<TileLane<f64>>,
}

impl Followed {
    pub(super) fn new(intervals: usize) -> Self {
        let lanes = || vec![ZERO; intervals];
        Self { eta: ZERO, from: ZERO, to: ZERO, total: ZERO, events: lanes(), hazards: lanes() }
    }
}

/// Products of these are computed without a branch.
#[inline(always)]
fn one_if(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// A point at which records are followed.
pub(super) struct Hazards<'a> {
    pub(super) intervals: &'a Intervals,
    pub(super) log_hazards: &'a [f64],
    /// `x'b`
    pub(super) eta: WeightedSum,
    /// The cumulative hazard at which a record's follow-up ends.
    pub(super) cap: f64,
}

impl Hazards<'_> {
    /// Follows a tile's records. There is no branch on a record, and every record takes the same time.
    #[inline(always)]
    pub(super) fn follow(&self, rows: &Tile<'_>, followed: &mut Followed) {
        let records = rows.len();
        let Followed { eta, from, to, total, events, hazards } = followed;
        let (eta, from, to, total) =
            (&mut eta.0[..records], &mut from.0[..records], &mut to.0[..records], &mut total.0[..records]);
        let (time, event) = (&rows.outcome()[..records], &rows.auxiliary(0)[..records]);
        let (middle, half) = self.intervals.scale;
        self.eta.fill(rows, eta);
        from.fill(0.0);
        if self.intervals.entry {
            from.iter_mut().zip(rows.auxiliary(1)).for_each(|(from, entry)| *from = entry / self.intervals.longest);
        }
        total.fill(0.0);
        for i in 0..records {
            to[i] = middle + half * time[i];
            // Not-a-number if any of the record's values is.
            eta[i] += 0.0 * (from[i] + to[i] + event[i]);
        }
        let cap = self.cap;
        for (k, log_hazard) in self.log_hazards.iter().copied().enumerate() {
            let (start, end) = (self.intervals.ends[k], self.intervals.ends[k + 1]);
            let (events, hazards) = (&mut events[k].0[..records], &mut hazards[k].0[..records]);
            for i in 0..records {
                let last = if to[i] < end { to[i] } else { end };
                let first = if from[i] > start { from[i] } else { start };
                let exposure = if last > first { last - first } else { 0.0 };
                let log = log_hazard + eta[i];
                let hazard = exp(if log > MOST_LOG { MOST_LOG } else { log }) * exposure;
                let left = if total[i] < cap { cap - total[i] } else { 0.0 };
                hazards[i] = if hazard > left { left } else { hazard };
                total[i] += hazard;
                // At the longest declared time follow-up ends for all: a longer one is clamped to it.
                events[i] = event[i]
                    * one_if(exposure > TIE)
                    * one_if(to[i] > start + TIE)
                    * one_if(to[i] <= end + TIE)
                    * one_if(time[i] < 1.0);
            }
        }
        for (events, hazards) in events.iter_mut().zip(hazards) {
            for i in 0..records {
                let missing = 0.0 * eta[i];
                let kept = events.0[i] * one_if(total[i] <= cap);
                (events.0[i], hazards.0[i]) = (kept + missing, hazards.0[i] + missing);
            }
        }
    }
}
