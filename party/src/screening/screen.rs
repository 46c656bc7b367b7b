//! The entry points of screening: single columns, and a job's declarations about them.

use conclave_common::job::JobSpec;

use super::concern::Concern;
use super::records::Records;
use super::{bounds, columns, design, outcome};
use conclave_vault::data::{BindError, Binding, DataError, Kind};

/// Screens the columns of a shard, or only those used by a job.
///
/// # Errors
/// Fails if the shard is streamed and can't be read.
pub fn screen_columns(shard: &dyn Records, job: Option<&JobSpec>) -> Result<Vec<Concern>, DataError> {
    let used = job.map(|spec| spec.model.columns());
    let names = shard.names().iter().filter(|name| used.as_ref().is_none_or(|used| used.contains(&name.as_str())));
    let found = names.map(|name| columns::concerns(shard, name)).collect::<Result<Vec<_>, _>>()?;
    let found = found.concat().into_iter();
    Ok(found.chain(shard.long_field().map(joined_lines)).collect())
}

/// Reports a field of very many lines: two marks that each begin a field join all lines between them.
fn joined_lines(line: u64) -> Concern {
    let found = format!("a field that begins at line {line} or behind it, in the same row, has more than 100 lines");
    Concern::new(
        found,
        "if a quotation mark is a character as any other in this file, write quotes = false under [data]: the rows between two \
         marks are read as one",
    )
}

