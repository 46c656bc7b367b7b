//! Options of `conclave account --subsampled`.

use clap::{Args, ValueEnum};
use conclave_privacy::accounting::{
    Adjacency, Honest, MOST_RELATIVE_SENSITIVITY, SamplingProbability, SubsampledError, SubsampledRelease,
};
use conclave_privacy::mechanism::{MechanismError, NoiseScale, Sensitivity};
use conclave_proto::error::Fault;
use serde::Deserialize;

use crate::faults::input;

/// Noise scale of the computation in lattice units: fine enough to make lattice effects negligible.
const SCALE: u64 = 1 << 49;

/// Default share of delta held as the reserve.
const RESERVE: f64 = 0.1;

/// Options of `--subsampled`.
#[derive(Args, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Subsampled releases")]
pub(crate) struct SubsampledArgs {
    /// Account for blocks of subsampled releases: each release draws a fresh secret random sample of the units
    ///
    /// A unit is a row, or a person with all of that person's rows. Each release sums the vectors of its sample, none longer than
    /// the sensitivity, and adds noise of standard deviation S to each component. Opening a block charges a mu and a part of the
    /// reserve of delta; its releases may then follow one by one, each chosen from all earlier answers.
    ///
    /// Sampling reads fewer rows. It saves no budget at a practical delta: for the same noise in the estimate for the whole,
    /// noise of S/Q on all rows costs as little or less, and sampling adds its own variance. The last line of the output compares
    /// the two.
    #[arg(long, requires = "releases")]
    pub(super) subsampled: bool,
    /// Sampling rate: the probability that a unit is in a release's sample; rounded up to a multiple of 2^-20
    #[arg(long, value_name = "Q", requires = "subsampled", conflicts_with_all = ["batch", "records"])]
    pub(super) probability: Option<f64>,
    /// Mean number of units in a sample: divided by --records, it gives the sampling rate
    #[arg(long, value_name = "B", requires = "tests", requires = "records")]
    pub(super) batch: Option<f64>,
    /// Number of units, which is public
    #[arg(long, value_name = "N", requires = "tests", requires = "batch")]
    pub(super) records: Option<f64>,
    /// Standard deviation of the noise as a multiple of the sensitivity, at least 0.667
    #[arg(long, value_name = "M", requires = "subsampled", conflicts_with_all = ["sensitivity", "noise"])]
    pub(super) noise_multiplier: Option<f64>,
    /// Largest length (L2) of one unit's vector; under replacement the sum may change by twice this length
    #[arg(long, value_name = "K", requires = "tests", requires = "noise")]
    pub(super) sensitivity: Option<f64>,
    /// Standard deviation of the noise in each component
    #[arg(long, value_name = "S", requires = "tests", requires = "sensitivity")]
    pub(super) noise: Option<f64>,
    /// Total number of releases
    #[arg(long, value_name = "T", requires = "tests")]
    pub(super) releases: Option<u64>,
    /// Number of equal blocks that hold the releases [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    pub(super) blocks: Option<u64>,
    /// Components of a release, each counted by ledgers as one draw of noise [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    pub(super) components: Option<u32>,
    /// Part of delta held in reserve for all blocks, shared equally [default: a tenth of delta]
    #[arg(long, value_name = "D", requires = "subsampled")]
    pub(super) reserve: Option<f64>,
    /// Neighbouring relation between data sets [default: replace]
    #[arg(long, value_name = "RELATION", requires = "subsampled")]
    pub(super) adjacency: Option<Neighbours>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Neighbours {
    /// Replace one unit by another
    Replace,
    /// Add or remove one unit
    AddRemove,
}

impl SubsampledArgs {
    /// Returns true if `--subsampled` is given.
    ///
    /// # Errors
    /// Fails if its options are given without it; the parser accepts them beside another mode.
    pub(super) fn is_requested(&self) -> Result<bool, Fault> {
        if !self.subsampled && *self != Self::default() {
            return Err(input("options for samples, noise, releases, blocks and the reserve require --subsampled".to_owned()));
        }
        Ok(self.subsampled)
    }

    /// Returns true if only options are given that describe the tests of a paper.
    pub(super) fn describes_tests(&self) -> bool {
        let Self { subsampled, probability, noise_multiplier, blocks, components, reserve, adjacency, .. } = self;
        !subsampled
            && probability.or(*noise_multiplier).or(*reserve).is_none()
            && blocks.is_none()
            && components.is_none()
            && adjacency.is_none()
    }

