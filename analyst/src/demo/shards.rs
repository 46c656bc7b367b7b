//! Records of a known logistic model.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use conclave_proto::error::Fault;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::truth::{INTERCEPT, OUTCOME, PREDICTORS, Predictor, Values};

/// Writes one party's shard as CSV: `rows` records, determined by the seed and the party's number.
pub(super) fn write(path: &Path, rows: u64, seed: u64, party: u64) -> Result<(), Fault> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(party);
    let mut save = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create_new(path)?);
        write!(out, "{OUTCOME}")?;
        for predictor in &PREDICTORS {
            write!(out, ",{}", predictor.name)?;
        }
        writeln!(out)?;
        for _ in 0..rows {
            let (outcome, values) = record(&mut rng);
            write!(out, "{}", u8::from(outcome))?;
            for value in values {
                write!(out, ",{value}")?;
            }
            writeln!(out)?;
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    };
    save().map_err(|e| Fault::of_file(path, "be written", &e))
}

/// Draws one record: the outcome and the predictors' values as written to the file.
fn record(rng: &mut ChaCha8Rng) -> (bool, [f64; PREDICTORS.len()]) {
    let values: [f64; PREDICTORS.len()] = std::array::from_fn(|j| PREDICTORS.get(j).map_or(0.0, |p| draw(p, rng)));
    let linear = PREDICTORS.iter().zip(values).map(|(p, value)| p.coefficient * p.column().scale(value)).sum::<f64>() + INTERCEPT;
    let probability = 1.0 / (1.0 + libm::exp(-linear));
    (rng.random::<f64>() < probability, values)
}

fn draw(predictor: &Predictor, rng: &mut ChaCha8Rng) -> f64 {
    let (min, max) = (predictor.min, predictor.max);
    match predictor.values {
        Values::Whole => rng.random_range(min as i64..=max as i64) as f64,
        // Rounded before the outcome is drawn, so that the file holds exactly the values used.
        Values::Uniform => (rng.random_range(min..max) * 100.0).round() / 100.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shards_repeat_by_seed_and_differ_by_party() {
        let folder = tempfile::tempdir().unwrap();
        let shard = |name: &str, seed, party| {
            let path = folder.path().join(name);
            write(&path, 50, seed, party).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        let first = shard("a", 1, 0);
        assert_eq!(first, shard("b", 1, 0));
        assert_ne!(first, shard("c", 1, 1));
        assert_ne!(first, shard("d", 2, 0));
        assert_eq!(first.lines().count(), 51);
        assert_eq!(first.lines().next(), Some("readmitted,treated,dose,age"));
    }

    #[test]
    fn values_keep_within_their_bounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut ones = 0_u32;
        for _ in 0..2000 {
            let (outcome, values) = record(&mut rng);
            ones += u32::from(outcome);
            for (predictor, value) in PREDICTORS.iter().zip(values) {
                assert!((predictor.min..=predictor.max).contains(&value));
            }
        }
        // The mean probability of the design is near 0.43.
        assert!((700..1050).contains(&ones), "{ones}");
    }
}
