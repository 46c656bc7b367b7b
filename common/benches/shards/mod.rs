//! Made-up shards, models and steps to time.

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::{Blocks, Hold, ModelData, Step, Threads};

/// Predictors of a regression, as a rule.
pub(crate) const WIDTH: usize = 10;

/// A model with a shard of made-up records.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) model: Box<dyn Model>,
    pub(crate) data: ModelData,
}

/// Marsaglia's xorshift, uniform on [-1, 1].
fn uniform(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    2.0 * (*state as f64 / u64::MAX as f64) - 1.0
}

impl Case {
    fn new(name: &'static str, model: &str, outcome: &str, predictors: usize, records: usize) -> Self {
        let names: Vec<String> = (0..predictors).map(|j| format!("x{j}")).collect();
        let listed = if predictors > 0 { format!("predictors = {names:?}\n") } else { String::new() };
        let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
        let spec = format!(
            "name = \"bench\"\nparties = [\"a\"]\n[model]\noutcome = \"y\"\n{listed}{model}\n[columns]\ny = {outcome}\n{columns}\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        let spec = JobSpec::parse(&spec).expect("a job");
        let mut state = 88_172_645_463_325_252;
        let binary = outcome.contains("binary");
        let mut value = |whole: bool| if whole { f64::from(uniform(&mut state) > 0.0) } else { uniform(&mut state) };
        let data = ModelData {
            outcome: (0..records).map(|_| value(binary)).collect(),
            predictors: (0..predictors).map(|_| (0..records).map(|_| value(false)).collect()).collect(),
            ..ModelData::default()
        };
        Self { name, model: spec.build_model(), data }
    }

    pub(crate) fn logistic(predictors: usize, records: usize) -> Self {
        Self::new("logistic", "kind = \"logistic\"", "{ binary = true }", predictors, records)
    }

    pub(crate) fn linear(records: usize) -> Self {
        Self::new("linear", "kind = \"linear\"\nsd = 0.5", "{ min = -1, max = 1 }", WIDTH, records)
    }

    pub(crate) fn gaussian_mean(records: usize) -> Self {
        Self::new("gaussian_mean", "kind = \"gaussian_mean\"\nsd = 0.5", "{ min = -1, max = 1 }", 0, records)
    }

    /// Returns the ends of one step of each chain: a guided step of `length` in one coordinate, or in all of them.
    pub(crate) fn ends(&self, chains: usize, length: f64, all: bool) -> Vec<(Vec<f64>, Vec<f64>)> {
        let dimension = self.model.parameter_names().len();
        let ends = |chain: usize| {
            let from: Vec<f64> = (0..dimension).map(|j| 0.1 * j as f64 - 0.03 * chain as f64 - 0.2).collect();
            let moves = |j: usize| all || j == (1 + chain) % dimension;
            let to = from.iter().enumerate().map(|(j, t)| if moves(j) { t + length } else { *t }).collect();
            (from, to)
        };
        (0..chains).map(ends).collect()
    }

    /// One pass: the sums of all steps.
    pub(crate) fn pass(&self, blocks: &dyn Blocks, threads: &Threads, ends: &[(Vec<f64>, Vec<f64>)]) {
        let clamp = Sensitivity::from_units(1 << 36).expect("a sensitivity");
        let holds: Vec<Hold<'_>> = ends.iter().map(|(from, to)| Hold::Step(Step::new(from, to, clamp))).collect();
        let sums = threads.sums(blocks, &holds, &|_, pass| self.model.ratio_kernel(pass));
        std::hint::black_box(sums.expect("records in memory").len());
    }

    /// The columns, the outcome first.
    pub(crate) fn columns(&self) -> Vec<&[f64]> {
        std::iter::once(&self.data.outcome).chain(&self.data.predictors).map(Vec::as_slice).collect()
    }
}

/// Reads columns once, `at_a_time` values of each at a time, at the speed of this processor's additions.
pub(crate) fn read(columns: &[&[f64]], at_a_time: usize) -> u64 {
    pulp::Arch::new().dispatch(Read { columns, at_a_time })
}

struct Read<'a> {
    columns: &'a [&'a [f64]],
    at_a_time: usize,
}

/// Number of parallel sums: enough to hide the latency of an addition.
const LANES: usize = 64;

impl pulp::WithSimd for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> u64 {
        let mut lanes = [0_u64; LANES];
        let records = self.columns[0].len();
        for start in (0..records).step_by(self.at_a_time) {
            for column in self.columns {
                let chunks = column[start..records.min(start + self.at_a_time)].chunks_exact(LANES);
                for value in chunks.remainder() {
                    lanes[0] = lanes[0].wrapping_add(value.to_bits());
                }
                for chunk in chunks {
                    for (lane, value) in lanes.iter_mut().zip(chunk) {
                        *lane = lane.wrapping_add(value.to_bits());
                    }
                }
            }
        }
        lanes.iter().fold(0, |total, lane| total.wrapping_add(*lane))
    }
}
