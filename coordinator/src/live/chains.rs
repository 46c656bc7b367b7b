//! Live view of one job's chains, updated with each draw, in bounded memory.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conclave_common::query::Draw;
use conclave_ops::{RecentDurations, Summary};
use conclave_pages::plot::{self, Sample, Trace};

/// Columns of a trace; fewer if there are many traces.
const COLUMNS: usize = 240;
/// Total numbers in all samples of a job, and the range of rows in one chain's sample.
const SAMPLED: usize = 2_000_000;
const ROWS: (usize, usize) = (64, 1000);
/// Draws added under one lock, so that a reader does not wait for more.
const BATCH: usize = 64;

/// Live view of one job's chains.
#[derive(Debug)]
pub(crate) struct Live {
    chains: AtomicUsize,
    phase: Mutex<Option<PhaseTraces>>,
    rounds: RecentDurations<3>,
    replies: Vec<RecentDurations<3>>,
}

/// Breakdown of a round's time, from the end of the round before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTime {
    /// Deciding the round before, and proposing and encoding this one.
    pub(crate) proposing: Duration,
    /// Bookkeeping for the round before, while the parties worked.
    pub(crate) bookkeeping: Duration,
    /// Waiting for the slowest party.
    pub(crate) waiting: Duration,
}

/// Chains of the warm-up, or of the phase after it.
#[derive(Debug)]
struct PhaseTraces {
    warmup: bool,
    chains: Vec<ChainTraces>,
}

/// One chain of a phase.
#[derive(Debug)]
struct ChainTraces {
    traces: Vec<Trace>,
    sample: Sample,
    draws: u64,
    accepted: u64,
}

/// Snapshot of a phase.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// True for draws of the warm-up, which are not kept.
    pub(crate) warmup: bool,
    /// Number of draws and acceptance rate of each chain.
    pub(crate) chains: Vec<(u64, f64)>,
    /// The requested parameters.
    pub(crate) parameters: Vec<ParameterView>,
    /// The samples hold one draw in `every`.
    pub(crate) every: u64,
}

/// Traces and samples of one parameter, by chain.
#[derive(Debug, Clone)]
pub(crate) struct ParameterView {
    pub(crate) traces: Vec<Trace>,
    pub(crate) samples: Vec<Vec<f64>>,
}

impl Live {
    /// Creates the view of a job before its first draw.
    pub(crate) fn new(chains: usize, parties: usize) -> Self {
        let replies = (0..parties).map(|_| RecentDurations::default()).collect();
        Self { chains: AtomicUsize::new(chains), phase: Mutex::default(), rounds: RecentDurations::default(), replies }
    }

