//! Refits: a finished job repeated from its stored releases, under another prior or with fewer predictors.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::edit::{read, table, whole, written};
use super::error::JobError;
use super::spec::JobSpec;
use crate::parameter::Constraint;
use crate::schema::{Design, ModelSpec};
use crate::spelling::nearest;

/// The key of the prior of all real parameters without a prior of their own.
const DEFAULT: &str = "default";

/// The settings of a refit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refit<'a> {
    /// Entries of `[prior]`, `(key, density)`. Each replaces the job's prior under that key.
    pub priors: &'a [(String, String)],
    /// Predictors to drop, by their names in the job; one with levels loses all of its coefficients.
    pub drop: &'a [String],
    /// Parties to leave out, of a job with parameters by party.
    pub without: &'a [String],
    /// Draws per chain; by default those of the job.
    pub draws: Option<u64>,
    /// Chains; by default those of the job.
    pub chains: Option<u64>,
    /// Seed of the draws; by default the job's.
    pub seed: Option<u64>,
}

impl Refit<'_> {
    /// Returns the refit of the job of this file.
    ///
    /// It has no starting values or guesses of the posterior. A box that the job declares is kept; every other box is derived
    /// from the new prior.
    ///
    /// # Errors
    /// A key that is not a parameter, a text that is not a prior or does not fit its parameter, an unknown predictor, and numbers
    /// of draws or chains out of range.
    pub fn of(&self, text: &str) -> Result<JobSpec, JobError> {
        JobSpec::parse(&self.text(text)?)
    }

    /// Returns the text of the refit, as [`Refit::of`].
    ///
    /// # Errors
    /// Those of [`Refit::of`].
    pub fn text(&self, text: &str) -> Result<String, JobError> {
        let old = JobSpec::parse(text)?;
        let mut file = read(text)?;
        let dropped = self.leave_out(&old, &mut file)?;
        self.leave_parties_out(&old, &mut file)?;
        self.set_priors(&old.model, table(&mut file, "prior")?)?;
        table(&mut file, "parameters")?.retain(|name, _| !dropped.contains(name));
        // A prior given for a dropped parameter is refused by name later.
        table(&mut file, "prior")?.retain(|name, _| !dropped.contains(name) || self.names(name));
        file.remove("plan");
        let sampler = table(&mut file, "sampler")?;
        sampler.remove("start");
        for (key, value) in [("draws", self.draws), ("chains", self.chains), ("seed", self.seed)] {
            if let Some(value) = value {
                sampler.insert(key.to_owned(), whole(&format!("sampler.{key}"), value)?);
            }
        }
        let mut text = written(&file)?;
        let new = match JobSpec::parse(&text) {
            // Released counts and sums determine the smaller model, though it has no table of its own.
            Err(error) if error.key == "release.table" && old.model.kind() == "linear" => {
                table(&mut file, "release")?.remove("table");
                text = written(&file)?;
                JobSpec::parse(&text)?
            }
            new => new?,
        };
        self.check_default(&new, table(&mut file, "prior")?)?;
        Ok(text)
    }

    /// Leaves parties out of the job's list.
    fn leave_parties_out(&self, old: &JobSpec, file: &mut Table) -> Result<(), JobError> {
        for party in self.without {
            if old.sites.is_none() {
                let message =
                    "only a job with parameters by party keeps each party's releases apart: submit a job without this party";
                return Err(JobError::new("without", message));
            }
            if !old.parties.contains(party) {
                return Err(JobError::new(
                    "without",
                    format!("the job has no party `{party}`; it has {}", old.parties.join(", ")),
                ));
            }
        }
        if let Some(parties) = file.get_mut("parties").and_then(Value::as_array_mut) {
            parties.retain(|party| party.as_str().is_none_or(|party| !self.without.iter().any(|out| out == party)));
        }
        Ok(())
    }

    fn set_priors(&self, model: &ModelSpec, prior: &mut Table) -> Result<(), JobError> {
        if matches!(model, ModelSpec::Multinomial { .. }) && self.priors.iter().any(|(key, _)| key != DEFAULT) {
            // All probabilities share one prior, which may be under another key.
            prior.clear();
        }
        let mut seen = BTreeSet::new();
        for (key, text) in self.priors {
            if !seen.insert(key) {
                return Err(JobError::new(format!("prior.{key}"), "is given twice"));
            }
            prior.insert(key.clone(), Value::String(text.clone()));
        }
        Ok(())
    }

    /// Refuses a default prior that has no effect, since its author would assume that it applies.
    fn check_default(&self, new: &JobSpec, prior: &Table) -> Result<(), JobError> {
        let names = new.model.parameter_names();
        let takes = |(name, constraint): (&String, &Constraint)| *constraint == Constraint::Real && !prior.contains_key(name);
        if !self.names(DEFAULT) || names.iter().zip(&new.model.constraints()).any(takes) {
            return Ok(());
        }
        let message =
            format!("no parameter takes it, since each has its own prior or is not real: give one of {}", names.join(", "));
        Err(JobError::new(format!("prior.{DEFAULT}"), message))
    }

    /// Returns whether the refit sets a prior under this key.
    fn names(&self, key: &str) -> bool {
        self.priors.iter().any(|(name, _)| name == key)
    }

    /// Drops predictors from the model. Returns the names of the dropped parameters.
    fn leave_out(&self, old: &JobSpec, file: &mut Table) -> Result<BTreeSet<String>, JobError> {
        if self.drop.is_empty() {
            return Ok(BTreeSet::new());
        }
        let Some(design) = old.model.design() else {
            return Err(JobError::new("drop", format!("the model `{}` has no predictors", old.model.kind())));
        };
        if let Some(Value::String(formula)) = table(file, "model")?.get_mut("formula") {
            // A formula leaves terms out by `-`; it names a term that it does not have.
            let left_out: String = self.drop.iter().map(|name| format!(" - ({name})")).collect();
            *formula = format!("{}{left_out}", formula.trim_end());
            return dropped_of_formula(old, &written(file)?);
        }
        let terms = self.drop.iter().map(|name| term(design, name)).collect::<Result<BTreeSet<usize>, JobError>>()?;
        let predictors = table(file, "model")?.get_mut("predictors").and_then(Value::as_array_mut);
        let mut place = 0..;
        predictors.into_iter().for_each(|list| list.retain(|_| place.next().is_none_or(|at| !terms.contains(&at))));
        Ok(design.features.iter().filter(|f| terms.contains(&f.term)).map(|f| f.name.clone()).collect())
    }
}

