//! The clip watch estimates how many records an explicit clip affects, by noisy counts at a small share of the budget.
//!
//! An active clip is worse than noise: it distorts the ratios of some records and not of others, and moves the chains to another
//! posterior without any sign. So a job with an explicit clip asks each party for noisy counts of the clipped records at the very
//! steps that the chains propose. A look lasts one sweep: a step along every direction, or one joint step if steps are joint.
//! Looks take place at the start of the warm-up and of the sampling, and after 25, 50, 100, … sweeps of either. One count is
//! `2^20 count + N_Z(0, (2^20 s_c)^2)` of sensitivity 2^20, so it costs mu² = 1/s_c², or a part of that if only the parties' sum
//! is opened. The noise is chosen so that all counts together cost the share.
//!
//! The watch judges the total over the N parties, minus three of its standard errors, as a share of all their records:
//! `(total - 3 s_c sqrt(N)) / n`. The probability of a false warning or stop is below 0.2% per count.
//!
//! All parties are judged together, and none on its own. With N parties of one size, N times the share of a single party's rows
//! must be clipped to be detected. One site whose rows are all clipped may remain undetected among many.
//!
//! A party without a public count, if the job makes no guess, is assumed to hold the average number of records of the others. A
//! share that depends on this assumption causes a warning and never stops a job, because a much larger party could have a smaller
//! share of clipped records than is printed. Its noise is part of the total in any case, so the informativeness of the counts is
//! judged by the noise of all parties against the known records.

use super::SamplerError;
use conclave_common::job::{JobSpec, ProposalKind, Warmup};
use conclave_common::query::{PartyMetadata, Phase, Query};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// Share of clipped records, minus three standard errors, above which a job warns.
const WARN_SHARE: f64 = 0.02;
/// Share of clipped records, minus three standard errors, above which a job stops.
const STOP_SHARE: f64 = 0.10;
/// Largest ratio of three standard errors to the records: above it, counts are uninformative and are not queried.
const BLIND: f64 = 0.10;
/// Number of standard errors by which a count is reduced before it is judged.
const ERRORS: f64 = 3.0;
/// Number of sweeps before the first look after the start; later looks follow at 2, 4, … times that number.
const FIRST_LOOK: u64 = 25;

/// The knowledge about an explicit clip.
#[derive(Debug, Clone)]
pub(super) struct ClipWatch {
    /// `None` if a count would be uninformative.
    plan: Option<Plan>,
    chains: u32,
    steps_per_sweep: u64,
    /// Number of counts in a look: one per direction, or one if every step moves all coordinates.
    counts_per_look: u64,
    parties: f64,
    /// Parties without a public or guessed number of records: assumed to hold the average of the others.
    uncounted: Vec<String>,
    /// Number of units of privacy at all parties together: public, guessed, or the average of the others.
    units: f64,
    /// Largest share found, minus its error.
    worst: f64,
    why_blind: String,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    noise: NoiseScale,
    /// Standard error of a party's count.
    error: f64,
    /// Set if there is only one look at the start of each phase.
    sparse: bool,
}

impl ClipWatch {
    /// Plans the watch of a job; `None` if it has no explicit clip. `budget` is the job's, as mu².
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
            watch.why_blind = "no party publishes its number of records: set records_guess under [sampler]".to_owned();
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
                "a count would have an error of {error:.0} of {units:.0} records: raise privacy.clip_watch_share or epsilon, or use more records"
            );
        }
        Ok(Some(watch))
    }

    /// Returns the count for these proposals, if one is due.
    pub(super) fn ask(&self, phase: Phase, step: u64, proposals: &[Query]) -> Option<Query> {
        let plan = self.plan.filter(|plan| phase != Phase::Locate && due(step / self.steps_per_sweep, plan.sparse))?;
        if proposals.is_empty() || step % self.steps_per_sweep >= self.counts_per_look {
            return None;
        }
        // Each sweep watches another chain.
        let watched = &proposals[(step / self.steps_per_sweep) as usize % proposals.len()];
        Some(Query { chain: self.chains, kind: QueryKind::ClipCount, noise: plan.noise, ..watched.clone() })
    }

    /// Processes the sum of all parties' counts, in lattice units.
    pub(super) fn absorb(&mut self, total: i128) {
        let Some(plan) = self.plan else { return };
        let total = total as f64 / QueryKind::COUNT_UNIT as f64;
        self.worst = self.worst.max((total - ERRORS * plan.error * self.parties.sqrt()) / self.units);
    }

    /// Returns a warning about the clip; `None` if it is rarely active.
    pub(super) fn warning(&self) -> Option<String> {
        if self.plan.is_none() {
            return Some(format!(
                "the effect of privacy.clip could not be watched ({}). An active clip displaces the posterior, and nothing else shows it.",
                self.why_blind
            ));
        }
        (self.worst > WARN_SHARE).then(|| self.sentence("Its draws may be displaced"))
    }

    /// Returns the reason to stop the chains, if there is one; never if the share depends on an unknown count.
    pub(super) fn stop(&self) -> Option<String> {
        (self.uncounted.is_empty() && self.worst > STOP_SHARE)
            .then(|| self.sentence("The chains were stopped, because their draws follow another posterior"))
    }

    /// Returns the report on the clip at a run's end: the reason for its stop, otherwise the warning, if any.
    pub(super) fn word(&self) -> Option<String> {
        self.stop().or_else(|| self.warning())
    }

    fn sentence(&self, consequence: &str) -> String {
        let assumed = match &self.uncounted[..] {
            [] => String::new(),
            [one] => format!(", if {one}, which publishes no count, holds the average number of the others"),
            many => format!(", if {}, which publish no count, hold the average number of the others", many.join(", ")),
        };
        format!(
            "privacy.clip distorts the log ratios of at least {:.1}% of the records at some of the chains' steps{assumed}. {consequence}: raise \
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

/// Returns the number of looks in a phase of this number of sweeps.
fn looks(sweeps: u64, sparse: bool) -> u64 {
    let later =
        (0..64).take_while(|k| FIRST_LOOK.checked_shl(*k).is_some_and(|at| at < sweeps && at >= FIRST_LOOK)).count() as u64;
    u64::from(sweeps > 0) + if sparse { 0 } else { later }
}

#[cfg(test)]
#[path = "tests/clip_watch.rs"]
mod tests;
