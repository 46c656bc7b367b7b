//! What the sampler refuses.

use conclave_common::query::QueryError;
use conclave_privacy::accounting::{AccountingError, SubsampledError};
use conclave_privacy::mechanism::{MechanismError, QueryKind};

/// What the sampler refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// Masked answers whose masks are not those of one roster and message.
    #[error("the masks of the parties' answers do not cancel: one of them was asked something else, or answers with another key")]
    Masks,
    /// As many record counts as parties are needed.
    #[error("{got} record counts for {expected} parties")]
    Records {
        /// Number of parties.
        expected: usize,
        /// Number of counts.
        got: usize,
    },
    /// A party's record count isn't public and the job makes no guess.
    #[error("{party} does not publish its record count: give [sampler] records_guess, a guess of one party's number of records")]
    UnknownCount {
        /// The party.
        party: String,
    },
    /// A released statistic needs the number of records, and a record as the unit of privacy.
    #[error(
        "{party} protects a unit of \"{unit}\", and {algorithm} needs rows that are replaced: use algorithm = \"penalty\", or leave the party out"
    )]
    Protects {
        /// The job's algorithm.
        algorithm: &'static str,
        /// The party.
        party: String,
        /// What it protects.
        unit: String,
    },
    /// Augmentation draws whole records.
    #[error("the model `{0}` does not say how whole records come about, which augmentation draws: use algorithm = \"penalty\"")]
    NoRecordLaw(&'static str),
    /// More records than augmentation is sensible for.
    #[error(
        "the parties hold {records} records, and augmentation imputes each of them in every sweep: beyond {most} use another algorithm, or \
         write force = true under [sampler]"
    )]
    ManyRecords {
        /// Records of all parties.
        records: u64,
        /// The most that are imputed without being forced.
        most: u64,
    },
    /// The model is no exponential family.
    #[error("the model is no exponential family with a bounded statistic: use algorithm = \"penalty\"")]
    NoFamily,
    /// The model has no gradients that could be released.
    #[error("the model has no score that could be released: use algorithm = \"penalty\"")]
    NoScores,
    /// Not even the noisiest release of this kind fits the share of the budget that is set apart for it.
    #[error(
        "the budget is too small: its share for one {kind} does not hold the least charge of a release of that many numbers; raise epsilon, lower privacy.noise_multiplier if the job names one, or leave out predictors"
    )]
    TooSmallABudget {
        /// What was to be asked.
        kind: QueryKind,
    },
    /// The noise that a job asks for of each gradient is more than moves a chain.
    #[error(
        "privacy.noise_multiplier = {multiplier} asks for more noise in a gradient than chains of steps of {step} posterior sds have a use for: lower it, \
         or lower sampler.step if the job names one"
    )]
    TooMuchNoise {
        /// The least noise over what it covers.
        multiplier: f64,
        /// The length of the shortest step that was tried, in posterior sds.
        step: f64,
    },
    /// A variance of normal noise that no correction is there for.
    #[error("there is no correction of normal noise of variance {0}: sampler.correction must be 2, 1.5 or 1")]
    NoCorrection(f64),
    /// What is random in a ratio has a greater variance than Barker's test has room for.
    #[error(
        "the parties' noise and samples give a log ratio a variance of {noise:.3} and {sampling:.3}, and Barker's test with correction = {correction} \
         has room for {correction} in all: raise sampler.batch, shorten the step (sampler.proposal.radius) or lower privacy.noise_sd"
    )]
    TooRandomARatio {
        /// Variance of the parties' noise, as the receiver scales it.
        noise: f64,
        /// The greatest variance that samples are assumed to have.
        sampling: f64,
        /// The variance that there is room for.
        correction: f64,
    },
    /// Samples whose noise hides too little of what one party protects.
    #[error(
        "{party} protects a unit of \"{unit}\", which moves a log ratio over a sample by {relative:.2} times its noise, and a sample hides next to \
         nothing beyond 1.5: lower privacy.clip by that, raise sampler.batch and leave privacy.noise_sd at \"auto\", or leave sampler.batch out"
    )]
    TooLittleNoise {
        /// The party.
        party: String,
        /// What it protects.
        unit: String,
        /// What a unit moves the sum by, over its noise.
        relative: f64,
    },
    /// A block of ratios over samples that the budget does not hold beside the search.
    #[error(
        "{party} charges a block of {releases} releases over samples ahead, and it costs {budgets:.3} times what is left for it of the budget: {remedy}"
    )]
    BlockBeyondBudget {
        /// The party.
        party: String,
        /// Releases of a block.
        releases: u64,
        /// Its price, in what is left of the budget.
        budgets: f64,
        /// What to do.
        remedy: &'static str,
    },
    /// The penalty sweeps that are to end the chains leave no budget for what comes before them.
    #[error(
        "sampler.polish = {sweeps} sweeps of each chain cost {budgets:.2} times the budget that the search left, and the steps before them are to be paid \
         as well: ask for fewer sweeps or chains, raise epsilon, or use algorithm = \"penalty\" or \"hmc\""
    )]
    TooMuchPolish {
        /// Sweeps of each chain.
        sweeps: u64,
        /// Their price, in what is left of the budget.
        budgets: f64,
    },
    /// What samples add to a gradient's noise is more than a step takes.
    #[error(
        "samples of {batch} of the records add a variance of {variance:.1} to a gradient, in posterior sds, and a step of {step} takes less: raise \
         sampler.batch, or lower sampler.step"
    )]
    SamplesTooSmall {
        /// The probability with which a unit is in a sample.
        batch: f64,
        /// eta.
        step: f64,
        /// The mean variance of what samples add, in units of one over the posterior's.
        variance: f64,
    },
    /// The budget does not hold the blocks of the releases that are planned.
    #[error(
        "the budget does not hold the blocks of {releases} releases over samples of {batch} of the records, at steps of {step} posterior sds: lower \
         sampler.draws, sampler.warmup or sampler.chains, lower sampler.step if the job names one, raise epsilon, or leave sampler.batch out \
         (releases of all records cost no more)"
    )]
    TooManyReleases {
        /// Releases of all chains together.
        releases: u64,
        /// The probability with which a unit is in a sample.
        batch: f64,
        /// eta.
        step: f64,
    },
    /// A block of releases over samples that can't be priced.
    #[error(transparent)]
    Subsampled(#[from] SubsampledError),
    /// Neither metadata nor a release tells how many records count.
    #[error(
        "without an intercept the number of records that count is not released, and sigma is unknown: give the model an intercept or its sd, or use algorithm = \"penalty\""
    )]
    NoCount,
    /// Nowhere is the posterior positive.
    #[error("the posterior is nowhere positive within the parameter box: widen the box, or look at the priors")]
    NoPlace,
    /// The budget holds no choice among candidates as far apart as the posterior is wide.
    #[error(
        "one draw costs mu = {mu:.3}, as neighbouring records move the log probabilities of the candidates by a range of {range:.3}, and {left:.3} is \
         left for it: raise epsilon, give the likelihood a lower power under [model], ask for fewer candidates, lower \
         privacy.noise_multiplier if the job names one, or use algorithm = \"hmc\""
    )]
    ChoiceTooExpensive {
        /// The range, in log-likelihood units.
        range: f64,
        /// What a choice costs.
        mu: f64,
        /// What there is for it.
        left: f64,
    },
    /// The query does not belong to the job.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A sum over the records could leave the lattice.
    #[error(
        "{party} holds more records than a sum of this statistic can: narrow the columns' bounds, or bring them nearer to 0 for their width"
    )]
    TooManyRecords {
        /// The party.
        party: String,
    },
    /// Releases that do not fit the round that was asked.
    #[error("the releases do not fit the round: {0}")]
    Shape(&'static str),
    /// An algorithm that is not driven by stochastic gradients.
    #[error("algorithm = \"{}\" is not driven by stochastic gradients", .0.as_str())]
    NotDriven(conclave_common::job::Algorithm),
    /// No round is being asked.
    #[error("no round is waiting for releases")]
    NoRound,
    /// A noise scale or sensitivity out of range.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The budget is not a budget.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}

impl SamplerError {
    /// Whether it is the budget that does not do, and not what the job or the parties' data are.
    #[must_use]
    pub fn is_of_budget(&self) -> bool {
        matches!(
            self,
            Self::BlockBeyondBudget { .. }
                | Self::TooMuchPolish { .. }
                | Self::TooManyReleases { .. }
                | Self::TooSmallABudget { .. }
                | Self::ChoiceTooExpensive { .. }
        )
    }
}
