//! Plants faults in the answer path, to check that the audit detects them. None of them is in a shipped build.

use std::collections::HashMap;

use conclave_common::job::JobSpec;
use conclave_common::model::{BoundedStatistic, ExponentialFamily, Model, RatioRange};
use conclave_common::query::contribution;
use conclave_privacy::mechanism::{STEP, Sensitivity};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::{BlockPass, ModelData, Step};
use conclave_proto::convert::{AnswerStatus, query_from_wire};
use conclave_proto::v1;
use rand_chacha::ChaCha20Rng;

use crate::answer::answerer::Answerer;
use crate::answer::query::Outcome;

/// A fault in answering a message.
#[derive(Clone)]
pub enum Fault {
    /// A different query under an answered id is answered, with the noise of the first.
    ReusedNoise(HashMap<(String, u64), (v1::Query, Vec<i64>)>),
    /// The noised sum is sent in log-likelihood units, as a float's bits.
    FloatOnTheWire,
    /// Records that are not numbers cause an error before anything is charged.
    UnchargedError,
    /// A message is charged only when the next one arrives.
    ChargeAfterAnswer(Option<v1::Query>),
}

impl Fault {
    /// Replies to a message with this fault.
    pub fn answer(&mut self, answerer: &mut Answerer, request: v1::Query) -> v1::Answer {
        answerer.reply_to(request, |answerer, request| self.outcome(answerer, request))
    }

    fn outcome(&mut self, answerer: &mut Answerer, request: v1::Query) -> Outcome {
        match self {
            Self::FloatOnTheWire => {
                let float = |units: i64| (units as f64 * STEP).to_bits() as i64;
                answerer.answer_query(request).map(|values| values.integers().into_iter().map(float).collect::<Vec<i64>>().into())
            }
            Self::UnchargedError => {
                if answerer.jobs[&request.job].records.held().outcome.iter().any(|y| y.is_nan()) {
                    return Err(AnswerStatus::Invalid);
                }
                answerer.answer_query(request)
            }
            Self::ChargeAfterAnswer(pending) => {
                if let Some(message) = pending.take()
                    && answerer.jobs.contains_key(&message.job)
                {
                    let _ = answerer.answer_query(message);
                }
                let values = answerer.sums_in_the_clear(&request);
                let noise = answerer.jobs[&request.job].spec.privacy.noise;
                *pending = Some(request);
                let release =
                    |sum: i64| LatticeSum::from_units_for_test(sum).add_noise(answerer.noise.sample(noise, 1)).as_slice()[0];
                Ok(values.into_iter().map(release).collect::<Vec<i64>>().into())
            }
            Self::ReusedNoise(seen) => {
                let id = (request.job.clone(), request.iteration);
                match (answerer.answer_query(request.clone()), seen.get(&id)) {
                    (Err(AnswerStatus::Conflict), Some((first, released))) => {
                        let (before, now) = (answerer.sums_in_the_clear(first), answerer.sums_in_the_clear(&request));
                        let moved = released.iter().zip(before).zip(now).map(|((r, before), now)| r - before + now);
                        Ok(moved.collect::<Vec<i64>>().into())
                    }
                    (Ok(values), _) => {
                        seen.insert(id, (request, values.integers()));
                        Ok(values)
                    }
                    (refusal, _) => refusal,
                }
            }
        }
    }
}

impl Answerer {
    fn sums_in_the_clear(&self, request: &v1::Query) -> Vec<i64> {
        let active = &self.jobs[&request.job];
        let queries = query_from_wire(request.clone()).expect("a query of the audit");
        let one = |from: &[f64], to: &[f64]| {
            let part = contribution(active.model.as_ref(), &active.spec.privacy, self.budget.unit, from, to).expect("a bound");
            let step = Step { centre: part.centre, ..Step::new(from, to, part.sensitivity) };
            active.model.lattice_sums(active.records.held(), &[step]).remove(0).open_for_test()
        };
        queries.iter().map(|q| one(&q.from, &q.to)).collect()
    }

    /// Sets another keying of the generator of samples.
    pub fn key_samples_by(&mut self, keying: fn(&mut ChaCha20Rng)) {
        self.noise.key_samples_by(keying);
    }

    /// Returns the number of units in a job's records.
    pub fn units_of(&self, job: &str) -> u64 {
        self.jobs[job].records.blocks().units()
    }

    /// Changes the records of an open job, which it holds in memory.
    pub fn change_records(&mut self, job: &str, change: impl FnOnce(&mut ModelData)) {
        change(self.jobs.get_mut(job).expect("an open job").records.held_mut());
    }

    /// Ids of the open jobs.
    pub fn open_jobs(&self) -> Vec<String> {
        self.jobs.keys().cloned().collect()
    }

