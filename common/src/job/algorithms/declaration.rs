//! The declaration of an algorithm: the facts that owners, analysts and the parser need before it runs.

use super::unused::Unused;
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler};
use crate::job::sampler_spec::{BarkerSpec, HmcSpec, OpsSpec, StochasticSpec};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// Default number of chains and of kept draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::job) struct UsualLength {
    /// Chains; for `hmc` the maximum, see [`JobSpec::plans_chains`].
    pub chains: u32,
    /// Kept draws of each chain.
    pub draws: u32,
}

/// Description, for an owner, of the quantity that a released number sums over the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleasedQuantity {
    /// The description.
    pub words: &'static str,
    /// True if a holder of the release can fit any model of the columns.
    pub fits_any_model: bool,
}

impl ReleasedQuantity {
    /// The quantity of a log likelihood ratio.
    pub const RATIO: Self =
        Self { words: "how much better one setting of the model explains a record than another", fits_any_model: false };
}

/// Queries of a search for the mode by gradients.
pub(super) const SEARCH_BY_SCORES: &str = "a few scores (gradient and curvature of the log likelihood) to begin with";
/// The consequence of a release of statistics.
pub const ANY_MODEL: &str = "Anyone who holds the release can fit any model of these columns";

/// An algorithm's declaration.
#[derive(Clone, Copy)]
pub(in crate::job) struct Declaration {
    pub name: &'static str,
    /// Returns true if the algorithm makes queries of this kind.
    pub asks: fn(QueryKind) -> bool,
    /// The kinds of release that a job requires, in the words of [`QueryKind::release`].
    pub releases: fn(&JobSpec) -> Vec<&'static str>,
    /// Maximum number of rounds of a job that releases once; `None` for jobs that query round after round.
    pub most_rounds: fn(&JobSpec) -> Option<u64>,
    /// True if every draw requires a query.
    pub proposes: bool,
    /// True if its chains use noisy log likelihood ratios only.
    pub walks_on_ratios: bool,
    /// True if released gradients drive its chains.
    pub follows_gradients: bool,
    /// True if its chains follow stochastic gradients without an acceptance test.
    pub is_unadjusted: bool,
    /// Keys of `[sampler]` that this algorithm takes and some others do not.
    pub own_keys: &'static [&'static str],
    pub usual_length: UsualLength,
    /// The oldest protocol with the algorithm's queries.
    pub protocol: fn(&JobSpec) -> u32,
    /// The queries of a job that queries round after round, and their number, described for an owner.
    pub query_description: fn(&JobSpec) -> String,
    pub released_quantity: fn(&JobSpec) -> ReleasedQuantity,
    /// The paragraph of the report on the noise of a job, given its formatted sd.
    pub noise: fn(&JobSpec, &str) -> String,
    /// Keys that the algorithm does not use, except those of other algorithms only.
    pub unused: fn(&RawJob) -> Vec<Unused>,
    /// Reads the algorithm's own settings.
    pub settings: fn(&RawSampler) -> Result<OwnSettings, JobError>,
    /// Checks that the algorithm supports the job's model, parties and size.
    pub check: fn(&JobSpec) -> Result<(), JobError>,
    /// Resolves the settings that follow from the rest of the job; the flag is true if the job does not set its noise.
    pub resolve: fn(JobSpec, bool) -> Result<JobSpec, JobError>,
}

impl Declaration {
    /// Base declaration of chains that query noisy log likelihood ratios, round after round.
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
        query_description: |_| RATIO_QUERIES.to_owned(),
        released_quantity: |_| ReleasedQuantity::RATIO,
        noise: |_, sd| noise_of_answers(sd, "log-likelihood units", PENALTY),
        unused: |_| Vec::new(),
        settings: |_| Ok(OwnSettings::default()),
        check: |_| Ok(()),
        resolve: |spec, _| Ok(spec),
    };

    /// Base declaration of an algorithm with one release, whose draws require no query.
    pub(super) const OF_RELEASES: Self = Self {
        proposes: false,
        protocol: |_| 3,
        released_quantity: |_| ReleasedQuantity { words: "the quantities named above", fits_any_model: true },
        noise: |_, _| NOISE_OF_RELEASES.to_owned(),
        ..Self::OF_RATIOS
    };
}

/// The queries of a chain of ratios.
pub(super) const RATIO_QUERIES: &str =
    "how much better one setting of the model explains the records than another, one number at a time, round after round";

/// The correction of the penalty method, as a sentence of the report.
pub(super) const PENALTY: &str = "The chain’s acceptance step corrects for it (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws follow \
     the posterior of the pooled records.";

/// Returns the paragraph on noise with one sd for all answers.
pub(super) fn noise_of_answers(sd: &str, unit: &str, correction: &str) -> String {
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, standard deviation {sd} {unit} for every answer of every owner \
         while the chains run. {correction}"
    )
}

/// The paragraph on the noise of a job that releases once.
const NOISE_OF_RELEASES: &str = "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator. Its scale follows from the job’s \
     budget, all of which is spent in a few releases. The posterior is that of the parameters given the releases, and includes \
     the uncertainty due to the noise.";

/// The settings of `[sampler]` that belong to one algorithm; defaults for all others.
#[derive(Default)]
pub(in crate::job) struct OwnSettings {
    pub(in crate::job) hmc: HmcSpec,
    pub(in crate::job) barker: BarkerSpec,
    pub(in crate::job) stochastic: StochasticSpec,
    pub(in crate::job) ops: OpsSpec,
}
