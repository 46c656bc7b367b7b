//! How long an answer takes at worst: measured on made-up records, before a job's first query.
//!
//! The delay of replies is public, so nothing about the records may enter it. What is measured is the whole answer path with
//! a ledger of its own in the same folder (the disk's syncs are most of it) on made-up records of the shard's shape, at
//! parameter values that are ordinary and at ones that are at the ends of what arithmetic can do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::accounting::PrivacyUnit;
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::mechanism::{NoiseScale, QueryKind};
use conclave_common::model::{Frame, Persons, Threads, assemble};
use conclave_common::parameter::Interval;
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::schema::ColumnSpec;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::v1;

use super::delay::JobDelay;
use super::records::Records;
use super::sandbox::Sandbox;
use super::sums::fixed_sums;
use super::worst_case_step::{ORDINARY, WorstCaseStep};
use crate::config::Precision;
use conclave_proto::convert::reply_length;

/// Passes that are measured, at least and at most.
const PASSES: std::ops::RangeInclusive<u64> = 24..=200;
/// After this long the least number of passes will do.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
/// On top of what nearly every pass takes: a quarter, and this.
const MARGIN: Duration = Duration::from_micros(200);

/// A delay above `worst`: a quarter more and a margin, rounded up to a step of 0.25 ms or, beyond 10 ms, about 5%.
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

/// Measures a job on made-up records of a public number. `folder` is the ledger's.
///
/// # Errors
/// A sentence where the measurement can't be made, as on a full disk.
pub(super) fn measure(job: &Rehearsal<'_>, folder: &Path) -> Result<JobDelay, String> {
    let scratch = Scratch::new(folder).map_err(|e| format!("cannot make {SCRATCH} in {}: {e}", folder.display()))?;
    let began = Instant::now();
    let records = job.made_up()?;
    // What is asked of no point is summed while the job opens.
    let blocks = records.blocks();
    let summed = fixed_sums(job.spec.build_model().as_ref(), job.spec, job.unit, blocks, job.threads);
    drop(summed.map_err(|why| why.to_string())?);
    let binding = began.elapsed();
    // No noise is kept in stock: every sample is made on demand, as the slowest answer's are.
    let mut sandbox = Sandbox::new(&scratch.0, job.spec.privacy.budget.of(job.unit))?;
    sandbox.answerer.threads = Arc::clone(job.threads);
    sandbox.put_records_on(JOB, job.spec, records)?;
    let step = job.worst_case_step();
    let mut times = Vec::new();
    let began = Instant::now();
    for pass in 0..*PASSES.end() {
        if pass >= *PASSES.start() && began.elapsed() > LONG_ENOUGH {
            break;
        }
        let request = job.request(pass, step.as_ref());
        let asked = Instant::now();
        let answer = sandbox.answerer.answer(request);
        times.push(asked.elapsed());
        if answer.status != Some(0) {
            return Err(format!("a made-up query was refused with status {:?}", answer.status));
        }
    }
    times.sort();
    // What takes longer than nearly all passes was held up by the disk or the system, whatever the records are: such a reply
    // leaves at the next multiple, and one in twenty of those at a job's opening need not slow every reply down.
    let worst = times[times.len() - 1 - times.len() / 20];
    tracing::debug!("made-up answers took {:?} in the median, {worst:?} nearly always", times[times.len() / 2]);
    let longest = (0..2).map(|pass| reply_length(&job.request(pass, step.as_ref()))).max().unwrap_or(1);
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
            // Left by a party that was killed while it measured; the ledger's lock says that it is nobody else's.
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

/// A job with made-up records.
pub(super) struct Rehearsal<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) unit: PrivacyUnit,
    /// Records, or persons where persons are protected.
    pub(super) units: u64,
    /// What the job's own passes run on, and how its copies are held.
    pub(super) threads: &'a Arc<Threads>,
    pub(super) precision: Precision,
}

