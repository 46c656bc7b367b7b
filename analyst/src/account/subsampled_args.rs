//! What `conclave account --subsampled` is asked.

use clap::{Args, ValueEnum};
use conclave_privacy::accounting::{
    Adjacency, Honest, MOST_RELATIVE_SENSITIVITY, SamplingProbability, SubsampledError, SubsampledRelease,
};
use conclave_privacy::mechanism::{MechanismError, NoiseScale, Sensitivity};
use conclave_proto::error::{ErrorCode, Fault};

/// The noise's scale in lattice units that figures are computed with: fine enough that nothing shows of the lattice.
const SCALE: u64 = 1 << 49;

/// What of the budget's delta is the reserve where no other is named.
const RESERVE: f64 = 0.1;

/// Options of `--subsampled`.
#[derive(Args, Debug, Default, PartialEq)]
#[command(next_help_heading = "Releases of random samples")]
pub(crate) struct SubsampledArgs {
    /// Count blocks of releases, each of a sample that a unit of privacy is in by chance, hidden, and afresh in each release
    ///
    /// A unit is a row, or a person with all rows. Each release adds up its sample's vectors, none longer than the sensitivity, and adds noise
    /// of standard deviation S to each component. A block is charged when it is opened, as a mu and a part of a reserve of delta; its releases
    /// may then follow one by one, each chosen from all earlier answers.
    ///
    /// Sampling reads fewer rows. It saves no budget at a delta of use: for the same noise in what is estimated from the whole, noise of S/Q on
    /// all rows costs as little or less, and the sample's own scatter comes on top. The output's last line compares.
    #[arg(long, requires = "releases")]
    subsampled: bool,
    /// Probability with which a unit is in a release's sample; rounded up to a multiple of 2^-20
    #[arg(long, value_name = "Q", requires = "subsampled", conflicts_with_all = ["batch", "records"])]
    probability: Option<f64>,
    /// Units in a sample on average: with --records, the probability is their quotient
    #[arg(long, value_name = "B", requires = "subsampled", requires = "records")]
    batch: Option<f64>,
    /// Units there are, a public number
    #[arg(long, value_name = "N", requires = "subsampled", requires = "batch")]
    records: Option<f64>,
    /// Standard deviation of the noise as a multiple of the sensitivity, at least 0.667
    #[arg(long, value_name = "M", requires = "subsampled", conflicts_with_all = ["sensitivity", "noise"])]
    noise_multiplier: Option<f64>,
    /// The most that one unit's vector is long (L2), also under replacement, where the sum may move twice as far
    #[arg(long, value_name = "K", requires = "subsampled", requires = "noise")]
    sensitivity: Option<f64>,
    /// Standard deviation of the noise in each component
    #[arg(long, value_name = "S", requires = "subsampled", requires = "sensitivity")]
    noise: Option<f64>,
    /// Releases in all
    #[arg(long, value_name = "T", requires = "subsampled")]
    releases: Option<u64>,
    /// Equal blocks that the releases come in [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    blocks: Option<u64>,
    /// Numbers in a release, which a ledger counts as draws of noise [default: 1]
    #[arg(long, value_name = "COUNT", requires = "subsampled")]
    components: Option<u32>,
    /// Part of delta that is kept back for all blocks together, in equal parts [default: a tenth of delta]
    #[arg(long, value_name = "D", requires = "subsampled")]
    reserve: Option<f64>,
    /// Which data sets are neighbours [default: replace]
    #[arg(long, value_name = "WHICH", requires = "subsampled")]
    adjacency: Option<Neighbours>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Neighbours {
    /// One unit is replaced by another
    Replace,
    /// One unit is added or removed
    AddRemove,
}

impl SubsampledArgs {
    /// Whether `--subsampled` is asked for.
    ///
    /// # Errors
    /// For its options without it: where another mode is named, the parser lets them pass.
    pub(super) fn wanted(&self) -> Result<bool, Fault> {
        if !self.subsampled && *self != Self::default() {
            return Err(input("samples, noise, releases, blocks and a reserve are counted with --subsampled alone".to_owned()));
        }
        Ok(self.subsampled)
    }