    /// Replaces a job's model by a faulty one.
    pub fn plant_model(&mut self, job: &str, plant: impl FnOnce(Box<dyn Model>, &JobSpec) -> Box<dyn Model>) {
        let mut active = self.jobs.remove(job).expect("an open job");
        active.model = plant(active.model, &active.spec);
        self.jobs.insert(job.to_owned(), active);
    }
}

/// A model that charges a sensitivity too small by a factor but clamps at the correct one. Its sums hide how far a unit moves them, as
/// those of a faulty hold would: a release compares an honest one with its charge.
pub struct TooSmall(pub Box<dyn Model>, pub f64);

/// A model whose contributions are held to twice the charged bound: the fault of a hold.
pub struct TooWide(pub Box<dyn Model>);

/// A model that does not clamp NaN: the rounding turns it into some integer.
pub struct NanNotClamped(pub Box<dyn Model>);

/// A model that notifies a test when it reads the records.
pub struct Watched(pub Box<dyn Model>, pub Box<dyn Fn() + Send + Sync>);

/// A model whose kernel panics on a given outcome.
pub struct Panics(pub Box<dyn Model>, pub f64);

/// Returns the sums of a pass with every clamp multiplied by `factor`, which no model could change.
fn clamped(model: &dyn Model, pass: &BlockPass<'_>, factor: f64) -> Vec<LatticeSum> {
    let wide = |k_t: Sensitivity| Sensitivity::from_units((k_t.units() as f64 * factor) as u64).expect("a sensitivity");
    let steps: Vec<_> = pass.steps().map(|step| Step { clamp: wide(step.clamp), ..step }).collect();
    model.block_sums(pass.block_for_test(), &steps)
}

macro_rules! as_inner {
    () => {
        fn parameter_names(&self) -> &[String] {
            self.0.parameter_names()
        }
        fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
            self.0.ratios(from, to)
        }
        fn centre(&self, from: &[f64], to: &[f64]) -> f64 {
            self.0.centre(from, to)
        }
        fn information_bound(&self) -> Vec<f64> {
            self.0.information_bound()
        }
        fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
            self.0.log_likelihood(data, theta)
        }
        fn to_original(&self, theta: &[f64]) -> Vec<f64> {
            self.0.to_original(theta)
        }
    };
}

mod float_clip;
pub use float_clip::FloatClipped;

impl Model for TooSmall {
    as_inner!();
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.bound(from, to) / self.1
    }
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.half_range(from, to) / self.1
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        let hidden = |sum: LatticeSum| LatticeSum::from_units_for_test(sum.open_for_test());
        let sums = clamped(self.0.as_ref(), &pass, self.1).into_iter().map(hidden).collect();
        pass.plant_for_test(sums);
    }
}

impl Model for TooWide {
    as_inner!();
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.bound(from, to)
    }
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.half_range(from, to)
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        let sums = clamped(self.0.as_ref(), &pass, 2.0);
        pass.plant_for_test(sums);
    }
}

impl Model for NanNotClamped {
    as_inner!();
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.bound(from, to)
    }
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.half_range(from, to)
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        const ROUNDER: f64 = 6_755_399_441_055_744.0;
        let garbage: i64 = (f64::NAN + ROUNDER).to_bits().cast_signed().wrapping_sub(ROUNDER.to_bits().cast_signed());
        let bad = pass.block_for_test().outcome().iter().filter(|y| y.is_nan()).count() as i64;
        let more = |sum: LatticeSum| sum.merge_for_test(LatticeSum::from_units_for_test(bad * garbage));
        let sums = clamped(self.0.as_ref(), &pass, 1.0).into_iter().map(more).collect();
        pass.plant_for_test(sums);
    }
}

impl Model for Watched {
    as_inner!();
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.bound(from, to)
    }
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.half_range(from, to)
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        self.1();
        self.0.ratio_kernel(pass);
    }
}

impl Model for Panics {
    as_inner!();
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.0.bound(from, to)
    }
    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        assert!(!pass.block_for_test().outcome().contains(&self.1), "planted");
        self.0.ratio_kernel(pass);
    }
}

impl BoundedStatistic for Panics {
    fn ranges(&self) -> Vec<(f64, f64)> {
        self.0.exponential_family().expect("a family").ranges()
    }

    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>) {
        assert!(!pass.block_for_test().outcome().contains(&self.1), "planted");
        self.0.exponential_family().expect("a family").statistic_kernel(component, pass);
    }
}

impl ExponentialFamily for Panics {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        self.0.exponential_family().expect("a family").natural(theta)
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        self.0.exponential_family().expect("a family").log_normaliser(theta)
    }
}
