//! The clip watch tells how many records an explicit clip cuts, by noisy counts at a small share of the
//! budget.
//!
//! A clip that bites is worse than noise: it cuts the ratios of some records and not of others, and sends
//! the chains to another place without a sign. So a job with an explicit clip asks each party for noisy
//! counts of what the clip cuts at the very steps that the chains propose, in looks of one sweep (a step
//! along every direction, or one joint step where steps are joint): at the start of the warm-up and of the
//! sampling, and after 25, 50, 100, … sweeps of either. One count is `2^20 count + N_Z(0, (2^20 s_c)^2)` of
//! sensitivity 2^20, so it costs mu² = 1/s_c² (of what only the parties' sum is opened, a part of that), and the noise
//! is what lets all counts together cost the share.
//!
//! Judged is the total over the N parties, less three standard errors of it, as a share of all their
//! records: `(total - 3 s_c sqrt(N)) / n`. A chain that the clip does not cut is warned of or stopped in
//! vain with probability below 0.2% a count.
//!
//! All parties are judged together, and none by itself: with N parties of one size, a single one must have
//! N times the share of its rows cut to be seen. One site whose rows are all cut may pass unseen among
//! many.
//!
//! A party that does not publish its count, and of which the job makes no guess, is taken to hold as many
//! records as the others on average. A share that rests on that is a word of warning and never stops a job:
//! a party far larger than the others would be cut by a smaller share than is printed. Its noise is in the
//! total all the same, so whether counts tell anything is judged by the noise of all parties against the
//! records that are known.

use super::error::SamplerError;
use conclave_common::job::{JobSpec, ProposalKind, Warmup};
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Phase, Query};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// Share of cut records, less three standard errors, above which a job warns.
pub const WARN_SHARE: f64 = 0.02;
/// The same above which it stops.
pub const STOP_SHARE: f64 = 0.10;
/// Three standard errors may be at most this share of the records: beyond, counts tell nothing and are not
/// asked.
const BLIND: f64 = 0.10;
/// Standard errors that a count is lowered by before it is judged.
const ERRORS: f64 = 3.0;
/// Looks come at 0 and at this many sweeps times 1, 2, 4, …
const FIRST_LOOK: u64 = 25;

/// What is known of an explicit clip.
#[derive(Debug, Clone)]
pub struct ClipWatch {
    /// `None` where a count would tell nothing.
    plan: Option<Plan>,
    chains: u32,
    steps_per_sweep: u64,
    /// Counts in a look: one per direction, or one where every step moves all coordinates.
    counts_per_look: u64,
    parties: f64,
    /// Parties whose number of records nobody tells: taken to hold as many as the others.
    uncounted: Vec<String>,
    /// Units of privacy at all parties together: public, guessed, or as many as at the others on average.
    units: f64,
    counts: u64,
    /// The greatest share found, less its error.
    worst: f64,
    why_blind: String,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    noise: NoiseScale,
    /// Standard error of a party's count.
    error: f64,
    /// One look at the start of each phase, and no more.
    sparse: bool,
}

impl ClipWatch {
    /// The watch of a job; `None` where it has no explicit clip. `budget` is the job's, as mu².
    pub(super) fn new(
        spec: &JobSpec,
        parties: &[PartyMetadata],
        dimension: usize,
        budget: f64,
    ) -> Result<Option<Self>, SamplerError> {
        if spec.privacy.clip.is_none() {
            return Ok(None);
        }
        let steps_per_sweep = dimension as u64;
        let counts_per_look = if one_direction(spec.sampler.proposal) { steps_per_sweep } else { 1 };
        let mut watch = Self {
            plan: None,
            chains: spec.sampler.chains,
            steps_per_sweep,
            counts_per_look,
            parties: parties.len() as f64,
            uncounted: Vec::new(),
            units: 0.0,
            counts: 0,
            worst: 0.0,
            why_blind: String::new(),
        };
        let (mut units, mut known) = (0.0, 0.0);
        for (name, party) in spec.parties.iter().zip(parties) {
            match units_of(spec, party) {
                Some(count) => (units, known) = (units + count, known + 1.0),
                None => watch.uncounted.push(name.clone()),
            }
        }
        if known == 0.0 {
            watch.why_blind = "no party publishes how many records it has: give [sampler] records_guess".to_owned();
            return Ok(Some(watch));
        }
        watch.units = units * watch.parties / known;
        let mu_squared = spec.privacy.clip_watch_share * budget * f64::from(spec.honest().get());
        for sparse in [false, true] {
            let looks = looks(warmup_sweeps(spec), sparse) + looks(spec.sampler.draws.div_ceil(steps_per_sweep), sparse);
            let error = ((looks * counts_per_look).max(1) as f64 / mu_squared).sqrt();
            let noise = NoiseScale::from_sd(STEP * QueryKind::COUNT_UNIT as f64 * error.max(1.0))?;
            let error = noise.units() as f64 / QueryKind::COUNT_UNIT as f64;
            if ERRORS * error * watch.parties.sqrt() <= BLIND * units {
                watch.plan = Some(Plan { noise, error, sparse });
                return Ok(Some(watch));
            }
            watch.why_blind = format!(
                "a count would err by {error:.0} of {units:.0} records: raise privacy.clip_watch_share or epsilon, or have more records"
            );
        }
        Ok(Some(watch))
    }

