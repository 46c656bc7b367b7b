//! Measures the longest time of an answer, on made-up records, before a job's first query.
//!
//! The delay of replies is public, so nothing about the records may enter it. The whole answer path is measured, with a ledger of its own
//! in the same folder (the disk's syncs take most of the time), on made-up records of the shard's shape, at ordinary parameter values and
//! at the limits of arithmetic. Samples of units have their largest size.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conclave_proto::convert::{AnswerStatus, reply_length};
use conclave_proto::delay::AnswerDelay;
use conclave_vault::answer::sandbox::Sandbox;
use conclave_vault::ports::{JobDelay, Unmeasured};

use super::rehearsal::{JOB, PASSES, Rehearsal, budget, too_expensive};

/// After this time the least number of passes is enough.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
/// Margin on top of a quarter more than nearly every pass takes.
const MARGIN: Duration = Duration::from_micros(200);

/// Returns a delay above `worst`: a quarter more and a margin, rounded up to a step of 0.25 ms or, beyond 10 ms, about 5%.
pub(super) fn above(worst: Duration) -> Duration {
    let millis = (worst.mul_f64(1.25) + MARGIN).as_secs_f64() * 1e3;
    let mut step = 0.25;
    for next in [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0] {
        if millis > 40.0 * step {
            step = next;
        }
    }
    Duration::from_secs_f64((millis / step).ceil() * step * 1e-3)
}

/// Measures a job on a public number of made-up records. `folder` is the ledger's.
///
/// # Errors
/// [`Unmeasured`].
pub(super) fn measure(job: &Rehearsal<'_>, folder: &Path) -> Result<JobDelay, Unmeasured> {
    let queries = job.queries()?;
    let scratch = Scratch::new(folder).map_err(|e| format!("cannot make {SCRATCH} in {}: {e}", folder.display()))?;
    // No noise is kept in stock: every sample is drawn on demand, as the slowest answer's are.
    let budget = budget(job.unit)?;
    let mut sandbox = Sandbox::new(&scratch.0, budget)?.on(job.threads, job.precision);
    let began = Instant::now();
    // Sums that depend on no point are made while the job opens.
    sandbox.put_on_under(JOB, job.spec, job.made_up()?, budget)?;
    let binding = began.elapsed();
    sandbox.sample_at_largest(JOB);
    let mut times = Vec::new();
    let began = Instant::now();
    for pass in 0..*PASSES.end() {
        if pass >= *PASSES.start() && began.elapsed() > LONG_ENOUGH {
            break;
        }
        let request = job.request(pass, &queries);
        let asked = Instant::now();
        let answer = sandbox.answerer.answer(request);
        times.push(asked.elapsed());
        match answer.status.and_then(AnswerStatus::from_wire) {
            Some(AnswerStatus::Released) => {}
            Some(AnswerStatus::Budget) => return Err(too_expensive()),
            _ => return Err(format!("a made-up query was refused with status {:?}", answer.status).into()),
        }
    }
    times.sort();
    // A pass that takes longer than nearly all others was held up by the disk or the system, whatever the records are. Such a reply leaves
    // at the next multiple; one in twenty at a job's opening need not delay every reply.
    let worst = times[times.len() - 1 - times.len() / 20];
    tracing::debug!("made-up answers took {:?} in the median, {worst:?} nearly always", times[times.len() / 2]);
    let longest = (0..2).map(|pass| reply_length(&job.request(pass, &queries))).max().unwrap_or(1);
    let proposals = u32::try_from(longest).unwrap_or(u32::MAX);
    Ok(JobDelay { answer: AnswerDelay { least: above(worst), proposals }, open: above(binding) })
}

/// A folder beside the ledger, on the same disk; gone when the measurement is done.
struct Scratch(PathBuf);

const SCRATCH: &str = "reply-delay.tmp";

impl Scratch {
    fn new(folder: &Path) -> std::io::Result<Self> {
        let path = folder.join(SCRATCH);
        if path.exists() {
            // Left by a party that was killed while it measured; the ledger's lock excludes any other party.
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What remains is removed by the next measurement.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_rounded_up() {
        for (worst, delay) in [(0.01, 0.25), (0.5, 1.0), (3.0, 4.0), (7.0, 9.0), (30.0, 38.0), (200.0, 260.0)] {
            assert_eq!(above(Duration::from_secs_f64(worst * 1e-3)), Duration::from_secs_f64(delay * 1e-3), "{worst}");
        }
    }
}