impl Rehearsal<'_> {
    /// As many proposals as the job's chains ask in a round: one each, or one for every component of the statistic.
    fn chains(&self) -> usize {
        self.spec.sampler.chains as usize * self.components().max(1)
    }

    /// Components of the statistic that the job asks for; 0 where it asks for none.
    fn components(&self) -> usize {
        let of_vectors = match self.spec.algorithm {
            Algorithm::Penalty => true,
            Algorithm::PenaltyExpFamily => false,
            Algorithm::NoisyStatistics => self.spec.build_model().scores().is_some(),
            Algorithm::Augmentation => self.cells().is_some(),
        };
        if of_vectors {
            return 0;
        }
        self.spec.build_model().exponential_family().map_or(0, |family| family.ranges().len())
    }

    fn releases_once(&self) -> bool {
        !self.spec.algorithm.proposes()
    }

    /// Cells of the tables that the job asks for, where it does.
    fn cells(&self) -> Option<u32> {
        let tables = self.spec.build_model().tables().filter(|_| self.spec.algorithm == Algorithm::Augmentation);
        tables.map(|tables| tables.cells() as u32)
    }

    /// The vectors that the job asks for in a message, each under noise by which it costs next to nothing: gradient and curvature at a
    /// point, and in every second pass the second moments, where it asks for them.
    fn vectors(&self, pass: u64, theta: &[f64]) -> Vec<v1::Proposal> {
        let proposal = |(chain, (kind, from, to)): (usize, (QueryKind, Vec<f64>, Vec<f64>))| v1::Proposal {
            chain: chain as u32,
            from,
            to,
            noise_scale: NoiseScale::MAX_UNITS,
            kind: kind.code(),
        };
        if let Some(cells) = self.cells() {
            return vec![proposal((0, (QueryKind::Table { cells }, Vec::new(), Vec::new())))];
        }
        let model = self.spec.build_model();
        let scores = model.scores().filter(|_| self.spec.algorithm == Algorithm::NoisyStatistics);
        let Some(scores) = scores else { return Vec::new() };
        let (order, parameters) = (theta.len(), theta.len() as u32);
        let numbers = Frame::length(order);
        // A frame without a zero, whose every product is made.
        let frame = (0..numbers).map(|at| if at < order * order { 0.01 } else { 0.0 }).collect();
        let moments = pass % 2 == 1 && scores.moments_outcome().is_some();
        let kinds = match moments {
            true => vec![(QueryKind::Moments { order: scores.coefficients() as u32 + 1 }, Vec::new(), Vec::new())],
            false => vec![
                (QueryKind::Gradient { parameters }, theta.to_vec(), frame),
                (QueryKind::Curvature { parameters }, theta.to_vec(), vec![1.0, 1.0]),
            ],
        };
        kinds.into_iter().enumerate().map(proposal).collect()
    }

    /// Records all over the columns' bounds, held as the job's own are.
    fn made_up(&self) -> Result<Records, String> {
        let limit = self.unit.records_per_person().unwrap_or(1) as usize;
        let persons = usize::try_from(self.units).unwrap_or(usize::MAX);
        let records = persons.saturating_mul(limit);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            // Marsaglia's xorshift: these are no secrets.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as f64 / u64::MAX as f64
        };
        let ends = || (1..=persons).map(|person| person * limit).collect();
        let persons = self.unit.records_per_person().and_then(|limit| Persons::new(ends(), limit));
        let mut value = |bounds: &ColumnSpec| {
            let (least, greatest) = bounds.range();
            let (from, width) = match bounds {
                ColumnSpec::Numeric { .. } => (bounds.centre() - bounds.half_width(), 2.0 * bounds.half_width()),
                ColumnSpec::Binary | ColumnSpec::Levels(_) => (least, greatest - least),
            };
            let value = from + width * uniform();
            if matches!(bounds, ColumnSpec::Levels(_)) { value.round() } else { value }
        };
        let made = assemble(&self.spec.model, &self.spec.columns, persons, |_, bounds| {
            Some((0..records).map(|_| bounds.scale(value(bounds))).collect())
        });
        made.map(|data| Records::new(data, self.precision))
    }

    /// In every second pass the step that takes longest, to and fro. In the others, every parameter at an ordinary value, at the least
    /// one that may be asked, and at either end of its box, in a step of no length.
    fn request(&self, pass: u64, step: Option<&WorstCaseStep>) -> v1::Query {
        let theta = |box_: &Interval| match pass / 2 % 4 {
            0 => ORDINARY.clamp(box_.min, box_.max),
            1 => LEAST_MAGNITUDE.clamp(box_.min, box_.max),
            2 => box_.max,
            _ => box_.min,
        };
        let theta: Vec<f64> = self.spec.support.iter().map(theta).collect();
        let still = (theta.as_slice(), theta.as_slice(), self.spec.privacy.noise);
        let moved = step.filter(|_| pass % 2 == 1).map(|step| {
            let (from, to) = step.turned(pass / 2 % 2 == 1);
            (from, to, step.noise)
        });
        let (from, to, noise) = moved.unwrap_or(still);
        let vectors = self.vectors(pass, &theta);
        if !vectors.is_empty() {
            return v1::Query { job: JOB.into(), iteration: pass, proposals: vectors, attempt: 0 };
        }
        let components = self.components() as u32;
        let proposals = (0..self.chains() as u32)
            .map(|chain| match components {
                0 => v1::Proposal { chain, from: from.to_vec(), to: to.to_vec(), noise_scale: noise.units(), kind: 0 },
                _ => {
                    let kind = QueryKind::Statistic { component: chain % components }.code();
                    v1::Proposal { chain, noise_scale: self.spec.privacy.noise.units(), kind, ..v1::Proposal::default() }
                }
            })
            .collect();
        v1::Query { job: JOB.into(), iteration: pass, proposals, attempt: 0 }
    }

    /// The step that takes longest; none for Algorithm 3, which asks no steps.
    fn worst_case_step(&self) -> Option<WorstCaseStep> {
        let queries = (*PASSES.end()).saturating_mul(self.chains() as u64);
        let asks_steps = self.components() == 0 && !self.releases_once();
        asks_steps
            .then(|| WorstCaseStep::new(self.spec.build_model().as_ref(), self.spec, self.unit, self.units, queries))
            .flatten()
    }
}

