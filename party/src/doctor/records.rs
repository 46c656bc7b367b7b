//! The records, and the bounds that jobs declare for them. Findings about values are for the owner only.

use std::sync::Arc;

use crate::config::PartyConfig;
use crate::owner::jobs;
use crate::screening::{Concern, screen_columns, screen_job};
use conclave_ops::doctor::Finding;
use conclave_pages::short_id::{SHORT, first};
use conclave_vault::data::{BadRows, DataConfig};
use conclave_vault::data::{DataError, Kind, Shard};

pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    let shard = match Shard::load(&config.data, config.policy.columns.as_deref()) {
        Ok(shard) => Arc::new(shard),
        Err(e) => return vec![unusable(config, &e), Finding::skipped("bounds", "the records can't be read")],
    };
    let mut findings = vec![rows(&shard), columns(config, &shard)];
    match screen_columns(&*shard, None) {
        Ok(concerns) => findings.extend(concerns.iter().map(|concern| finding("columns", concern, concern.found.clone()))),
        Err(e) => findings.push(unreadable("columns", &e)),
    }
    findings.extend(bounds(config, &shard));
    findings
}

fn unusable(config: &PartyConfig, error: &DataError) -> Finding {
    let mut found = error.to_string();
    let remedy = match error {
        DataError::BadValue { .. } => {
            // The number of bad rows shows the owner whether to correct the file or to keep the rows as they are.
            let all = DataConfig { bad_rows: BadRows::Drop, ..config.data.clone() };
            if let Ok(shard) = Shard::load(&all, config.policy.columns.as_deref()) {
                found = format!("{found}. {} of {} rows have such values", shard.inert(), shard.file_rows());
            }
            "correct the file, or write bad_rows = \"drop\" under [data]"
        }
        DataError::UnknownColumn { .. } => {
            "`policy.columns`, `data.text`, `data.dates` and `data.person` must name columns of the file"
        }
        DataError::DuplicateColumn { .. } => "give every column of the file a unique name",
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
        found.push_str(&format!("; {beyond} exceed max_records_per_person and are not used"));
    }
    if inert == 0 {
        return Finding::ok(CODE, found).private();
    }
    let found = format!("{found}; {inert} bad ones are inert");
    Finding::warn(CODE, found, "check whether a column was imported incorrectly: inert rows bias the result").private()
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
            "list the columns that jobs may use under [policy] columns; the others are then never read",
        );
    }
    Finding::ok("columns", format!("jobs may use {named}; all exist"))
}

/// Checks what live jobs declare about the records.
fn bounds(config: &PartyConfig, shard: &Arc<Shard>) -> Vec<Finding> {
    const CODE: &str = "bounds";
    let jobs = match config.ledger.exists().then(|| jobs(&config.ledger)) {
        Some(Ok(jobs)) => jobs,
        Some(Err(e)) => return vec![Finding::skipped(CODE, format!("the list of jobs can't be read: {e}"))],
        None => return vec![Finding::skipped(CODE, "no job has been submitted to this party yet")],
    };
    let mut findings = Vec::new();
    let mut checked = 0;
    for job in jobs.iter().filter(|job| job.is_live()) {
        let short = first(&job.request.job, SHORT);
        let Some(spec) = &job.spec else {
            findings.push(Finding::warn(
                CODE,
                format!("job {short} can't be read by this version"),
                "reject it, or update this party",
            ));
            continue;
        };
        checked += 1;
        let of_job = |concern: &Concern| format!("job {short} {:?}: {}", spec.name, concern.found);
        match screen_job(&**shard, spec) {
            Ok(concerns) => findings.extend(concerns.iter().map(|concern| finding(CODE, concern, of_job(concern)))),
            Err(e) => return vec![unreadable(CODE, &e)],
        }
    }
    if findings.is_empty() {
        findings.push(match checked {
            0 => Finding::skipped(CODE, "no job waits for consent or runs"),
            n => Finding::ok(CODE, format!("the bounds of {n} jobs fit the kinds and ranges of their columns")).private(),
        });
    }
    findings
}

fn unreadable(code: &'static str, error: &DataError) -> Finding {
    Finding::fail(code, error.to_string(), "check the file of records").private()
}

fn finding(code: &'static str, concern: &Concern, found: String) -> Finding {
    if concern.grave { Finding::fail(code, found, concern.remedy) } else { Finding::warn(code, found, concern.remedy) }.private()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_ops::doctor::Outcome;
    use conclave_vault::testing::write;

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
