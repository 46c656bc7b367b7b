//! The declaration of an algorithm: what owners, analysts and the parser must know of it without running it.
//!
//! The defaults are those of a chain that asks the parties for noisy log likelihood ratios, round after round.

use super::unused::Unused;
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler};
use crate::job::sampler_spec::{BarkerSpec, HmcSpec, OpsSpec, StochasticSpec};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// The number of chains, and of kept draws of each, where a job names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualLength {
    /// Chains; of `hmc` the most there are, see [`JobSpec::plans_chains`].
    pub chains: u32,
    /// Kept draws of each chain.
    pub draws: u32,
}

/// The quantity that a released number sums over the records, in words for an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summand {
    /// The words.
    pub what: &'static str,
    /// Whether a holder of the release may fit any model of the columns.
    pub fits_any_model: bool,
}

impl Summand {
    /// The summand of a log likelihood ratio.
    pub const RATIO: Self =
        Self { what: "how much better one setting of the model explains a record than another", fits_any_model: false };
}

/// The words of a search for the mode by gradients.
pub(super) const TO_BEGIN_WITH: &str = "a few scores (gradient and curvature of the log likelihood) to begin with";
/// The meaning of a release of statistics for its owner.
pub const ANY_MODEL: &str = "Whoever holds the release may fit any model of these columns";

/// Public facts of an algorithm.
pub trait Declaration: Sync {
    /// The name in job files and results.
    fn as_str(&self) -> &'static str;

    /// Whether the algorithm asks parties for queries of this kind.
    fn asks(&self, kind: QueryKind) -> bool;

    /// The kinds of release that a job asks its parties for, by the words of [`QueryKind::release`].
    fn releases(&self, spec: &JobSpec) -> Vec<&'static str>;

    /// The most rounds in which a job that releases once asks its parties; `None` for jobs that ask round after round.
    fn most_rounds(&self, _spec: &JobSpec) -> Option<u64> {
        None
    }

    /// Whether every draw takes a question that the parties answer to.
    fn proposes(&self) -> bool {
        true
    }

    /// Whether its chains walk on noisy log likelihood ratios alone.
    fn walks_on_ratios(&self) -> bool {
        false
    }

    /// Whether its chains are driven by released gradients.
    fn follows_gradients(&self) -> bool {
        self.is_unadjusted()
    }

    /// Whether its chains follow stochastic gradients without any test: their draws are of the posterior up to a bias.
    fn is_unadjusted(&self) -> bool {
        false
    }

    /// The keys of `[sampler]` that not every algorithm takes and this one does.
    fn own_keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// The number of chains and draws where a job names none.
    fn usual_length(&self) -> UsualLength {
        UsualLength { chains: 4, draws: 5000 }
    }

    /// The oldest protocol that speaks of what the algorithm asks.
    fn protocol(&self, _spec: &JobSpec) -> u32 {
        1
    }

    /// The data that a job asks for round after round, and how often, as words for an owner.
    fn asked_for(&self, spec: &JobSpec) -> String {
        let ratios =
            "how much better one setting of the model explains the records than another, one number at a time, round after round";
        match spec.locates_by_gradients() {
            true => format!("{TO_BEGIN_WITH}; then {ratios}. {ANY_MODEL}"),
            false => ratios.to_owned(),
        }
    }

    /// The quantity that each released number sums over the records.
    fn summand(&self, _spec: &JobSpec) -> Summand {
        Summand::RATIO
    }

    /// The noise of a job's releases and its part in the posterior, as a paragraph of the report; `sd` is the job's noise in figures.
    fn noise(&self, _spec: &JobSpec, sd: &str) -> String {
        noise_of_answers(sd, "log-likelihood units", PENALTY)
    }
}

/// The correction of the penalty method, as a sentence of the report.
pub(super) const PENALTY: &str = "The chain’s acceptance step corrects for it (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws are of the posterior that all \
     records in one place would have given.";

/// The paragraph on noise that every answer has alike.
pub(super) fn noise_of_answers(sd: &str, unit: &str, corrected: &str) -> String {
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, standard deviation {sd} {unit} for every answer of every owner \
         while the chains run. {corrected}"
    )
}

/// The paragraph on noise of a job that releases once.
pub(super) fn noise_of_releases() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, as much of it as the job’s budget asks for: all of the \
     budget is spent in a few releases. The posterior is that of the parameters given what was released, as wide as the noise makes it."
        .to_owned()
}

/// The settings of `[sampler]` that belong to one algorithm; the defaults for any other.
#[derive(Default)]
pub(in crate::job) struct OwnSettings {
    pub(in crate::job) hmc: HmcSpec,
    pub(in crate::job) barker: BarkerSpec,
    pub(in crate::job) stochastic: StochasticSpec,
    pub(in crate::job) ops: OpsSpec,
}

/// The part of an algorithm in reading a job file.
pub(in crate::job) trait Parsing: Declaration {
    /// Keys that the algorithm has no use for, beyond those that only others have.
    fn unused(&self, _raw: &RawJob) -> Vec<Unused> {
        Vec::new()
    }

    /// The algorithm's own settings as written.
    ///
    /// # Errors
    /// A setting out of range.
    fn settings(&self, _raw: &RawSampler) -> Result<OwnSettings, JobError> {
        Ok(OwnSettings::default())
    }

    /// Checks that the algorithm is for the job's model, parties and size.
    ///
    /// # Errors
    /// Why not, with the key at fault.
    fn check(&self, _spec: &JobSpec) -> Result<(), JobError> {
        Ok(())
    }

    /// Resolves what follows from the rest of the job; `auto_noise` says that the job leaves its noise open.
    ///
    /// # Errors
    /// More than the budget or the algorithm has room for.
    fn resolve(&self, spec: JobSpec, _auto_noise: bool) -> Result<JobSpec, JobError> {
        Ok(spec)
    }
}