    /// The count that goes with these proposals, if one is due.
    pub(super) fn ask(&self, phase: Phase, step: u64, proposals: &[Query]) -> Option<Query> {
        let plan = self.plan.filter(|plan| phase != Phase::Locate && due(step / self.steps_per_sweep, plan.sparse))?;
        if proposals.is_empty() || step % self.steps_per_sweep >= self.counts_per_look {
            return None;
        }
        // Another chain at every sweep.
        let watched = &proposals[(step / self.steps_per_sweep) as usize % proposals.len()];
        Some(Query { chain: self.chains, kind: QueryKind::ClipCount, noise: plan.noise, ..watched.clone() })
    }

    /// Takes the sum of all parties' counts, in lattice units.
    pub(super) fn absorb(&mut self, total: i128) {
        let Some(plan) = self.plan else { return };
        self.counts += 1;
        let total = total as f64 / QueryKind::COUNT_UNIT as f64;
        self.worst = self.worst.max((total - ERRORS * plan.error * self.parties.sqrt()) / self.units);
    }

    /// Counts taken so far.
    #[must_use]
    pub fn counts(&self) -> u64 {
        self.counts
    }

    /// The greatest share of all records that a step was found to cut: at least so much, by three standard
    /// errors.
    #[must_use]
    pub fn worst_share(&self) -> f64 {
        self.worst
    }

    /// What an analyst must know of the clip, in a sentence; `None` where it cuts little.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.plan.is_none() {
            return Some(format!(
                "whether privacy.clip cuts records could not be watched ({}). A clip that cuts displaces the posterior and nothing else shows it.",
                self.why_blind
            ));
        }
        (self.worst > WARN_SHARE).then(|| self.sentence("Its draws may be displaced"))
    }

    /// Why the chains must not go on, if so; never where a share rests on a count that nobody knows.
    #[must_use]
    pub fn stop(&self) -> Option<String> {
        (self.uncounted.is_empty() && self.worst > STOP_SHARE)
            .then(|| self.sentence("The chains were stopped, and their draws are of another posterior"))
    }

    /// What the analyst hears of the clip at a run's end: why it was stopped, else the warning, if any.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        self.stop().or_else(|| self.warning())
    }

    fn sentence(&self, consequence: &str) -> String {
        let assumed = match &self.uncounted[..] {
            [] => String::new(),
            [one] => format!(", if {one}, which publishes no count, holds as many as the others on average"),
            many => format!(", if {}, which publish no count, hold as many as the others on average", many.join(", ")),
        };
        format!(
            "privacy.clip cuts the log ratios of at least {:.1}% of the records at some of the chains' steps{assumed}. {consequence}: raise \
             the clip, or use a model with a public bound and clip = \"auto\".",
            100.0 * self.worst.min(1.0)
        )
    }
}

fn units_of(spec: &JobSpec, party: &PartyMetadata) -> Option<f64> {
    let known = party.records().or(party.persons()).or(spec.sampler.records_guess)?;
    (known > 0).then_some(known as f64)
}

fn one_direction(kind: ProposalKind) -> bool {
    matches!(kind, ProposalKind::Guided | ProposalKind::Componentwise)
}

fn warmup_sweeps(spec: &JobSpec) -> u64 {
    match spec.sampler.warmup {
        Warmup::Sweeps(n) | Warmup::UntilRhat { max: n, .. } => n,
    }
}

fn due(sweep: u64, sparse: bool) -> bool {
    let later = sweep.is_multiple_of(FIRST_LOOK) && (sweep / FIRST_LOOK).is_power_of_two();
    sweep == 0 || (later && !sparse)
}

/// Looks in a phase of so many sweeps.
fn looks(sweeps: u64, sparse: bool) -> u64 {
    let later =
        (0..64).take_while(|k| FIRST_LOOK.checked_shl(*k).is_some_and(|at| at < sweeps && at >= FIRST_LOOK)).count() as u64;
    u64::from(sweeps > 0) + if sparse { 0 } else { later }
}

#[cfg(test)]
#[path = "tests/clip_watch.rs"]
mod tests;
