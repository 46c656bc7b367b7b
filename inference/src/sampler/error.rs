//! The sampler's errors.

use conclave_common::query::QueryError;
use conclave_privacy::accounting::{AccountingError, SubsampledError};
use conclave_privacy::mechanism::{MechanismError, QueryKind};

/// The sampler's errors.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// Masked answers whose masks do not belong to one roster and message.
    #[error("the masks of the parties' answers do not cancel: a party answered a different query or used another key")]
    Masks,
    /// The number of record counts differs from the number of parties.
    #[error("{got} record counts for {expected} parties")]
    Records {
        /// Number of parties.
        expected: usize,
        /// Number of counts.
        got: usize,
    },
    /// A party's record count isn't public and the job makes no guess.
    #[error(
        "{party} does not publish its record count: set records_guess under [sampler], a guess of one party's number of records"
    )]
    UnknownCount {
        /// The party.
        party: String,
    },
    /// A released statistic needs the number of records, and a record as the unit of privacy.
    #[error(
        "{party} protects a different unit of privacy (\"{unit}\"): {algorithm} needs rows under replacement; use algorithm = \"penalty\", or leave the party out"
    )]
    Protects {
        /// The job's algorithm.
        algorithm: &'static str,
        /// The party.
        party: String,
        /// Its unit of privacy.
        unit: String,
    },
    /// The model cannot draw whole records, as augmentation needs.
    #[error("the model `{0}` has no law of whole records, which augmentation needs: use algorithm = \"penalty\"")]
    NoRecordLaw(&'static str),
    /// More records than augmentation is sensible for.
    #[error(
        "the parties hold {records} records, and augmentation imputes each of them in every sweep: above {most} use another algorithm, or \
         set force = true under [sampler]"
    )]
    ManyRecords {
        /// Number of records of all parties.
        records: u64,
        /// Largest number without `force`.
        most: u64,
    },
    /// The model is not an exponential family.
    #[error("the model is not an exponential family with a bounded statistic: use algorithm = \"penalty\"")]
    NoFamily,
    /// The model has no gradients to release.
    #[error("the model has no score to release: use algorithm = \"penalty\"")]
    NoScores,
    /// The share of the budget for this kind is too small even for the noisiest release.
    #[error(
        "the budget is too small: its share for one {kind} is below the least charge of a release of that many numbers; raise epsilon, lower \
         privacy.noise_multiplier if the job states one, or leave out predictors"
    )]
    TooSmallABudget {
        /// Kind of the query.
        kind: QueryKind,
    },
    /// The job demands more noise in each gradient than any chain can use.
    #[error(
        "privacy.noise_multiplier = {multiplier} demands more noise in a gradient than chains with steps of {step} posterior sds can use: lower it, \
         or lower sampler.step if the job states one"
    )]
    TooMuchNoise {
        /// Least ratio of noise to sensitivity.
        multiplier: f64,
        /// Length of the shortest step that was tried, in posterior sds.
        step: f64,
    },
    /// No correction exists for this variance of normal noise.
    #[error("there is no correction for normal noise of variance {0}: sampler.correction must be 2, 1.5 or 1")]
    NoCorrection(f64),
    /// A ratio's random variance exceeds the room of Barker's test.
    #[error(
        "the parties' noise and sampling give a log ratio a variance of {noise:.3} and {sampling:.3}, but Barker's test with correction = {correction} \
         allows {correction} in total: raise sampler.batch, shorten the step (sampler.proposal.radius) or lower privacy.noise_sd"
    )]
    TooRandomARatio {
        /// Variance of the parties' noise, as the receiver scales it.
        noise: f64,
        /// Largest assumed sampling variance.
        sampling: f64,
        /// Largest total variance.
        correction: f64,
    },
    /// The noise of subsampled releases hides too little of one party's unit of privacy.
    #[error(
        "{party} protects the unit \"{unit}\", which moves a subsampled log ratio by {relative:.2} times its noise, and a sample hides almost \
         nothing above 1.5: lower privacy.clip by that factor, raise sampler.batch and leave privacy.noise_sd at \"auto\", or leave sampler.batch out"
    )]
    TooLittleNoise {
        /// The party.
        party: String,
        /// Its unit of privacy.
        unit: String,
        /// Ratio of a unit's largest contribution to the noise.
        relative: f64,
    },
    /// The remaining budget after the search is too small for a block of subsampled ratios.
    #[error(
        "{party} charges a block of {releases} subsampled releases in advance, which costs {budgets:.3} times the remaining budget: {remedy}"
    )]
    BlockBeyondBudget {
        /// The party.
        party: String,
        /// Number of releases of a block.
        releases: u64,
        /// Price of the block over the remaining budget.
        budgets: f64,
        /// Remedy.
        remedy: &'static str,
    },
    /// The final penalty sweeps leave no budget for the steps before them.
    #[error(
        "sampler.polish = {sweeps} sweeps of each chain cost {budgets:.2} times the budget that remains after the search, and the steps before them \
         cost more: use fewer sweeps or chains, raise epsilon, or use algorithm = \"penalty\" or \"hmc\""
    )]
    TooMuchPolish {
        /// Number of sweeps of each chain.
        sweeps: u64,
        /// Their price over the remaining budget.
        budgets: f64,
    },
    /// Sampling adds more noise to a gradient than a step can use.
    #[error(
        "sampling {} of the records adds a variance of {variance:.1} to a gradient, in posterior sds, which exceeds the limit for a step of {}: \
         raise sampler.batch, or lower sampler.step",
        three_digits(*batch),
        three_digits(*step)
    )]
    SamplesTooSmall {
        /// Probability that a unit is in a sample.
        batch: f64,
        /// Step eta.
        step: f64,
        /// Mean sampling variance, in units of one over the posterior's.
        variance: f64,
    },
    /// The budget is too small for the blocks of the planned releases.
    #[error(
        "the budget is too small for the blocks of {releases} subsampled releases of {} of the records, at steps of {} posterior sds: lower \
         sampler.draws, sampler.warmup or sampler.chains, lower sampler.step if the job states one, raise epsilon, or leave sampler.batch out \
         (releases of all records cost no more)",
        three_digits(*batch),
        three_digits(*step)
    )]
    TooManyReleases {
        /// Number of releases of all chains together.
        releases: u64,
        /// Probability that a unit is in a sample.
        batch: f64,
        /// Step eta.
        step: f64,
    },
    /// A block of subsampled releases that can't be priced.
    #[error(transparent)]
    Subsampled(#[from] SubsampledError),
    /// Neither metadata nor a release determines the number of usable records.
    #[error(
        "without an intercept the number of usable records is not released, and sigma is unknown: give the model an intercept or its sd, or use algorithm = \"penalty\""
    )]
    NoCount,
    /// The posterior is nowhere positive.
    #[error("the posterior is nowhere positive within the parameter box: widen the box, or check the priors")]
    NoPlace,
    /// The budget is too small for a choice among candidates that are spread as widely as the posterior.
    #[error(
        "one draw costs mu = {mu:.3}, because neighbouring records move the log probabilities of the candidates by a range of {range:.3}, but only \
         {left:.3} remains: raise epsilon, give the likelihood a lower power under [model], use fewer candidates, lower \
         privacy.noise_multiplier if the job states one, or use algorithm = \"hmc\""
    )]
    ChoiceTooExpensive {
        /// Range, in log-likelihood units.
        range: f64,
        /// Cost of a choice.
        mu: f64,
        /// Remaining budget.
        left: f64,
    },
    /// The query does not belong to the job.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A sum over the records could leave the lattice.
    #[error(
        "{party} holds more records than a sum of this statistic can: narrow the columns' bounds, or move them closer to 0 relative to their width"
    )]
    TooManyRecords {
        /// The party.
        party: String,
    },
    /// Releases that do not fit the pending round.
    #[error("the releases do not fit the round: {0}")]
    Shape(&'static str),
    /// An algorithm that is not driven by stochastic gradients.
    #[error("algorithm = \"{}\" is not driven by stochastic gradients", .0.as_str())]
    NotDriven(conclave_common::job::Algorithm),
    /// No round is pending.
    #[error("no round is waiting for releases")]
    NoRound,
    /// A noise scale or sensitivity out of range.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// An invalid budget.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}

impl SamplerError {
    /// Returns true if a larger budget would solve the problem.
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

/// Returns a number rounded to three significant digits, as a reader of a refusal needs it.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_three_digits() {
        let refused = SamplerError::TooManyReleases { releases: 26_049, batch: 0.006_196_022, step: 0.002_699_999_9 }.to_string();
        assert!(refused.contains("releases of 0.0062 of the records, at steps of 0.0027 posterior sds"), "{refused}");
    }
}