    /// One release, as asked for.
    pub(super) fn release(&self) -> Result<SubsampledRelease, Fault> {
        let probability = match (self.probability, self.batch, self.records) {
            (Some(q), None, None) => q,
            (None, Some(batch), Some(records)) if batch > 0.0 && records >= batch && records.is_finite() => batch / records,
            (None, Some(batch), Some(records)) => {
                return Err(input(format!(
                    "--batch is {batch} of --records {records}: a sample has more than no unit on average, and at most all"
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
            return Err(refused(&SubsampledError::RelativeSensitivity(relative)));
        }
        let fault = |e: MechanismError| input(e.to_string());
        Ok(SubsampledRelease {
            probability: SamplingProbability::at_least(probability).map_err(|e| refused(&e))?,
            sensitivity: Sensitivity::from_units(((relative * SCALE as f64).ceil() as u64).max(1)).map_err(fault)?,
            noise: NoiseScale::from_units(SCALE).map_err(fault)?,
            honest: Honest::ALONE,
            components: self.components.unwrap_or(1),
            adjacency: match self.adjacency.unwrap_or(Neighbours::Replace) {
                Neighbours::Replace => Adjacency::Replace,
                Neighbours::AddRemove => Adjacency::AddRemove,
            },
        })
    }

    /// Releases in all, and blocks that they come in.
    pub(super) fn counts(&self) -> Result<(u64, u64), Fault> {
        let (releases, blocks) = (self.releases.unwrap_or_default(), self.blocks.unwrap_or(1));
        if releases == 0 {
            return Err(refused(&SubsampledError::Releases(releases)));
        }
        if blocks == 0 || releases % blocks != 0 {
            return Err(input(format!("--blocks is {blocks}: {releases} releases don't come in so many equal blocks")));
        }
        Ok((releases, blocks))
    }

    /// The reserve for all blocks.
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

pub(super) fn refused(error: &SubsampledError) -> Fault {
    input(error.to_string())
}

pub(super) fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked() -> SubsampledArgs {
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
        let release = asked().release().unwrap();
        assert_eq!(release.probability.parts(), 10_486);
        let other = SubsampledArgs {
            probability: None,
            batch: Some(1e3),
            records: Some(1e5),
            noise_multiplier: None,
            sensitivity: Some(3.5),
            noise: Some(7.0),
            ..asked()
        };
        assert_eq!(other.release().unwrap(), release);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let wrong = [
            (SubsampledArgs { probability: None, ..asked() }, "--probability"),
            (SubsampledArgs { probability: Some(1e-9), ..asked() }, "probability"),
            (SubsampledArgs { probability: Some(f64::NAN), ..asked() }, "probability"),
            (SubsampledArgs { probability: None, batch: Some(9.0), records: Some(8.0), ..asked() }, "--batch"),
            (SubsampledArgs { probability: None, batch: Some(0.0), records: Some(8.0), ..asked() }, "--batch"),
            (SubsampledArgs { noise_multiplier: None, ..asked() }, "--noise-multiplier"),
            (SubsampledArgs { noise_multiplier: Some(0.0), ..asked() }, "--noise-multiplier"),
            (SubsampledArgs { noise_multiplier: Some(0.66), ..asked() }, "noise"),
            (SubsampledArgs { noise_multiplier: None, sensitivity: Some(-1.0), noise: Some(1.0), ..asked() }, "--sensitivity"),
            (SubsampledArgs { releases: Some(0), ..asked() }, "releases"),
            (SubsampledArgs { blocks: Some(7), ..asked() }, "--blocks"),
            (SubsampledArgs { blocks: Some(0), ..asked() }, "--blocks"),
            (SubsampledArgs { reserve: Some(1e-6), ..asked() }, "--reserve"),
            (SubsampledArgs { reserve: Some(0.0), ..asked() }, "--reserve"),
        ];
        for (args, word) in wrong {
            let fault =
                args.release().map(|_| ()).and(args.counts().map(|_| ())).and(args.reserve(1e-6).map(|_| ())).unwrap_err();
            assert!(fault.message.contains(word), "{args:?}: {}", fault.message);
        }
    }
}