/// Returns the names of the parameters that a shorter formula no longer has.
fn dropped_of_formula(old: &JobSpec, text: &str) -> Result<BTreeSet<String>, JobError> {
    // Priors and boxes of dropped parameters are still in the text.
    let mut file = read(text)?;
    ["prior", "parameters", "plan", "sampler", "release"].into_iter().for_each(|key| drop(file.remove(key)));
    let new = JobSpec::parse(&written(&file)?)?.model.parameter_names();
    let names = old.model.parameter_names();
    match new.iter().find(|name| !names.contains(name)) {
        None => Ok(names.into_iter().filter(|name| !new.contains(name)).collect()),
        Some(name) => {
            let message = format!(
                "without it the formula codes the levels of another term by `{name}`, which was not released: drop the interactions of the term too"
            );
            Err(JobError::new("drop", message))
        }
    }
}

/// Returns the index of a predictor among the model's terms.
fn term(design: &Design, name: &str) -> Result<usize, JobError> {
    if let Some(at) = design.terms.iter().position(|term| term == name) {
        return Ok(at);
    }
    let all = match design.terms.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", design.terms.join(", ")),
    };
    let why = match design.features.iter().find(|feature| feature.name == name) {
        Some(feature) => {
            format!("`{name}` is one coefficient of the predictor `{}`, which is dropped as a whole", design.terms[feature.term])
        }
        None if name == "intercept" => format!("the intercept is not dropped: only predictors are; {all}"),
        None => {
            let near = nearest(name, design.terms.iter().map(String::as_str));
            let hint = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            format!("the model has no predictor `{name}`{hint}; {all}")
        }
    };
    Err(JobError::new("drop", why))
}

#[cfg(test)]
#[path = "tests/refit.rs"]
mod tests;