const JOB: &str = "rehearsal";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn delays_are_rounded_up() {
        for (worst, delay) in [(0.01, 0.25), (0.5, 1.0), (3.0, 4.0), (7.0, 9.0), (30.0, 38.0), (200.0, 260.0)] {
            assert_eq!(above(Duration::from_secs_f64(worst * 1e-3)), Duration::from_secs_f64(delay * 1e-3), "{worst}");
        }
    }

    /// Levels, an interaction and an exposure are made up too, and no kind of regression refuses a value at the ends of its box.
    #[test]
    fn every_regression_is_rehearsed() {
        let folder = tempfile::tempdir().unwrap();
        for ((kind, outcome, more), algorithm) in [
            ("logistic", "{ binary = true }", "offset = \"days\""),
            ("linear", "{ min = 0, max = 20 }", "sd = 4"),
            ("linear", "{ min = 0, max = 20 }", "offset = \"days\""),
            ("poisson", "{ min = 0, max = 20 }", "exposure = \"days\""),
            ("negative_binomial", "{ min = 0, max = 20 }", "exposure = \"days\""),
            ("student_t", "{ min = 0, max = 20 }", "df = 4"),
        ]
        .into_iter()
        .flat_map(|job| ["penalty", "noisy-statistics"].map(|algorithm| (job, algorithm)))
        {
            let text = format!(
                "name = \"r\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
                 predictors = [\"age\", \"ward\", \"age:ward\"]\n{more}\n[columns]\ny = {outcome}\n\
                 age = {{ min = 20, max = 80 }}\nward = {{ levels = [\"a\", \"b\", \"c\"] }}\n\
                 days = {{ min = 0.5, max = 9 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            );
            let spec = JobSpec::parse(&text).unwrap();
            let (threads, unit) = (Arc::new(Threads::one()), PrivacyUnit::default());
            let rehearsal = Rehearsal { spec: &spec, unit, units: 300, threads: &threads, precision: Precision::Double };
            let made = rehearsal.made_up().unwrap();
            let made = made.held();
            assert_eq!((made.outcome.len(), made.predictors.len()), (300, 5), "{kind}");
            let columns = || made.predictors.iter().chain(&made.auxiliary).chain([&made.outcome]);
            assert!(columns().all(|column| column.iter().all(|x| x.is_finite())), "{kind}");
            assert!(made.predictors.iter().all(|column| column.iter().any(|x| *x != 0.0)), "{kind}: every level is made up");
            measure(&rehearsal, folder.path()).unwrap_or_else(|e| panic!("{kind}, {algorithm}: {e}"));
        }
    }
}
