//! The declaration of an algorithm: what owners, analysts and the parser must know of it without running it.

use super::unused::Unused;
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler};
use crate::job::sampler_spec::{BarkerSpec, HmcSpec, OpsSpec, StochasticSpec};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// The number of chains, and of kept draws of each, where a job names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::job) struct UsualLength {
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

/// An algorithm's declaration.
#[derive(Clone, Copy)]
pub(in crate::job) struct Declaration {
    pub name: &'static str,
    /// Whether the algorithm asks parties for queries of this kind.
    pub asks: fn(QueryKind) -> bool,
    /// The kinds of release that a job asks its parties for, by the words of [`QueryKind::release`].
    pub releases: fn(&JobSpec) -> Vec<&'static str>,
    /// The most rounds in which a job that releases once asks its parties; `None` for jobs that ask round after round.
    pub most_rounds: fn(&JobSpec) -> Option<u64>,
    /// Whether every draw takes a question that the parties answer to.
    pub proposes: bool,
    /// Whether its chains walk on noisy log likelihood ratios alone.
    pub walks_on_ratios: bool,
    /// Whether its chains are driven by released gradients.
    pub follows_gradients: bool,
    /// Whether its chains follow stochastic gradients without any test.
    pub is_unadjusted: bool,
    /// The keys of `[sampler]` that not every algorithm takes and this one does.
    pub own_keys: &'static [&'static str],
    pub usual_length: UsualLength,
    /// The oldest protocol that speaks of what the algorithm asks.
    pub protocol: fn(&JobSpec) -> u32,
    /// The data that a job asks for round after round, and how often, as words for an owner.
    pub asked_for: fn(&JobSpec) -> String,
    pub summand: fn(&JobSpec) -> Summand,
    /// The paragraph of the report on the noise of a job whose sd is this in figures.
    pub noise: fn(&JobSpec, &str) -> String,
    /// Keys that the algorithm has no use for, beyond those that only others have.
    pub unused: fn(&RawJob) -> Vec<Unused>,
    /// Reads the algorithm's own settings.
    pub settings: fn(&RawSampler) -> Result<OwnSettings, JobError>,
    /// Checks that the algorithm is for the job's model, parties and size.
    pub check: fn(&JobSpec) -> Result<(), JobError>,
    /// Resolves what follows from the rest of the job; the flag says that the job leaves its noise open.
    pub resolve: fn(JobSpec, bool) -> Result<JobSpec, JobError>,
}

impl Declaration {
    /// The declaration of chains that ask for noisy log likelihood ratios, round after round.
    pub(super) const OF_RATIOS: Self = Self {
        name: "",
        asks: |kind| matches!(kind, QueryKind::Ratio | QueryKind::ClipCount),
        releases: |_| vec!["ratio"],
        most_rounds: |_| None,
        proposes: true,
        walks_on_ratios: false,
        follows_gradients: false,
        is_unadjusted: false,
        own_keys: &[],
        usual_length: UsualLength { chains: 4, draws: 5000 },
        protocol: |_| 1,
        asked_for: |_| RATIO_BY_RATIO.to_owned(),
        summand: |_| Summand::RATIO,
        noise: |_, sd| noise_of_answers(sd, "log-likelihood units", PENALTY),
        unused: |_| Vec::new(),
        settings: |_| Ok(OwnSettings::default()),
        check: |_| Ok(()),
        resolve: |spec, _| Ok(spec),
    };

    /// The declaration of what is released once, and of draws that ask nothing.
    pub(super) const OF_RELEASES: Self =
        Self { proposes: false, protocol: |_| 3, noise: |_, _| NOISE_OF_RELEASES.to_owned(), ..Self::OF_RATIOS };
}

/// What a chain of ratios asks for, and how often.
pub(super) const RATIO_BY_RATIO: &str =
    "how much better one setting of the model explains the records than another, one number at a time, round after round";

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
const NOISE_OF_RELEASES: &str = "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, as much of it as the job’s budget asks for: all of the \
     budget is spent in a few releases. The posterior is that of the parameters given what was released, as wide as the noise makes it.";

/// The settings of `[sampler]` that belong to one algorithm; the defaults for any other.
#[derive(Default)]
pub(in crate::job) struct OwnSettings {
    pub(in crate::job) hmc: HmcSpec,
    pub(in crate::job) barker: BarkerSpec,
    pub(in crate::job) stochastic: StochasticSpec,
    pub(in crate::job) ops: OpsSpec,
}
