//! Inputs of a plan: the job's `[plan]` table, or a rehearsal.

use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_inference::planner::Guess;
use conclave_proto::error::Fault;
use serde::Deserialize;

use crate::faults::input;
use crate::files;

/// Information available before a run.
#[derive(Debug)]
pub(super) struct PlanInput {
    pub(super) records: Vec<u64>,
    /// A guess of the posterior, if given.
    pub(super) guess: Option<Guess>,
}

/// The part of a rehearsal's object used by a plan.
#[derive(Deserialize)]
struct Rehearsed {
    plan: Guess,
}

impl PlanInput {
    /// Reads a rehearsal's file if given, else the job; the job's record counts replace a rehearsal's.
    pub(super) fn of(spec: &JobSpec, job: &Path, rehearsal: Option<&Path>) -> Result<Self, Fault> {
        let given = spec.plan.clone().unwrap_or_default();
        if let Some(path) = rehearsal {
            let text = files::read(path)?;
            let Rehearsed { plan } = serde_json::from_str(&text)
                .map_err(|e| input(format!("{} is not the output of `conclave rehearse --json`: {e}", path.display())))?;
            let guess = match given.records {
                Some(records) if plan.records.len() == records.len() => plan.with_records(records),
                _ => plan,
            };
            return Ok(Self { records: guess.records.clone(), guess: Some(guess) });
        }
        let records = given.records.clone().ok_or_else(|| {
            input(format!(
                "{}: plan.records: missing; write records = 100_000, an estimate for each party, under [plan], or pass \
                 --rehearsal FILE from `conclave rehearse`",
                job.display()
            ))
        })?;
        let guess = Guess::of_plan(&given, records.clone());
        Ok(Self { records, guess })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;

    const JOB: &str = "name = \"m\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
        [columns]\ny = { min = -3, max = 5 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";

    #[test]
    fn a_guess_comes_from_the_job_or_a_rehearsal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rehearsal.json");
        std::fs::write(&path, r#"{"job":"rehearsal","plan":{"records":[100,300],"mean":[0.1],"covariance":[[0.04]]}}"#).unwrap();
        let of = |extra: &str, rehearsal: Option<&Path>| {
            let spec = JobSpec::parse(&format!("{JOB}{extra}")).unwrap();
            PlanInput::of(&spec, Path::new("job.toml"), rehearsal)
        };
        let guess = |extra: &str, rehearsal: Option<&Path>| of(extra, rehearsal).unwrap().guess.unwrap();
        let plain = guess("", Some(&path));
        assert_eq!((plain.records, plain.covariance), (vec![100, 300], vec![vec![0.04]]));
        let more = guess("[plan]\nrecords = 800\n", Some(&path));
        assert_eq!((more.records, more.covariance), (vec![800, 800], vec![vec![0.01]]));
        let own = guess("[plan]\nrecords = 800\nposterior.mean = { mean = 0.5, sd = 0.1 }\n", None);
        assert_eq!((own.mean, own.covariance), (vec![0.5], vec![vec![0.1 * 0.1]]));
        // Record counts are required; a guess of the posterior is not.
        let fault = of("", None).unwrap_err();
        assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("plan.records"), "{fault}");
        let without = of("[plan]\nrecords = 5\n", None).unwrap();
        assert_eq!((without.records, without.guess), (vec![5, 5], None));
        std::fs::write(&path, "{}").unwrap();
        assert!(of("", Some(&path)).unwrap_err().message.contains("conclave rehearse"));
    }
}
