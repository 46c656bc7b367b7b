//! Defines the owner's policy: the limits of every job.

use conclave_privacy::mechanism::QueryKind;

/// The owner's limits. A limit that is not set does not limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// The decider on a job within the limits.
    pub approve: Approve,
    /// Analysts whose jobs are admitted; `None` admits every analyst whom the consortium's CA signed.
    pub analysts: Option<Vec<String>>,
    /// Kinds of models admitted; `None` admits all.
    pub models: Option<Vec<String>>,
    /// Largest epsilon of a job, at the delta of the data's budget.
    pub max_epsilon_per_job: Option<f64>,
    /// Limit on all jobs of one analyst together: an epsilon at the delta of the data's budget, kept as mu².
    pub max_epsilon_per_analyst: Option<f64>,
    /// The least noise standard deviation of a release, in log-likelihood units; 0.01 when not set.
    pub min_noise_sd: f64,
    /// The least noise of a vector or a remainder, relative to its sensitivity; 0 when not set, as the budget limits them.
    pub min_noise_multiplier: f64,
    /// Kinds of release that jobs may ask for, by the words of [`QueryKind::release`]; `None` admits all, as the owner decides
    /// on each job.
    pub releases: Option<Vec<String>>,
    /// Columns that jobs may use; they are also the only ones that are read. `None` reads and admits all.
    pub columns: Option<Vec<String>>,
    /// Rounds that one job may make.
    pub max_iterations_per_job: Option<u64>,
    /// Mebibytes that the open jobs' scaled copies of the data may take together; 4096 when not set.
    pub max_memory_mib: Option<u64>,
    /// The delay of replies.
    pub reply_delay: ReplyDelay,
    /// Reports the remaining budget to an analyst whose job asks for more.
    pub tell_budget: bool,
    /// The decider on estimates of how this party differs from others.
    pub site_parameters: SiteParameters,
    /// Admits jobs whose caps together exceed the budget: whichever spends first gets it.
    pub over_commit: bool,
}

impl Policy {
    /// Kinds of release that an automatic policy without `releases` admits: the original ones. A later kind needs the owner's decision.
    pub const RELEASES_OF_OLD: [&'static str; 2] = ["ratio", "statistic"];

    /// Returns true where the owner admits a release of this kind.
    #[must_use]
    pub fn admits(&self, kind: QueryKind) -> bool {
        self.releases.as_ref().is_none_or(|releases| releases.iter().any(|release| release == kind.release()))
    }
}

/// The decider on a job within the owner's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// The owner, job by job.
    #[default]
    Manual,
    /// The limits themselves.
    Automatic,
}

/// The decider on a job that estimates how this party differs from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SiteParameters {
    /// The owner, job by job, under an automatic policy too.
    #[default]
    Ask,
    /// The policy, as on any other job.
    Allow,
    /// Such jobs are refused.
    Never,
}

/// The delay from the start of a message's service to its reply. Public, and independent of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyDelay {
    /// Measured per job, before its first query, on made-up records of the shard's shape.
    #[default]
    Auto,
    /// The owner's own delay.
    Fixed(std::time::Duration),
    /// No delay: the time of an answer can be observed from outside.
    Off,
}
