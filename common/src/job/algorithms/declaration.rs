//! The declaration of an algorithm: the facts that owners, analysts and the parser use without running it.

use super::unused::Unused;
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler};
use crate::job::sampler_spec::{BarkerSpec, HmcSpec, OpsSpec, StochasticSpec};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// The default numbers of chains and of retained draws of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::job) struct UsualLength {
    /// Chains; for `hmc` the maximum, see [`JobSpec::plans_chains`].
    pub chains: u32,
    /// Retained draws of each chain.
    pub draws: u32,
}

/// The quantity that a released number sums over the records, in words for an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summand {
    /// The words.
    pub what: &'static str,
    /// True if a holder of the release may fit any model of the columns.
    pub fits_any_model: bool,
}

impl Summand {
    /// The summand of a log likelihood ratio.
    pub const RATIO: Self =
        Self { what: "how much better one setting of the model explains a record than another", fits_any_model: false };
}

/// The description of a search for the mode by gradients.
pub(super) const TO_BEGIN_WITH: &str = "a few scores (gradient and curvature of the log likelihood) to begin with";
/// The meaning of a release of statistics for its owner.
pub const ANY_MODEL: &str = "Anyone who holds the release can fit any model of these columns";

/// An algorithm's declaration.
#[derive(Clone, Copy)]
pub(in crate::job) struct Declaration {
    pub name: &'static str,
    /// Returns whether the algorithm uses queries of this kind.
    pub asks: fn(QueryKind) -> bool,
    /// Returns the kinds of release that a job uses, by the words of [`QueryKind::release`].
    pub releases: fn(&JobSpec) -> Vec<&'static str>,
    /// Returns the maximum number of rounds of a job that releases once; `None` for jobs with repeated rounds.
    pub most_rounds: fn(&JobSpec) -> Option<u64>,
    /// True if every draw requires a query to the parties.
    pub proposes: bool,
    /// True if the chains use noisy log likelihood ratios only.
    pub walks_on_ratios: bool,
    /// True if released gradients drive the chains.
    pub follows_gradients: bool,
    /// True if the chains follow stochastic gradients without a test.
    pub is_unadjusted: bool,
    /// The keys of `[sampler]` that this algorithm accepts and some others do not.
    pub own_keys: &'static [&'static str],
    pub usual_length: UsualLength,
    /// Returns the oldest protocol version with the algorithm's queries.
    pub protocol: fn(&JobSpec) -> u32,
    /// Returns a description, for an owner, of the data that a job requests in each round, and how often.
    pub asked_for: fn(&JobSpec) -> String,
    pub summand: fn(&JobSpec) -> Summand,
    /// Returns the paragraph of the report on the noise of a job with this standard deviation, given as text.
    pub noise: fn(&JobSpec, &str) -> String,
    /// Returns the keys that the algorithm does not use, besides those that only other algorithms have.
    pub unused: fn(&RawJob) -> Vec<Unused>,
    /// Reads the algorithm's own settings.
    pub settings: fn(&RawSampler) -> Result<OwnSettings, JobError>,
    /// Checks that the algorithm supports the job's model, parties and size.
    pub check: fn(&JobSpec) -> Result<(), JobError>,
    /// Resolves the settings that depend on the rest of the job. The flag states that the job leaves its noise open.
    pub resolve: fn(JobSpec, bool) -> Result<JobSpec, JobError>,
}

impl Declaration {
    /// The declaration of chains that query noisy log likelihood ratios in every round.
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

    /// The declaration of a single release and of draws without queries.
    pub(super) const OF_RELEASES: Self =
        Self { proposes: false, protocol: |_| 3, noise: |_, _| NOISE_OF_RELEASES.to_owned(), ..Self::OF_RATIOS };
}

/// The description of the queries of a chain of ratios.
pub(super) const RATIO_BY_RATIO: &str =
    "how much better one setting of the model explains the records than another, one number at a time, round after round";

/// The correction of the penalty method, as a sentence of the report.
pub(super) const PENALTY: &str = "The chain’s acceptance step corrects for it (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws are of the posterior that all \
     records in one place would have given.";

/// Returns the paragraph on noise that is equal in every answer.
pub(super) fn noise_of_answers(sd: &str, unit: &str, corrected: &str) -> String {
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, standard deviation {sd} {unit} for every answer of every owner \
         while the chains run. {corrected}"
    )
}

/// The paragraph on noise of a job that releases once.
const NOISE_OF_RELEASES: &str = "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, at the scale that the job’s budget \
     requires: all of the budget is spent in a few releases. The posterior is that of the parameters given the releases, and includes the noise.";

/// The settings of `[sampler]` that belong to one algorithm; the defaults for any other.
#[derive(Default)]
pub(in crate::job) struct OwnSettings {
    pub(in crate::job) hmc: HmcSpec,
    pub(in crate::job) barker: BarkerSpec,
    pub(in crate::job) stochastic: StochasticSpec,
    pub(in crate::job) ops: OpsSpec,
}