/// Screens a job's declarations about a shard, and the records under its model.
///
/// # Errors
/// As [`screen_columns`].
pub fn screen_job(shard: &dyn Records, spec: &JobSpec) -> Result<Vec<Concern>, DataError> {
    let binding = match Binding::of_kinds(&|name| shard.kind(name), spec) {
        Ok(binding) => binding,
        Err(e) => {
            if let BindError::Texts(name) = &e
                && let Some(Kind::Texts(words)) = shard.kind(name)
                && let Some(recoding) = outcome::yes_no(spec, name, words)
            {
                return Ok(vec![recoding]);
            }
            let remedy = "inform the analyst: columns and levels of texts are public";
            return Ok(vec![Concern::grave(format!("the data {e}"), remedy)]);
        }
    };
    let mut found = bounds::concerns(shard, spec)?;
    found.extend(design::concerns(shard, spec, &binding)?);
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::data::{BadRows, DataConfig, Shard};
    use conclave_vault::testing::{MEAN_TOML, data, write};

    fn shard(csv: &str) -> Shard {
        let folder = tempfile::tempdir().unwrap();
        let config = DataConfig { text: vec!["ward".into()], ..data(write(folder.path(), "a.csv", csv), BadRows::Drop) };
        let config =
            if csv.lines().next().unwrap().contains("ward") { config } else { DataConfig { text: Vec::new(), ..config } };
        Shard::load(&config, None).unwrap()
    }

    fn logistic() -> JobSpec {
        let text = "name = \"x\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"sick\"\npredictors = [\"age\", \"bmi\", \"ward\"]\n\
                    [columns]\nsick = { binary = true }\nage = { min = 18, max = 90 }\nbmi = { min = 15, max = 60 }\nward = { levels = [\"East\", \"West\"] }\n\
                    [prior]\ndefault = \"normal(0, 2.5)\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n[sampler]\nchains = 1\ndraws = 10\nwarmup = 1\n";
        JobSpec::parse(text).unwrap()
    }

    /// Makes a simulated shard: unrelated outcomes, ages, indices and wards.
    fn csv(rows: usize, row: impl Fn(usize, [f64; 3]) -> String) -> String {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let rows: String = (0..rows).map(|at| row(at, [uniform(), uniform(), uniform()])).collect();
        format!("sick,age,bmi,ward\n{rows}")
    }

    fn sound(at: usize, u: [f64; 3]) -> String {
        let (sick, ward) = (u8::from(u[0] < 0.3), ["East", "West"][at % 2]);
        format!("{sick},{:.0},{:.1},{ward}\n", 20.0 + 68.0 * u[1], 18.0 + 30.0 * u[2])
    }

    fn found(csv: &str) -> Vec<(bool, String)> {
        let (shard, spec) = (shard(csv), logistic());
        let all = screen_columns(&shard, Some(&spec)).unwrap().into_iter().chain(screen_job(&shard, &spec).unwrap());
        all.map(|concern| (concern.grave, concern.found)).collect()
    }

    #[track_caller]
    fn names(csv: &str, parts: &[&str]) {
        let found = found(csv);
        for part in parts {
            assert!(found.iter().any(|(_, what)| what.contains(part)), "{part:?} is not in {found:?}");
        }
        assert_eq!(found.len(), parts.len(), "{found:?}");
    }

    #[test]
    fn sound_records_raise_no_concern() {
        names(&csv(2000, sound), &[]);
    }

    #[test]
    fn each_silent_mistake_is_named() {
        let with = |change: fn(usize, [f64; 3], String) -> String| csv(2000, |at, u| change(at, u, sound(at, u)));
        let spike = |at, _, row: String| if at % 40 == 0 { row.replacen(row.split(',').nth(1).unwrap(), "-99", 1) } else { row };
        names(&with(spike), &["2.5% of age are -99, far below all others", "2.5% of age lie outside 18 to 90"]);
        let coded = |_, _, row: String| if row.starts_with('1') { row.replacen('1', "2", 1) } else { row };
        names(&with(coded), &["of sick are neither 0 nor 1"]);
        let cased = |_, _, row: String| row.replace("East", "EAST");
        names(
            &with(cased),
            &[
                "1000 of 2000 rows have a ward that the job does not list, some of them differing from \"East\" only in case or \
                 spaces",
                "ward[West] is the same for the job",
            ],
        );
        let constant = |_, _, row: String| row.replace("West", "East");
        names(&with(constant), &["ward is the same in every row", "no usable record has ward[West]"]);
        let collinear = |_, _, row: String| {
            let fields: Vec<&str> = row.trim_end().split(',').collect();
            format!("{},{},{:.4},{}\n", fields[0], fields[1], 15.0 + 0.4 * fields[1].parse::<f64>().unwrap(), fields[3])
        };
        names(&with(collinear), &["bmi is determined by age"]);
        let separated = |_, u: [f64; 3], row: String| format!("{}{}", u8::from(u[1] > 0.5), &row[1..]);
        names(&with(separated), &["age alone determines sick"]);
        let within = |_, _, row: String| if row.contains("West") { format!("0{}", &row[1..]) } else { row };
        names(&with(within), &["ward[West] determines sick"]);
        let jointly = |_, u: [f64; 3], row: String| format!("{}{}", u8::from(u[1] + u[2] > 1.0), &row[1..]);
        names(&csv(300, |at, u| jointly(at, u, sound(at, u))), &["the predictors together determine every sick"]);
        let elsewhere = |_, _, row: String| row.replace("East", "north").replace("West", "south");
        let all = found(&with(elsewhere));
        assert!(all.iter().any(|(grave, what)| *grave && what.contains("none of 2000 rows contributes to the job")), "{all:?}");
        let times = |at: usize, _, row: String| {
            row.replacen(row.split(',').nth(1).unwrap(), &format!("{}", 1_600_000_000 + 7919 * at), 1)
        };
        names(&with(times), &["age looks like a time", "100.0% of age lie outside", "age is the same for the job"]);
        let days =
            |at: usize, _, row: String| row.replacen(row.split(',').nth(1).unwrap(), &format!("{}", 20_200_101 + at % 28), 1);
        names(&with(days), &["age looks like a date", "100.0% of age lie outside", "age is the same for the job"]);
    }

    #[test]
    fn bounds_are_compared_with_the_columns() {
        let spec = JobSpec::parse(MEAN_TOML).unwrap();
        let found = |csv: &str| {
            let found = screen_job(&shard(csv), &spec).unwrap();
            found.into_iter().map(|concern| (concern.grave, concern.found)).collect::<Vec<_>>()
        };
        assert_eq!(found("height\n150\n170\n181\n"), []);
        assert_eq!(
            found("height\n150\n170\n1.81\n240\n"),
            [(true, "50.0% of height lie outside 100 to 200 and are clamped".into())]
        );
        assert_eq!(
            found("height\n150\n170\n1.81\n140\n155\n160\n"),
            [(false, "16.7% of height lie outside 100 to 200 and are clamped".into())]
        );
        assert_eq!(found("height\n170\n170.5\n"), [(false, "height uses less than 5% of the range 100 to 200".into())]);
        assert!(found("height\n100\n200\n")[0].1.contains("smallest and largest"));
        let (grave, what) = found("weight\n70\n").remove(0);
        assert!(grave && what.contains("no column \"height\""), "{what}");
    }
}