    /// Returns the release that the options describe.
    pub(super) fn release(&self) -> Result<SubsampledRelease, Fault> {
        let probability = match (self.probability, self.batch, self.records) {
            (Some(q), None, None) => q,
            (None, Some(batch), Some(records)) if batch > 0.0 && records >= batch && records.is_finite() => batch / records,
            (None, Some(batch), Some(records)) => {
                return Err(input(format!(
                    "--batch is {batch} of --records {records}: the mean sample size must be above 0 and at most --records"
                )));
            }
            _ => return Err(input("--subsampled needs --probability, or --batch and --records".to_owned())),
        };
        let relative = match (self.noise_multiplier, self.sensitivity, self.noise) {
            (Some(multiplier), None, None) => positive("--noise-multiplier", multiplier)?.recip(),
            (None, Some(most), Some(noise)) => positive("--sensitivity", most)? / positive("--noise", noise)?,
            _ => return Err(input("--subsampled needs --noise-multiplier, or --sensitivity and --noise".to_owned())),
        };
        if relative > MOST_RELATIVE_SENSITIVITY {
            return Err(fault(&SubsampledError::RelativeSensitivity(relative)));
        }
        let mechanism_fault = |e: MechanismError| input(e.to_string());
        Ok(SubsampledRelease {
            probability: SamplingProbability::at_least(probability).map_err(|e| fault(&e))?,
            sensitivity: Sensitivity::from_units(((relative * SCALE as f64).ceil() as u64).max(1)).map_err(mechanism_fault)?,
            noise: NoiseScale::from_units(SCALE).map_err(mechanism_fault)?,
            honest: Honest::ALONE,
            components: self.components.unwrap_or(1),
            adjacency: match self.adjacency.unwrap_or(Neighbours::Replace) {
                Neighbours::Replace => Adjacency::Replace,
                Neighbours::AddRemove => Adjacency::AddRemove,
            },
        })
    }

    /// Returns the numbers of releases and of blocks.
    pub(super) fn counts(&self) -> Result<(u64, u64), Fault> {
        let (releases, blocks) = (self.releases.unwrap_or_default(), self.blocks.unwrap_or(1));
        if releases == 0 {
            return Err(fault(&SubsampledError::Releases(releases)));
        }
        if blocks == 0 || releases % blocks != 0 {
            return Err(input(format!("--blocks is {blocks}: {releases} releases can't be divided into {blocks} equal blocks")));
        }
        Ok((releases, blocks))
    }

    pub(super) fn reserve(&self, delta: f64) -> Result<f64, Fault> {
        let reserve = self.reserve.unwrap_or(RESERVE * delta);
        if reserve > 0.0 && reserve < delta {
            Ok(reserve)
        } else {
            Err(input(format!("--reserve is {reserve}: give a number above 0 and below --delta, {delta}")))
        }
    }
}

fn positive(option: &str, value: f64) -> Result<f64, Fault> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(input(format!("{option} is {value}: give a number above 0"))) }
}

pub(super) fn fault(error: &SubsampledError) -> Fault {
    input(error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options() -> SubsampledArgs {
        SubsampledArgs {
            subsampled: true,
            probability: Some(0.01),
            noise_multiplier: Some(2.0),
            releases: Some(500),
            ..SubsampledArgs::default()
        }
    }

    #[test]
    fn both_ways_of_saying_a_release_are_one() {
        let release = options().release().unwrap();
        assert_eq!(release.probability.parts(), 10_486);
        let other = SubsampledArgs {
            probability: None,
            batch: Some(1e3),
            records: Some(1e5),
            noise_multiplier: None,
            sensitivity: Some(3.5),
            noise: Some(7.0),
            ..options()
        };
        assert_eq!(other.release().unwrap(), release);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let wrong = [
            (SubsampledArgs { probability: None, ..options() }, "--probability"),
            (SubsampledArgs { probability: Some(1e-9), ..options() }, "probability"),
            (SubsampledArgs { probability: Some(f64::NAN), ..options() }, "probability"),
            (SubsampledArgs { probability: None, batch: Some(9.0), records: Some(8.0), ..options() }, "--batch"),
            (SubsampledArgs { probability: None, batch: Some(0.0), records: Some(8.0), ..options() }, "--batch"),
            (SubsampledArgs { noise_multiplier: None, ..options() }, "--noise-multiplier"),
            (SubsampledArgs { noise_multiplier: Some(0.0), ..options() }, "--noise-multiplier"),
            (SubsampledArgs { noise_multiplier: Some(0.66), ..options() }, "noise"),
            (SubsampledArgs { noise_multiplier: None, sensitivity: Some(-1.0), noise: Some(1.0), ..options() }, "--sensitivity"),
            (SubsampledArgs { releases: Some(0), ..options() }, "releases"),
            (SubsampledArgs { blocks: Some(7), ..options() }, "--blocks"),
            (SubsampledArgs { blocks: Some(0), ..options() }, "--blocks"),
            (SubsampledArgs { reserve: Some(1e-6), ..options() }, "--reserve"),
            (SubsampledArgs { reserve: Some(0.0), ..options() }, "--reserve"),
        ];
        for (args, word) in wrong {
            let fault =
                args.release().map(|_| ()).and(args.counts().map(|_| ())).and(args.reserve(1e-6).map(|_| ())).unwrap_err();
            assert!(fault.message.contains(word), "{args:?}: {}", fault.message);
        }
    }
}