    /// Sets the number of chains once it is known, for a job that leaves it open.
    pub(crate) fn set_chains(&self, chains: usize) {
        self.chains.store(chains, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<PhaseTraces>> {
        // Draws are added whole; a holder that panicked has at worst left one chain a draw behind.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds draws in order. Too slow for the driver's task.
    pub(crate) fn take(&self, draws: &[Draw]) {
        for batch in draws.chunks(BATCH) {
            let mut phase = self.lock();
            for draw in batch {
                if phase.as_ref().is_none_or(|s| s.warmup && !draw.warmup) {
                    *phase = Some(PhaseTraces::new(draw.warmup, self.chains.load(Ordering::Relaxed), draw.theta.len()));
                }
                if let Some(chain) = phase.as_mut().and_then(|s| s.chains.get_mut(draw.chain as usize)) {
                    chain.take(draw);
                }
            }
        }
    }

    /// Snapshot of these parameters; `None` before the first draw.
    pub(crate) fn view(&self, parameters: Range<usize>) -> Option<View> {
        let phase = self.lock();
        let PhaseTraces { warmup, chains } = phase.as_ref()?;
        let most = chains.first().map_or(0, |chain| chain.traces.len());
        let of_parameter = |index: usize| ParameterView {
            traces: chains.iter().map(|chain| chain.traces[index].clone()).collect(),
            samples: chains.iter().map(|chain| chain.sample.parameter(index)).collect(),
        };
        Some(View {
            warmup: *warmup,
            chains: chains.iter().map(|chain| (chain.draws, chain.accepted as f64 / chain.draws.max(1) as f64)).collect(),
            parameters: (parameters.start.min(most)..parameters.end.min(most)).map(of_parameter).collect(),
            every: chains.iter().map(|chain| chain.sample.every()).max().unwrap_or(1),
        })
    }

    /// Records that a party's answer came `took` after the round was asked. `held` is the delay that the party reported; its work
    /// on the answer falls within that time.
    pub(crate) fn record_reply(&self, party: usize, took: Duration, held: Option<Duration>) {
        if let Some(times) = self.replies.get(party) {
            times.record(match held {
                Some(held) => [held.min(took), took.saturating_sub(held), Duration::ZERO],
                None => [Duration::ZERO, Duration::ZERO, took],
            });
        }
    }

    /// Records the time of a complete round.
    pub(crate) fn record_round(&self, time: RoundTime) {
        self.rounds.record([time.proposing, time.bookkeeping, time.waiting]);
    }

    /// Times of the latest rounds, with the parts of [`RoundTime`].
    pub(crate) fn round_times(&self) -> Option<Summary<3>> {
        self.rounds.summary()
    }

    /// Times of a party's latest answers, in three parts: the reported delay, the time beyond it, and the whole time of answers
    /// without a reported delay.
    pub(crate) fn reply_times(&self, party: usize) -> Option<Summary<3>> {
        self.replies.get(party)?.summary()
    }
}

impl PhaseTraces {
    fn new(warmup: bool, chains: usize, parameters: usize) -> Self {
        let traces = chains * parameters;
        let columns = plot::columns(traces).min(COLUMNS);
        let rows = (SAMPLED / traces.max(1)).clamp(ROWS.0, ROWS.1);
        let chain =
            || ChainTraces { traces: vec![Trace::new(columns); parameters], sample: Sample::new(rows), draws: 0, accepted: 0 };
        Self { warmup, chains: (0..chains).map(|_| chain()).collect() }
    }
}

impl ChainTraces {
    fn take(&mut self, draw: &Draw) {
        self.traces.iter_mut().zip(&draw.theta).for_each(|(trace, value)| trace.push(*value));
        self.sample.push(&draw.theta);
        self.draws += 1;
        self.accepted += u64::from(draw.accepted);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn draw(chain: u32, warmup: bool, at: f64) -> Draw {
        Draw { chain, warmup, theta: vec![at, -at], accepted: chain == 0, log_alpha: 0.0, iteration: 0 }
    }

    #[test]
    fn the_warmup_gives_way_to_what_is_kept() {
        let live = Live::new(2, 1);
        assert!(live.view(0..9).is_none());
        live.take(&[draw(0, true, 1.0), draw(1, true, 2.0)]);
        let view = live.view(0..9).unwrap();
        assert_eq!((view.warmup, view.parameters.len(), view.chains.as_slice()), (true, 2, &[(1, 1.0), (1, 0.0)][..]));
        live.take(&(0..3000).map(|i| draw(i % 2, false, f64::from(i))).collect::<Vec<_>>());
        let view = live.view(1..2).unwrap();
        assert!(!view.warmup && view.parameters.len() == 1 && view.chains == [(1500, 1.0), (1500, 0.0)]);
        assert_eq!(view.parameters[0].traces[1].range(), (-2999.0, -1.0));
        assert!(view.every == 2 && view.parameters[0].samples[0].len() <= ROWS.1);
        // A draw of an unknown chain changes nothing.
        live.take(&[draw(7, false, 0.0)]);
        assert!(live.view(2..9).unwrap().parameters.is_empty());
    }

    #[test]
    fn an_answers_time_is_split_at_the_delay_that_the_party_reported() {
        let live = Live::new(1, 2);
        assert_eq!((live.round_times(), live.reply_times(1), live.reply_times(9)), (None, None, None));
        let ms = Duration::from_millis;
        live.record_reply(1, ms(5), Some(ms(3)));
        let split = live.reply_times(1).unwrap();
        assert_eq!((split.whole.0, split.parts.map(|part| part.0)), (0.005, [0.003, 0.002, 0.0]));
        // An early answer was not held longer than it took; without a reported delay the time is not split.
        for (held, parts) in [(Some(ms(9)), [0.005, 0.0, 0.0]), (None, [0.0, 0.0, 0.005])] {
            let live = Live::new(1, 1);
            live.record_reply(0, ms(5), held);
            assert_eq!(live.reply_times(0).unwrap().parts.map(|part| part.0), parts);
        }
        live.record_reply(9, ms(5), None);
        live.record_round(RoundTime { proposing: ms(1), bookkeeping: ms(2), waiting: ms(4) });
        assert_eq!(live.round_times().unwrap().whole, (0.007, 0.007));
    }
}
