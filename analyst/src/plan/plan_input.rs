//! Inputs of a plan: the job's `[plan]` table, or a rehearsal.

use conclave_common::job::JobSpec;
use conclave_inference::planner::Guess;
use conclave_pages::object::{rows, sentences, text};
use conclave_pages::released;
use conclave_proto::error::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::faults::input;

/// Information available before a run.
#[derive(Debug)]
pub(super) struct PlanInput {
    pub(super) records: Vec<u64>,
    /// A guess of the posterior, if given.
    pub(super) guess: Option<Guess>,
    /// The verdict of a rehearsal without an adequate answer.
    pub(super) withheld: Option<Withheld>,
}

/// A rehearsal of this job's budget that had no adequate answer.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Withheld {
    /// The algorithm that was rehearsed.
    pub(super) algorithm: String,
    /// The largest epsilon that a party allowed.
    pub(super) epsilon: f64,
    /// The reasons, as sentences.
    pub(super) reasons: Vec<String>,
}

/// A rehearsal's object as text, and its name in messages.
#[derive(Clone, Copy)]
pub(super) struct Rehearsal<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a str,
}

/// The part of a rehearsal's object used by a plan.
#[derive(Deserialize)]
struct Rehearsed {
    plan: Guess,
    #[serde(flatten)]
    result: Value,
}

impl Rehearsed {
    /// Returns the verdict if the rehearsal had no adequate answer. Rehearsals of earlier versions state none for chains.
    fn withheld(&self) -> Option<Withheld> {
        let epsilons = rows(&self.result, "parties").iter().filter_map(|party| party["epsilon_budget"].as_f64());
        (!released::is_adequate(&self.result)).then(|| Withheld {
            algorithm: text(&self.result, "algorithm").to_owned(),
            epsilon: epsilons.fold(0.0, f64::max),
            reasons: sentences(&self.result["adequacy"], "reasons"),
        })
    }
}

impl PlanInput {
    /// Reads a rehearsal's object if given, else the job; the job's record counts replace a rehearsal's. `job` is the name of the
    /// job in messages.
    pub(super) fn of(spec: &JobSpec, job: &str, rehearsal: Option<Rehearsal<'_>>) -> Result<Self, Fault> {
        let given = spec.plan.clone().unwrap_or_default();
        if let Some(Rehearsal { text, name }) = rehearsal {
            let rehearsed: Rehearsed = serde_json::from_str(text)
                .map_err(|e| input(format!("{name} is not the output of `conclave rehearse --json`: {e}")))?;
            let withheld = rehearsed.withheld();
            let guess = match given.records {
                Some(records) if rehearsed.plan.records.len() == records.len() => rehearsed.plan.with_records(records),
                _ => rehearsed.plan,
            };
            return Ok(Self {
                records: guess.records.clone(),
                // Draws of no adequate answer are no guess of the posterior.
                guess: Some(guess).filter(|_| withheld.is_none()),
                withheld,
            });
        }
        let records = given.records.clone().ok_or_else(|| {
            input(format!("{job}: plan.records: missing")).with_remedy(
                "write records = 100_000, an estimate for each party, under [plan], or pass --rehearsal FILE from `conclave \
                 rehearse`",
            )
        })?;
        let guess = Guess::of_plan(&given, records.clone());
        Ok(Self { records, guess, withheld: None })
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
        let rehearsed = r#"{"job":"rehearsal","plan":{"records":[100,300],"mean":[0.1],"covariance":[[0.04]]}}"#;
        let of = |extra: &str, rehearsal: Option<&str>| {
            let spec = JobSpec::parse(&format!("{JOB}{extra}")).unwrap();
            PlanInput::of(&spec, "job.toml", rehearsal.map(|text| Rehearsal { text, name: "rehearsal.json" }))
        };
        let guess = |extra: &str, rehearsal: Option<&str>| of(extra, rehearsal).unwrap().guess.unwrap();
        let plain = guess("", Some(rehearsed));
        assert_eq!((plain.records, plain.covariance), (vec![100, 300], vec![vec![0.04]]));
        let more = guess("[plan]\nrecords = 800\n", Some(rehearsed));
        assert_eq!((more.records, more.covariance), (vec![800, 800], vec![vec![0.01]]));
        // A rehearsal without an adequate answer gives record counts and its reasons, and no guess.
        let inadequate = r#"{"algorithm":"hmc","adequacy":{"adequate":false,"reasons":["too <few> draws"]},"parties":[{"epsilon_budget":3.0}],
            "plan":{"records":[100,300],"mean":[0.1],"covariance":[[0.04]]}}"#;
        let PlanInput { records, guess: none, withheld } = of("", Some(inadequate)).unwrap();
        assert_eq!((records, none), (vec![100, 300], None));
        let reasons = vec!["too <few> draws".to_owned()];
        assert_eq!(withheld, Some(Withheld { algorithm: "hmc".to_owned(), epsilon: 3.0, reasons }));
        let own = guess("[plan]\nrecords = 800\nposterior.mean = { mean = 0.5, sd = 0.1 }\n", None);
        assert_eq!((own.mean, own.covariance), (vec![0.5], vec![vec![0.1 * 0.1]]));
        // Record counts are required; a guess of the posterior is not.
        let fault = of("", None).unwrap_err();
        assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("plan.records"), "{fault}");
        let without = of("[plan]\nrecords = 5\n", None).unwrap();
        assert_eq!((without.records, without.guess), (vec![5, 5], None));
        assert!(of("", Some("{}")).unwrap_err().message.contains("conclave rehearse"));
    }
}
