//! Compares a job's declarations about single columns with their content. Bounds are public and unprotected: bounds taken from
//! the data reveal the value of a record, whatever the noise.

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;

use super::columns::Ends;
use super::concern::Concern;
use super::outcome;
use super::outcome::share;
use super::records::{Records, unlisted};
use conclave_vault::data::{DataError, Kind};

/// Share of clamped values in a column from which a warning is shown.
const MANY_CLAMPED: f64 = 0.01;
/// Share of clamped values of an outcome above which a job can't use the records: what remains of the outcome is mostly its bounds.
const MOST_CLAMPED: f64 = 0.2;
/// Share of a column's declared range below which the data use too little of it: the job is then more expensive than necessary.
const LITTLE_USED: f64 = 0.05;

const ASK_FOR_OUTCOME: &str = "ask the analyst for bounds of the outcome that fit: at most 20% of it may be clamped";
const ASK: &str = "ask the analyst for bounds that fit; clamped or omitted values are lost to the results";

pub(super) fn concerns(shard: &dyn Records, spec: &JobSpec) -> Result<Vec<Concern>, DataError> {
    let mut found = Vec::new();
    for name in spec.model.columns() {
        let (Some(declared), Some(Kind::Numbers)) = (spec.columns.get(name), shard.kind(name)) else { continue };
        let miscoded = outcome::concern(shard, spec, name)?;
        match *declared {
            ColumnSpec::Numeric { min, max } => {
                found.extend(miscoded);
                found.extend(numeric(shard, name, (min, max), name == spec.model.outcome())?);
            }
            ColumnSpec::Binary if miscoded.is_some() => found.extend(miscoded),
            ColumnSpec::Binary => {
                let odd = share(shard, name, |v| !v.is_nan() && v != 0.0 && v != 1.0)?;
                if odd > 0.0 {
                    let what = format!("{:.1}% of {name} are neither 0 nor 1; values of at least 0.5 count as 1", 100.0 * odd);
                    found.push(Concern::new(what, "check whether the column has the meaning that the job assumes"));
                }
            }
            ColumnSpec::Levels(_) => {}
        }
    }
    found.extend(unlisted(shard, spec)?.into_iter().map(|(name, rows)| levels(shard, spec, &name, rows)));
    Ok(found)
}

fn numeric(shard: &dyn Records, name: &str, (min, max): (f64, f64), is_outcome: bool) -> Result<Vec<Concern>, DataError> {
    let mut found = Vec::new();
    let ends = Ends::of(shard, name)?;
    let (least, greatest) = (ends.low.value, ends.high.value);
    let clamped = share(shard, name, |v| v < min || v > max)?;
    if clamped >= MANY_CLAMPED {
        let what = format!("{:.1}% of {name} lie outside {min} to {max} and are clamped", 100.0 * clamped);
        found.push(match is_outcome && clamped > MOST_CLAMPED {
            true => Concern::grave(what, ASK_FOR_OUTCOME),
            false => Concern::new(what, ASK),
        });
    } else if greatest - least < LITTLE_USED * (max - min) {
        let what = format!("{name} uses less than {:.0}% of the range {min} to {max}", 100.0 * LITTLE_USED);
        found
            .push(Concern::new(what, "ask the analyst whether narrower bounds are public knowledge: noise grows with the range"));
    }
    if (min, max) == (least, greatest) {
        let what = format!("the bounds of {name} are the smallest and largest values of your own data");
        let remedy = "ask the analyst for their origin; bounds are public, and bounds taken from the data reveal the values \
                      of records, whatever the noise";
        found.push(Concern::new(what, remedy));
    }
    Ok(found)
}

/// Describes a column in which `rows` have no listed level. Only the job's own levels, which are public, are named, never those
/// of a row.
fn levels(shard: &dyn Records, spec: &JobSpec, name: &str, rows: u64) -> Concern {
    let mut found = format!("{rows} of {} rows have a {name} that the job does not list", shard.file_rows());
    let (Some(ColumnSpec::Levels(levels)), Some(Kind::Texts(words))) = (spec.columns.get(name), shard.kind(name)) else {
        return Concern::new(found, ASK);
    };
    let folded = |word: &str| word.split_whitespace().collect::<String>().to_lowercase();
    let near = |word: &String| levels.iter().find(|level| *level != word && folded(level) == folded(word));
    let unlisted = |word: &&String| !levels.contains(word);
    let mut same: Vec<&String> = words.iter().filter(unlisted).filter_map(near).collect();
    same.sort_unstable();
    same.dedup();
    let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
    let denotes = |word: &String| levels.iter().find(|level| number(level).is_some_and(|level| number(word) == Some(level)));
    if let Some(level) = words.iter().filter(unlisted).find_map(denotes) {
        found.push_str(&format!(", some of them being other spellings of the number {level:?}, which the job lists as a text"));
    }
    if same.is_empty() {
        return Concern::new(found, ASK);
    }
    let named: Vec<String> = same.iter().map(|level| format!("{level:?}")).collect();
    found.push_str(&format!(", some of them differing from {} only in case or spaces", named.join(", ")));
    Concern::new(found, "spell the levels in the file as the job does, or ask the analyst to spell them as the file does")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::data::{BadRows, Shard};
    use conclave_vault::testing::{MEAN_TOML, data, write};

    #[test]
    fn bounds_that_are_the_shards_own_extremes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", "height,sick\n151.5,0\n160,1\n197.25,0\n");
        let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
        let job = |min: f64, max: f64| {
            JobSpec::parse(&MEAN_TOML.replace("min = 100, max = 200", &format!("min = {min:?}, max = {max:?}"))).unwrap()
        };
        let read_off =
            |min, max| concerns(&shard, &job(min, max)).unwrap().iter().any(|c| c.found.contains("smallest and largest"));
        assert!(read_off(151.5, 197.25));
        for (min, max) in [(100.0, 200.0), (151.5, 200.0), (100.0, 197.25)] {
            assert!(!read_off(min, max));
        }
    }
}
