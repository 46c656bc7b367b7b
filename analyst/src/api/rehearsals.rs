//! Rehearsals on tables in memory, and the screening of a table.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use conclave_proto::error::Fault;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

use super::jobs::completed;
use super::run::Run;
use crate::faults::{input, internal};
use crate::rehearse::{self, RehearsalState, Table, Values, check_spares_rows};
use crate::temporary::TemporaryFolder;

/// Least time between two states.
const EVERY: Duration = Duration::from_millis(100);

/// A rehearsal to which each party's records are added, in the job's order.
pub struct Rehearsal {
    job: String,
    spec: JobSpec,
    drop: bool,
    shards: Vec<(ModelData, PrivacyUnit)>,
}

/// One party's columns, and the names of all columns of its table.
pub struct Party<'a> {
    /// The names of the table's columns.
    pub names: &'a [String],
    /// The columns that the job needs.
    pub columns: Vec<(String, Values<'a>)>,
}

impl Rehearsal {
    /// Prepares a rehearsal of a job. With `drop`, rows with a missing or non-finite value are inert; with `anyway`, the job runs
    /// although no usable posterior can be expected at its budget.
    ///
    /// # Errors
    /// A text that is no job, with the key.
    pub fn new(job: &str, drop: bool, anyway: bool) -> Result<Self, Fault> {
        // Completed as it is submitted, without the word on force: a rehearsal's object is that of the job itself.
        let text = completed(job, false)?;
        let mut spec = JobSpec::parse(&text).map_err(|e| input(e.to_string()))?;
        spec.sampler.force |= anyway;
        if drop {
            check_spares_rows(&spec)?;
        }
        Ok(Self { job: text, spec, drop, shards: Vec::new() })
    }

    /// Returns the columns that the job needs of every party.
    pub fn columns(&self) -> Vec<String> {
        self.spec.model.columns().into_iter().map(str::to_owned).collect()
    }

    /// Returns the parties of the job, in its order.
    pub fn parties(&self) -> &[String] {
        &self.spec.parties
    }

    /// Adds the records of the next party, and returns the warnings about them.
    ///
    /// # Errors
    /// A missing column, an unusable row, or a concern with which the job cannot use the records; each names the party.
    pub fn add(&mut self, party: Party<'_>) -> Result<Vec<String>, Fault> {
        let name = self.spec.parties.get(self.shards.len()).cloned().unwrap_or_default();
        let named = |fault: Fault| Fault { message: format!("{name}: {}", fault.message), ..fault };
        let mut warnings = Vec::new();
        let bound = Table::check_names(&self.spec, party.names)
            .and_then(|()| Table::new(party.columns, self.drop))
            .and_then(|table| rehearse::bound(&table, &self.spec, &mut |concern| warnings.push(format!("{name}: {concern}"))));
        self.shards.push((bound.map_err(named)?, PrivacyUnit::default()));
        Ok(warnings)
    }

    /// Runs the job to its end, or until `stop` is set; `seed` is that of the noise. `observe` is given the state, at most ten
    /// times a second.
    ///
    /// # Errors
    /// A number of parties other than the job's; a run without a draw.
    pub fn run(self, seed: Option<u64>, stop: &AtomicBool, mut observe: impl FnMut(&Value)) -> Result<Run, Fault> {
        let Self { job, spec, shards, .. } = self;
        if shards.len() != spec.parties.len() {
            let (got, parties) = (shards.len(), spec.parties.join(", "));
            return Err(input(format!("{got} tables for {} parties ({parties}): give one table for each", spec.parties.len())));
        }
        let rng = match seed {
            Some(seed) => ChaCha20Rng::seed_from_u64(seed),
            None => ChaCha20Rng::from_rng(&mut rand::rng()),
        };
        let folder = TemporaryFolder::create()?;
        let store = folder.path().join("draws");
        let mut shown: Option<Instant> = None;
        let mut show = |state: &RehearsalState| {
            if shown.is_none_or(|when| when.elapsed() >= EVERY) {
                shown = Some(Instant::now());
                observe(&object(state));
            }
        };
        let rehearsed = rehearse::rehearse(&spec, shards, rng, Some(&store), stop, &mut show)?;
        let json = serde_json::to_value(&rehearsed).map_err(|e| internal(e.to_string()))?;
        Ok(Run { job, json: without_path(json, &store), draws: Draws::read(&store)? })
    }
}

/// Returns the run's object without the path of a folder that goes.
fn without_path(mut json: Value, store: &Path) -> String {
    if json["draws"].as_str().is_some_and(|path| Path::new(path) == store) {
        json["draws"] = Value::Null;
    }
    json.to_string()
}

fn object(state: &RehearsalState) -> Value {
    let RehearsalState { phase, rounds, draws, draws_asked } = *state;
    json!({ "state": "running", "phase": phase.as_str(), "iterations": rounds, "draws": draws, "draws_asked": draws_asked })
}

/// Screens a table for a job: for each concern an object with `grave`, `found` and `remedy`.
///
/// # Errors
/// A missing column or an unusable row.
pub fn screen(job: &str, party: Party<'_>) -> Result<Value, Fault> {
    let spec = JobSpec::parse(job).map_err(|e| input(e.to_string()))?;
    Table::check_names(&spec, party.names)?;
    let table = Table::new(party.columns, spec.spares_inert_rows())?;
    let concerns = rehearse::screen(&table, &spec)?;
    let object = |concern: &conclave_party::screening::Concern| json!({ "grave": concern.grave, "found": concern.found, "remedy": concern.remedy });
    Ok(concerns.iter().map(object).collect())
}
