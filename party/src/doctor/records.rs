//! The records and what jobs declare about them. What is found about values is for the owner alone.

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;

use super::finding::Finding;
use crate::config::{BadRows, DataConfig, PartyConfig};
use crate::data::{Binding, DataError, Kind, Shard, unlisted};
use crate::owner::{JobView, State, extremes, jobs, read_off};

/// Clamped values of more than this share of a column earn a warning.
const MANY_CLAMPED: f64 = 0.01;
/// Data that use less than this share of a column's declared range make the job dearer than it need be.
const LITTLE_USED: f64 = 0.05;

pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    let shard = match Shard::load(&config.data, config.policy.columns.as_deref()) {
        Ok(shard) => shard,
        Err(e) => return vec![unusable(config, &e), Finding::skipped("bounds", "the records can't be read")],
    };
    let mut findings = vec![rows(&shard), columns(config, &shard)];
    findings.extend(bounds(config, &shard));
    findings
}

fn unusable(config: &PartyConfig, error: &DataError) -> Finding {
    let mut found = error.to_string();
    let remedy = match error {
        DataError::BadValue { .. } => {
            // How many there are decides whether the file is to be mended or the rows are to stay as they are.
            let all = DataConfig { bad_rows: BadRows::Drop, ..config.data.clone() };
            if let Ok(shard) = Shard::load(&all, config.policy.columns.as_deref()) {
                found = format!("{found}. In all {} of {} rows are so", shard.inert(), shard.file_rows());
            }
            "mend the file, or write bad_rows = \"drop\" under [data]"
        }
        DataError::UnknownColumn { .. } => "`policy.columns`, `data.text` and `data.person` must name columns of the file",
        DataError::DuplicateColumn { .. } => "give every column of the file a name of its own",
        DataError::Unreadable { .. } | DataError::Empty { .. } => {
            "`data.path` must name the file of records, readable by the party's user"
        }
    };
    Finding::fail("data", found, remedy).private()
}

fn rows(shard: &Shard) -> Finding {
    const CODE: &str = "data";
    let (rows, inert, beyond) = (shard.file_rows(), shard.inert(), shard.beyond_limit());
    let mut found = format!("{}: {rows} rows", shard.file().display());
    if let Some(persons) = shard.persons() {
        found.push_str(&format!(" of {} persons", persons.count()));
    }
    if beyond > 0 {
        found.push_str(&format!("; {beyond} are beyond max_records_per_person and left out"));
    }
    if inert == 0 {
        return Finding::ok(CODE, found).private();
    }
    let found = format!("{found}; {inert} bad ones count and add nothing");
    Finding::warn(CODE, found, "look whether a column came in wrong: rows that add nothing bend the result").private()
}

fn columns(config: &PartyConfig, shard: &Shard) -> Finding {
    let kind = |name: &String| match shard.kind(name) {
        Some(Kind::Texts(_)) => format!("{name} (texts)"),
        _ => name.clone(),
    };
    let named = shard.names().iter().map(kind).collect::<Vec<_>>().join(", ");
    if config.policy.columns.is_none() {
        let found = format!("jobs may use every column of the file: {named}");
        return Finding::warn(
            "columns",
            found,
            "name those that jobs may use under [policy] columns; the others are then never read",
        );
    }
    Finding::ok("columns", format!("jobs may use {named}; all are there"))
}

/// The bounds that jobs declare, for jobs that are about to use the records.
fn bounds(config: &PartyConfig, shard: &Shard) -> Vec<Finding> {
    const CODE: &str = "bounds";
    let live = |job: &JobView| matches!(job.state(), State::Awaiting | State::Approved | State::Running);
    let jobs = match config.ledger.exists().then(|| jobs(&config.ledger)) {
        Some(Ok(jobs)) => jobs,
        Some(Err(e)) => return vec![Finding::skipped(CODE, format!("the list of jobs can't be read: {e}"))],
        None => return vec![Finding::skipped(CODE, "no job was asked of this party yet")],
    };
    let mut findings = Vec::new();
    let mut looked_at = 0;
    for job in jobs.iter().filter(|job| live(job)) {
        let short: String = job.request.job.chars().take(8).collect();
        let Some(spec) = &job.spec else {
            findings.push(Finding::warn(
                CODE,
                format!("job {short} can't be read by this version"),
                "reject it, or update this party",
            ));
            continue;
        };
        looked_at += 1;
        let flaws = match flaws(shard, spec) {
            Ok(flaws) => flaws,
            Err(e) => return vec![Finding::fail(CODE, e.to_string(), "look at the file of records").private()],
        };
        findings.extend(flaws.into_iter().map(|(fatal, what, remedy)| {
            let found = format!("job {short} {:?}: {what}", spec.name);
            if fatal { Finding::fail(CODE, found, remedy) } else { Finding::warn(CODE, found, remedy) }.private()
        }));
    }
    if findings.is_empty() {
        findings.push(match looked_at {
            0 => Finding::skipped(CODE, "no job awaits a decision or runs"),
            n => Finding::ok(CODE, format!("the bounds of {n} jobs suit the kinds and ranges of their columns")).private(),
        });
    }
    findings
}

