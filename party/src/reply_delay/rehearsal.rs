//! Rehearses a job: made-up records, and the queries whose answers take longest.
//!
//! A rehearsal's queries cost no one: it has its own ledger, and its budget need not be the job's. So a job is rehearsed however small its
//! budget; a job with a query that has no price is refused for that query.

use conclave_common::job::{Algorithm, ClipRule, Weights};
use conclave_common::model::{Influence, SlopeTable, assemble};
use conclave_common::parameter::{Interval, LEAST_MAGNITUDE};
use conclave_common::query::{Candidates, QueryTerms};
use conclave_common::schema::ColumnSpec;
use conclave_privacy::accounting::{Budget, Honest, PrivacyFilter, PrivacyUnit, RESERVE_LOG2, gaussian_dp};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::{Frame, ModelData, Persons};
use conclave_proto::v1;
use conclave_vault::ports::{MeteredJob, Unmeasured};

use super::worst_case_step::{ORDINARY, WorstCaseStep, cheap};

/// Passes that are measured, from the least number to the greatest.
pub(super) const PASSES: std::ops::RangeInclusive<u64> = 24..=200;
/// Passes among which one is a choice: a rehearsal's budget holds few.
const EVERY_CHOICE: u64 = 8;
/// Distance, in lattice units, of every candidate but one behind the best.
const BEHIND: f64 = 1_099_511_627_776.0;
/// Halvings of a choice's step until the budget holds it.
const HALVINGS: u32 = 64;
/// The id of a rehearsed job.
pub(super) const JOB: &str = "rehearsal";
/// The mu of a rehearsal's budget, about the largest that can be accounted for: a job's own budget need not hold a rehearsal.
const MU: f64 = 30.0;
const DELTA: f64 = 1e-6;
/// Reserve of delta for its blocks, half of delta in all: more than any job's blocks take.
const RESERVE_UNITS: u64 = 1 << (RESERVE_LOG2 - 1);

pub(super) fn budget(unit: PrivacyUnit) -> Result<Budget, String> {
    let budget = Budget::new(gaussian_dp::epsilon(MU, DELTA), DELTA).map_err(|e| e.to_string())?;
    Ok(budget.of(unit).reserving(RESERVE_UNITS))
}

pub(super) fn too_expensive() -> Unmeasured {
    Unmeasured::Job("one of its queries costs more than can be accounted for, however noisy its answer: declare narrower bounds, or set a clip".into())
}

/// R of bounded influence and of leverage weights.
const TRACE: f64 = 1.5;

/// Returns the numbers of a frame of full rank without a zero, so that every product is computed.
fn whole_frame(order: usize, shift: f64) -> Vec<f64> {
    let entry = |at: usize| if at / order == at % order { 0.2 } else { 0.01 };
    (0..Frame::length(order)).map(|at| if at < order * order { entry(at) } else { shift }).collect()
}

/// Returns the queries of bounded influence of one round whose answers take longest: each form once, the information half way to an answer
/// and the table with the most edges.
fn weighted(theta: &[f64], is_count: bool) -> Vec<(QueryKind, Vec<f64>, Vec<f64>)> {
    let (order, parameters) = (theta.len(), theta.len() as u32);
    let entry = |at: usize| if at / order == at % order { 0.2 } else { 0.01 };
    let rows = (0..order * order).map(entry);
    let nodes = SlopeTable::NODES;
    let table = [-12.0, 8.0].into_iter().chain(std::iter::repeat_n(0.1, nodes)).chain(std::iter::repeat_n(0.9, nodes));
    let table: Vec<f64> = if is_count { table.collect() } else { Vec::new() };
    let influence: Vec<f64> =
        rows.chain(std::iter::repeat_n(0.0, order)).chain([2.0, TRACE]).chain(table.iter().copied()).collect();
    let edges: Vec<f64> = (0..Influence::MOST_EDGES).map(|edge| edge as f64 / 8.0).collect();
    let half_way = [influence.as_slice(), theta].concat();
    let mut queries = vec![
        (QueryKind::Gradient { parameters }, theta.to_vec(), influence.clone()),
        (QueryKind::Curvature { parameters }, theta.to_vec(), half_way.clone()),
        (QueryKind::Table { cells: edges.len() as u32 + 2 }, theta.to_vec(), [influence, edges].concat()),
    ];
    if is_count {
        // The dispersion, whose slope takes longest; of a Poisson law the frame is an ordinary one.
        let entry = |at: usize| f64::from(u8::from(at + 1 == order * order));
        let own: Vec<f64> = (0..order * (order + 1)).map(entry).chain([2.0, 1.0]).chain(table).collect();
        queries.push((QueryKind::Gradient { parameters }, theta.to_vec(), own));
        return queries;
    }
    // The variance of a score, which is the information itself where there is one parameter.
    queries.extend((parameters > 1).then(|| (QueryKind::Curvature { parameters: 1 }, theta.to_vec(), half_way)));
    queries
}