/// What does not fit: whether it stops the job, what it is, what to do.
fn flaws(shard: &Shard, spec: &JobSpec) -> Result<Vec<(bool, String, &'static str)>, DataError> {
    const ASK: &str = "ask the analyst for bounds that fit; results lose what is clamped or left out";
    if let Err(e) = Binding::new(shard, spec) {
        return Ok(vec![(true, format!("the data {}", e), "tell the analyst: columns, and levels of texts, are public")]);
    }
    let mut flaws = Vec::new();
    for name in spec.model.columns() {
        let (Some(declared), Some(Kind::Numbers)) = (spec.columns.get(name), shard.kind(name)) else { continue };
        let share = |odd: &dyn Fn(f64) -> bool| -> Result<f64, DataError> {
            let mut count = 0;
            shard.look(name, |values| count += values.iter().filter(|v| odd(**v)).count())?;
            Ok(count as f64 / shard.records().max(1) as f64)
        };
        match *declared {
            ColumnSpec::Numeric { min, max } => {
                let clamped = share(&|v| v < min || v > max)?;
                if clamped >= MANY_CLAMPED {
                    flaws.push((
                        false,
                        format!("{:.1}% of {name} lie outside {min} to {max} and are clamped", 100.0 * clamped),
                        ASK,
                    ));
                } else if span(shard, name)? < LITTLE_USED * (max - min) {
                    let what = format!("{name} uses less than {:.0}% of the range {min} to {max}", 100.0 * LITTLE_USED);
                    flaws.push((
                        false,
                        what,
                        "ask the analyst whether narrower bounds are public knowledge: noise grows with the range",
                    ));
                }
            }
            ColumnSpec::Binary => {
                let odd = share(&|v| !v.is_nan() && v != 0.0 && v != 1.0)?;
                if odd > 0.0 {
                    let what = format!("{:.1}% of {name} are neither 0 nor 1; from 0.5 on they count as 1", 100.0 * odd);
                    flaws.push((false, what, "look whether the column holds what the job takes it for"));
                }
            }
            ColumnSpec::Levels(_) => {}
        }
    }
    flaws.extend(unlisted(shard, spec)?.into_iter().map(|(name, rows)| {
        (false, format!("{rows} of {} rows hold a {name} that the job does not list", shard.file_rows()), ASK)
    }));
    flaws.extend(read_off(shard, spec)?.into_iter().map(|name| {
        let remedy = "ask the analyst where they come from: bounds are public, and read off the data they tell its extremes";
        (false, format!("the bounds of {name} are your data's own least and greatest value"), remedy)
    }));
    Ok(flaws)
}

fn span(shard: &Shard, name: &str) -> Result<f64, DataError> {
    let (least, greatest) = extremes(shard, name)?;
    Ok(greatest - least)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::doctor::Outcome;
    use crate::testing::{MEAN_TOML, data, write};

    fn shard(csv: &str) -> Shard {
        let folder = tempfile::tempdir().unwrap();
        Shard::load(&data(write(folder.path(), "a.csv", csv), BadRows::Drop), None).unwrap()
    }

    #[test]
    fn bounds_are_compared_with_the_columns() {
        let spec = JobSpec::parse(MEAN_TOML).unwrap();
        let found =
            |csv: &str| flaws(&shard(csv), &spec).unwrap().into_iter().map(|(fatal, what, _)| (fatal, what)).collect::<Vec<_>>();
        assert_eq!(found("height\n150\n170\n181\n"), []);
        assert_eq!(
            found("height\n150\n170\n1.81\n240\n"),
            [(false, "50.0% of height lie outside 100 to 200 and are clamped".into())]
        );
        assert_eq!(found("height\n170\n170.5\n"), [(false, "height uses less than 5% of the range 100 to 200".into())]);
        assert!(found("height\n100\n200\n")[0].1.contains("least and greatest"));
        let (fatal, what) = found("weight\n70\n").remove(0);
        assert!(fatal && what.contains("no column \"height\""), "{what}");
    }

    #[test]
    fn bad_rows_are_counted_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", "height\n170\nSECRET\n\"\"\n180\n");
        let text = format!(
            "name = \"a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l\"\n[data]\npath = {path:?}\n[budget]\nepsilon = 1\n\
             delta = 1e-6\n"
        );
        let config = crate::config::PartyConfig::parse(&text, folder.path()).unwrap();
        let findings = check(&config);
        let data = &findings[0];
        assert_eq!((data.result, data.private), (Outcome::Fail, true));
        assert!(data.found.contains("line 3") && data.found.contains("2 of 4 rows"), "{}", data.found);
        assert!(findings.iter().all(|f| !f.found.contains("SECRET") && !f.remedy.contains("SECRET")));
        let text = text.replace("[budget]", "bad_rows = \"drop\"\n[budget]");
        let config = crate::config::PartyConfig::parse(&text, folder.path()).unwrap();
        let results: Vec<_> = check(&config).iter().map(|f| (f.code, f.result)).collect();
        assert_eq!(results, [("data", Outcome::Warn), ("columns", Outcome::Warn), ("bounds", Outcome::Skipped)]);
    }
}