pub(super) struct Rehearsal<'a>(pub(super) &'a MeteredJob<'a>);

impl<'a> std::ops::Deref for Rehearsal<'a> {
    type Target = MeteredJob<'a>;

    fn deref(&self) -> &MeteredJob<'a> {
        self.0
    }
}

impl Rehearsal<'_> {
    /// Returns the number of proposals that the job's chains ask in a round: one each, or one for every component of the statistic.
    fn chains(&self) -> usize {
        // A search for the mode by ratios asks two at a time. Chains that start at a choice have the number that the job states.
        let at_once = if self.spec.algorithm == Algorithm::Ops { 2 } else { self.spec.sampler.chains as usize };
        at_once * self.components().max(1)
    }

    /// Returns the number of components of the statistic that the job asks for; 0 where it asks for none.
    fn components(&self) -> usize {
        if !self.spec.releases().contains(&"statistic") {
            return 0;
        }
        self.spec.build_model().statistic().map_or(0, |statistic| statistic.ranges().len())
    }

    /// Returns the point with every parameter at an ordinary value.
    fn ordinary(&self) -> Vec<f64> {
        self.spec.support.iter().map(|box_| ORDINARY.clamp(box_.min, box_.max)).collect()
    }

    fn terms(&self, kind: QueryKind, points: (&[f64], &[f64])) -> Result<QueryTerms, Unmeasured> {
        let terms = QueryTerms::new(self.spec.build_model().as_ref(), self.spec, self.unit, kind, points);
        terms.map_err(|why| Unmeasured::Job(why.to_string()))
    }

    fn chooses(&self) -> bool {
        self.spec.releases().contains(&"choice")
    }

    fn asks_vectors(&self) -> bool {
        self.spec.most_rounds().is_some() || self.spec.algorithm.follows_gradients()
    }

    /// Returns the number of cells of the tables that the job asks for, where it does.
    fn cells(&self) -> Option<u32> {
        let model = self.spec.build_model();
        let asked = self.spec.releases().contains(&"table");
        let tables = || model.tables().map(|tables| tables.cells());
        let of_outcome = || self.spec.outcome_table(model.as_ref()).map(|table| table.cells());
        let of_times = || self.spec.times_table(model.as_ref()).map(|table| table.cells());
        let of_life = || model.life_table().map(|table| table.cells());
        let cells = asked.then(|| of_outcome().or_else(tables).or_else(of_times).or_else(of_life)).flatten();
        cells.map(|cells| cells as u32)
    }

    /// Returns the vectors that the job asks for in a message, each under noise at a negligible cost. They are the gradient and the
    /// curvature at a point and, in every second pass, the second moments where the job asks them; by combinations of levels they are all
    /// that is asked. A gradient-driven job asks, in every
    /// second pass, one gradient per chain (subsampled where its chains subsample) or one test of a step of length zero per chain. A chain
    /// of ratios that finds the mode by gradients asks them in every second eight passes, where it asks no step.
    fn vectors(&self, pass: u64, theta: &[f64], subsampled: Option<NoiseScale>) -> Vec<v1::Proposal> {
        let proposal = |(chain, (kind, from, to)): (usize, (QueryKind, Vec<f64>, Vec<f64>))| v1::Proposal {
            chain: chain as u32,
            from,
            to,
            noise_scale: subsampled.filter(|_| kind.is_sampled()).map_or(NoiseScale::MAX_UNITS, NoiseScale::units),
            kind: kind.code(),
        };
        if self.spec.weights != Weights::Never && pass.is_multiple_of(2) {
            let is_count = self.spec.build_model().scores().is_some_and(|scores| scores.centres_by_table());
            return weighted(theta, is_count).into_iter().enumerate().map(proposal).collect();
        }
        let beside = self.spec.releases().len() > 1;
        if let Some(cells) = self.cells().filter(|_| !beside || pass % 4 == 3) {
            return vec![proposal((0, (QueryKind::Table { cells }, Vec::new(), Vec::new())))];
        }
        let model = self.spec.build_model();
        if let Some(scores) = model.scores().filter(|scores| scores.cells().is_some()) {
            let order = scores.moments_order() as u32;
            return vec![proposal((0, (QueryKind::Moments { order }, Vec::new(), Vec::new())))];
        }
        let driven = self.spec.algorithm.follows_gradients();
        let searching = self.spec.locates_by_gradients() && pass.is_multiple_of(2) && pass / 8 % 2 == 1;
        let once = self.spec.most_rounds().is_some() && self.spec.releases().contains(&"score");
        let scores = model.scores().filter(|_| driven || searching || once);
        let Some(scores) = scores else { return Vec::new() };
        let (order, parameters) = (theta.len(), theta.len() as u32);
        // Leverage weights, whose frame has no shift, are computed beside a gradient and a remainder, and R follows their numbers.
        let trace = self.spec.weighs_chains().then_some(TRACE);
        let frame = whole_frame(order, if trace.is_some() { 0.0 } else { 0.001 });
        if driven && pass % 2 == 1 {
            let kind = match subsampled {
                Some(_) => QueryKind::SampledGradient { parameters },
                None => QueryKind::Gradient { parameters },
            };
            let gradient = || (kind, theta.to_vec(), frame.iter().copied().chain(trace).collect::<Vec<f64>>());
            let along = std::iter::repeat_n(1e-9, order).chain([0.0]);
            let step = || [theta, theta, theta].concat();
            let remainder = || {
                let numbers = frame.iter().copied().chain(along.clone()).chain(trace);
                (QueryKind::Remainder { parameters }, step(), numbers.collect::<Vec<f64>>())
            };
            let ratio = || (QueryKind::Ratio, theta.to_vec(), theta.to_vec());
            let releases = self.spec.releases();
            let test = || match ["remainder", "ratio"].map(|release| releases.contains(&release)) {
                [true, _] => remainder(),
                [_, true] => ratio(),
                _ => gradient(),
            };
            let all = (0..self.chains()).map(|_| if pass / 2 % 2 == 1 { gradient() } else { test() });
            return all.enumerate().map(proposal).collect();
        }
        let moments = pass % 2 == 1 && !driven && scores.moments_outcome().is_some();
        let kinds = match moments {
            true => vec![(QueryKind::Moments { order: scores.coefficients() as u32 + 1 }, Vec::new(), Vec::new())],
            false => vec![
                (QueryKind::Gradient { parameters }, theta.to_vec(), frame),
                (QueryKind::Curvature { parameters }, theta.to_vec(), vec![1.0, 1.0]),
            ],
        };
        kinds.into_iter().enumerate().map(proposal).collect()
    }

    /// Returns the numbers of the weights of records that follow a step of chains of ratios, if they have any.
    fn weights_of_steps(&self) -> Vec<f64> {
        match self.spec.weighs_chains() && !self.spec.algorithm.follows_gradients() {
            true => whole_frame(self.spec.dimension(), 0.0).into_iter().chain([TRACE]).collect(),
            false => Vec::new(),
        }
    }

    /// Makes records across the columns' bounds, held in the job's own precision.
    pub(super) fn made_up(&self) -> Result<ModelData, String> {
        let limit = self.unit.records_per_person().unwrap_or(1) as usize;
        let persons = usize::try_from(self.units).unwrap_or(usize::MAX);
        let records = persons.saturating_mul(limit);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            // Marsaglia's xorshift: these numbers are not secret.
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
        assemble(&self.spec.model, &self.spec.columns, persons, |_, bounds| {
            Some((0..records).map(|_| bounds.scale(value(bounds))).collect())
        })
    }

    /// Returns the queries, each with noise under which it has a price.
    ///
    /// # Errors
    /// [`Unmeasured::Job`] for a query without a price.
    pub(super) fn queries(&self) -> Result<RehearsedQueries, Unmeasured> {
        let most = PrivacyFilter::new(&budget(self.unit)?).map_err(|e| e.to_string())?.limit_units();
        let asked = (*PASSES.end()).saturating_mul(self.chains().max(2) as u64);
        let limit = most / asked / 2;
        let model = self.spec.build_model();
        let noise = |kind, points| {
            cheap(&self.terms(kind, points)?, self.unit, self.spec.privacy.noise, self.spec.honest(), limit)
                .ok_or_else(too_expensive)
        };
        let component = |component| noise(QueryKind::Statistic { component }, (&[][..], &[][..]));
        let statistics = (0..self.components() as u32).map(component).collect::<Result<Vec<_>, _>>()?;
        let asks_steps = statistics.is_empty() && !self.asks_vectors();
        let step = asks_steps.then(|| WorstCaseStep::new(model.as_ref(), self.spec, self.unit, self.units, limit)).flatten();
        // Under a clip by slope a step of length zero has no price: then every pass asks the step that takes longest.
        let sloped = matches!(self.spec.privacy.clip, Some(ClipRule::Slope(_)));
        let theta = self.ordinary();
        let still = (asks_steps && !(sloped && step.is_some())).then(|| noise(QueryKind::Ratio, (&theta, &theta))).transpose()?;
        let subsampled = self.spec.privacy.blocks.map(|_| self.noise_of_subsampled(&theta, most, asked)).transpose()?;
        let choice = self.chooses().then(|| self.choice(most)).transpose()?;
        let queries = RehearsedQueries { step, still, statistics, subsampled, choice };
        for vector in (0..16).flat_map(|pass| self.request(pass, &queries).proposals) {
            let kind = QueryKind::from_code(vector.kind).ok_or_else(|| format!("a made-up query of kind {}", vector.kind))?;
            let noise = NoiseScale::from_units(vector.noise_scale).map_err(|e| e.to_string())?;
            let cost = self.unit.charge_of_kind(
                kind,
                self.terms(kind, (&vector.from, &vector.to))?.sensitivity(),
                self.spec.protected(noise),
            );
            if cost.ok().is_none_or(|cost| cost > 2 * limit) {
                return Err(too_expensive());
            }
        }
        Ok(queries)
    }

    /// Returns noise under which the blocks that hold the subsampled releases of a rehearsal, at least one block, cost at most half of
    /// `most` units of mu².
    fn noise_of_subsampled(&self, theta: &[f64], most: u64, asked: u64) -> Result<NoiseScale, Unmeasured> {
        let frame = vec![0.1; Frame::length(theta.len())];
        let (kind, to) = match self.spec.algorithm.follows_gradients() {
            true => (QueryKind::SampledGradient { parameters: theta.len() as u32 }, frame.as_slice()),
            false => (QueryKind::SampledRatio, theta),
        };
        let terms = self.terms(kind, (theta, to))?;
        let noise = self.spec.privacy.noise;
        let block = self.spec.block_terms(kind, self.unit, (terms.sensitivity(), noise)).map_or(0, |block| block.releases);
        let limit = most / asked.saturating_add(block) / 2;
        cheap(&terms, self.unit, noise, Honest::ALONE, limit).ok_or_else(too_expensive)
    }

    /// Returns a choice with the job's number of candidates, all at the longest step that a rehearsal's budget holds, one far above the
    /// others: the trials of a choice take longest where nearly all of them fail.
    fn choice(&self, most: u64) -> Result<v1::Proposal, Unmeasured> {
        let count = self.spec.sampler.ops.candidates;
        let limit = most / 4 / (*PASSES.end() / EVERY_CHOICE + 1);
        let kind = QueryKind::Choice { candidates: count };
        let from = self.ordinary();
        let mut far = WorstCaseStep::ends(self.spec).1;
        for _ in 0..HALVINGS {
            let places = vec![far.clone(); count as usize];
            let public: Vec<f64> = (0..count).map(|m| if m == 0 { 0.0 } else { -BEHIND }).collect();
            let to = Candidates::numbers(&places, &public);
            let terms = self.terms(kind, (&from, &to))?;
            let noise = NoiseScale::OF_A_CHOICE;
            let cost = self.unit.charge_of_kind(kind, terms.sensitivity(), (noise, Honest::ALONE));
            if cost.is_ok_and(|cost| cost <= limit) {
                return Ok(v1::Proposal { chain: 0, from, to, noise_scale: noise.units(), kind: kind.code() });
            }
            far.iter_mut().zip(&from).for_each(|(to, from)| *to = 0.5 * (*to + from));
        }
        Err(too_expensive())
    }

    /// Returns the message of a pass. Every eighth pass asks the choice, of a job that asks one. Every second pass asks the step that takes
    /// longest, forwards and back, subsampled where the job's chains subsample. The others ask a step of length zero with every parameter
    /// at an ordinary value, at the least magnitude that may be asked, or at either end of its box.
    pub(super) fn request(&self, pass: u64, queries: &RehearsedQueries) -> v1::Query {
        let theta = |box_: &Interval| match pass / 2 % 4 {
            0 => ORDINARY.clamp(box_.min, box_.max),
            1 => LEAST_MAGNITUDE.clamp(box_.min, box_.max),
            2 => box_.max,
            _ => box_.min,
        };
        let query = |proposals| v1::Query { job: JOB.into(), iteration: pass, proposals, attempt: 0 };
        if let Some(choice) = queries.choice.as_ref().filter(|_| pass % EVERY_CHOICE == EVERY_CHOICE - 1) {
            return query(vec![choice.clone()]);
        }
        let theta: Vec<f64> = self.spec.support.iter().map(theta).collect();
        let vectors = self.vectors(pass, &theta, queries.subsampled);
        if !vectors.is_empty() {
            return query(vectors);
        }
        let step = queries.step.as_ref().filter(|_| pass % 2 == 1 || queries.still.is_none());
        let (from, to, noise) = match step {
            Some(step) => {
                let (from, to) = step.turned(pass / 2 % 2 == 1);
                (from, to, step.noise)
            }
            None => (theta.as_slice(), theta.as_slice(), queries.still.unwrap_or(self.spec.privacy.noise)),
        };
        let (kind, noise) = match queries.subsampled.filter(|_| pass % 2 == 1) {
            Some(noise) => (QueryKind::SampledRatio.code(), noise),
            None => (QueryKind::Ratio.code(), noise),
        };
        // The weights of the records follow every step.
        let to: Vec<f64> = to.iter().copied().chain(self.weights_of_steps()).collect();
        let proposals = (0..self.chains() as u32)
            .map(|chain| {
                let component = chain % queries.statistics.len().max(1) as u32;
                match queries.statistics.get(component as usize) {
                    None => v1::Proposal { chain, from: from.to_vec(), to: to.clone(), noise_scale: noise.units(), kind },
                    Some(noise) => {
                        let kind = QueryKind::Statistic { component }.code();
                        v1::Proposal { chain, noise_scale: noise.units(), kind, ..v1::Proposal::default() }
                    }
                }
            })
            .collect();
        query(proposals)
    }
}

/// The queries of a rehearsal besides vectors, under noise at a negligible cost.
pub(super) struct RehearsedQueries {
    /// The step that takes longest; none for Algorithm 3, which asks no steps.
    step: Option<WorstCaseStep>,
    /// Noise of a step of length zero, where it has a price.
    still: Option<NoiseScale>,
    /// Noise of each component of the statistic.
    statistics: Vec<NoiseScale>,
    /// Noise of a subsampled release, where the job's chains ask those.
    subsampled: Option<NoiseScale>,
    choice: Option<v1::Proposal>,
}

#[cfg(test)]
#[path = "tests/rehearsal.rs"]
mod tests;
