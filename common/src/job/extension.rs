//! Extensions: jobs that continue a finished one.
//!
//! An extension is a separate job. Its budget and every constant are in its file, for owners to consent to.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::edit::{read, table, whole, written};
use super::error::JobError;
use super::sampler_spec::Radius;
use super::spec::JobSpec;

/// The end of a run. Parameters are in the model's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// Proposal radii, one per parameter on the unconstrained scale; `None` if the moves were rotated.
    pub radii: Option<Vec<f64>>,
    /// The last state of each chain, `[chain][parameter]`, on the scale of the priors.
    pub states: Vec<Vec<f64>>,
}

/// The settings of an extension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extension<'a> {
    /// Id of the job that is continued.
    pub job: &'a str,
    /// The end of its run.
    pub end: &'a Continuation,
    /// Draws per chain; by default those of the job.
    pub draws: Option<u64>,
    /// The extension's own budget; by default the job's.
    pub epsilon: Option<f64>,
}

impl Extension<'_> {
    /// Returns the file of the job that continues the job of this file.
    ///
    /// It has the same model and data. Its chains start from the final states with the final radii, without search or warm-up,
    /// and its seed is derived from the old one and the job's id. Nothing is rounded: the file restores every starting value bit
    /// for bit.
    ///
    /// # Errors
    /// A run that cannot be continued (its moves were rotated), states that do not fit the job, and draws or a budget out of
    /// range.
    pub fn of(&self, text: &str) -> Result<String, JobError> {
        let old = JobSpec::parse(text)?;
        if old.is_polished() {
            let message = "a run that ends in penalty sweeps can't be extended: submit the job again with more sweeps, or a job \
                           with algorithm = \"penalty\" whose chains start where this one ended (sampler.starts)";
            return Err(JobError::new("sampler.polish", message));
        }
        if old.sampler.stochastic.decay.is_some() {
            let message = "a run of decreasing steps can't be extended: its extension would begin with long steps again: submit the job again with \
                           more draws, or without decay";
            return Err(JobError::new("sampler.decay", message));
        }
        if old.sites.is_some() {
            let message = "a job with parameters by party makes its draws from what was released once, and no chain continues them: submit it again \
                           with a larger budget";
            return Err(JobError::new("parameters", message));
        }
        if old.weighs_chains() {
            let message = format!(
                "a run of chains with weights = \"{}\" can't be extended: its extension would search a frame of its own, and draw from another \
                 posterior: submit the job again with a larger budget",
                old.weights.as_str()
            );
            return Err(JobError::new("model.weights", message));
        }
        let names = old.model.parameter_names();
        let states = &self.end.states;
        let chains = old.sampler.chains as usize;
        let counted = states.len() == chains || (old.plans_chains() && (1..chains).contains(&states.len()));
        if !counted || states.iter().any(|state| state.len() != names.len()) {
            return Err(JobError::new(
                "sampler.starts",
                "the run's last states do not fit its job: they may come from another version",
            ));
        }
        let by_gradients = old.algorithm.follows_gradients();
        let radii = self.end.radii.as_ref().filter(|radii| radii.len() == names.len());
        if radii.is_none() && !by_gradients {
            let message = "the run rotated its moves, which a job file can't express, so it can't be extended: submit the job \
                           again with more draws, or with rotate = false";
            return Err(JobError::new("sampler.proposal.rotate", message));
        }
        let by_name = |values: &[f64]| -> Table { names.iter().cloned().zip(values.iter().map(|x| Value::Float(*x))).collect() };

        let mut file = read(text)?;
        file.insert("extends".to_owned(), self.job.into());
        let starts = states.iter().map(|state| Value::Table(by_name(state))).collect();
        let sampler = table(&mut file, "sampler")?;
        // Chains that began at a posterior sample continue without another.
        let of_the_start = ["start_share", "candidates"].into_iter().filter(|_| old.start_share().is_some());
        ["start", "locate"].into_iter().chain(of_the_start).for_each(|key| drop(sampler.remove(key)));
        sampler.insert("starts".to_owned(), Value::Array(starts));
        if old.plans_chains() {
            sampler.insert("chains".to_owned(), whole("sampler.chains", states.len() as u64)?);
        }
        // A number of draws that is asked for is made, whatever target the job had.
        if self.draws.is_some() {
            sampler.remove("until");
        }
        sampler.insert("draws".to_owned(), whole("sampler.draws", self.draws.unwrap_or(old.sampler.draws))?);
        sampler.insert("warmup".to_owned(), Value::Integer(0));
        sampler.insert("seed".to_owned(), whole("sampler.seed", seed(old.sampler.seed, self.job))?);
        // Gradient-driven chains repeat the search for their moves, since its results are not part of their states.
        if let Some(radii) = radii.filter(|_| !by_gradients) {
            sampler.insert("locate_share".to_owned(), Value::Float(0.0));
            let proposal = table(sampler, "proposal")?;
            proposal.remove("rotate");
            proposal.insert("radius".to_owned(), Value::Table(by_name(radii)));
        }
        if let Some(epsilon) = self.epsilon {
            table(&mut file, "privacy")?.insert("epsilon".to_owned(), Value::Float(epsilon));
        }
        let written = written(&file)?;

        let new = JobSpec::parse(&written)?;
        let same_radii = by_gradients || radii.is_some_and(|radii| new.sampler.radius == Radius::Fixed(radii.clone()));
        if new.sampler.starts.as_ref() != Some(states) || !same_radii {
            return Err(JobError::new("sampler.starts", "the run's last states can't be written exactly"));
        }
        Ok(written)
    }
}

/// Returns a seed that differs from the old one and fits TOML's integers. An extension must not repeat the proposals and
/// decisions of its job, nor those of a job whose seed the analyst incremented. Uses FNV-1a over the id; ChaCha's seeding does
/// the mixing.
fn seed(old: u64, job: &str) -> u64 {
    let hash =
        job.bytes().fold(old ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    match hash >> 1 {
        seed if seed == old => seed ^ 1,
        seed => seed,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::job::Warmup;

    const ID: &str = "3f0c4a52-9a1e-4bb0-8a3e-0d1f6a7c2b11";
    const JOB: &str = r#"
name = "falls"
parties = ["a", "b"]
[model]
kind = "negative_binomial"
outcome = "falls"
predictors = ["ward"]
[columns]
falls = { min = 0, max = 20 }
ward = { levels = ["medicine", "surgery"] }
[sampler]
chains = 2
draws = 40
seed = 7
proposal = { kind = "componentwise", jitter = 0.2 }
[privacy]
epsilon = 3.0
delta = 1e-6
"#;

    fn end() -> Continuation {
        let states = vec![vec![0.1 + 0.2, -1.0 / 3.0, 1e-5 / 7.0 + 0.5], vec![2.0, 5e-324_f64.max(1e-17), 0.7]];
        Continuation { radii: Some(vec![0.1, 2.0 / 3.0, 1e-3]), states }
    }

    fn bits(values: &[Vec<f64>]) -> Vec<u64> {
        values.iter().flatten().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn an_extension_is_the_job_from_where_it_ended() {
        let end = end();
        let text = Extension { job: ID, end: &end, draws: None, epsilon: None }.of(JOB).unwrap();
        let (old, new) = (JobSpec::parse(JOB).unwrap(), JobSpec::parse(&text).unwrap());
        assert_eq!(bits(new.sampler.starts.as_ref().unwrap()), bits(&end.states));
        assert_eq!(new.sampler.radius, Radius::Fixed(end.radii.clone().unwrap()));
        assert_eq!((new.sampler.warmup, new.sampler.locate_share, new.sampler.draws), (Warmup::Sweeps(0), 0.0, 40));
        assert_eq!((new.extends.as_deref(), new.sampler.start.is_none()), (Some(ID), true));
        assert_ne!(new.sampler.seed, old.sampler.seed);
        // All else is the old job's.
        let mut same = new.clone();
        same.extends = None;
        same.sampler = old.sampler.clone();
        assert_eq!(same, old);
        assert_eq!((new.sampler.proposal, new.sampler.jitter), (old.sampler.proposal, old.sampler.jitter));

        // And of an extension in turn.
        let again = Extension { job: "another", end: &end, draws: Some(9), epsilon: Some(0.5) }.of(&text).unwrap();
        let third = JobSpec::parse(&again).unwrap();
        assert_eq!((third.sampler.draws, third.privacy.budget.epsilon, third.extends.as_deref()), (9, 0.5, Some("another")));
        assert!(third.sampler.seed != new.sampler.seed && third.sampler.seed != old.sampler.seed);
    }

    #[test]
    fn a_result_gives_its_states_back_bit_for_bit() {
        let end = end();
        let read: Continuation = serde_json::from_str(&serde_json::to_string(&end).unwrap()).unwrap();
        assert_eq!(bits(&read.states), bits(&end.states));
    }

    #[test]
    fn a_run_that_ends_in_sweeps_is_not_extended() {
        let job = JOB
            .replace("name = \"falls\"", "name = \"falls\"\nalgorithm = \"sgld\"")
            .replace("proposal = { kind = \"componentwise\", jitter = 0.2 }", "polish = 3");
        let end = Continuation { radii: None, states: Vec::new() };
        let error = Extension { job: ID, end: &end, draws: None, epsilon: None }.of(&job).unwrap_err();
        assert!(error.key == "sampler.polish" && error.to_string().contains("sampler.starts"), "{error}");
    }

    #[test]
    fn a_run_of_weighted_chains_is_not_extended() {
        let job = "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
                   predictors = [\"x\"]\nweights = \"auto\"\n[columns]\ny = { binary = true }\nx = { min = 0, max = 1 }\n\
                   [privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        let end = Continuation { radii: None, states: vec![vec![0.0; 2]; 4] };
        let error = Extension { job: ID, end: &end, draws: None, epsilon: None }.of(job).unwrap_err();
        assert!(error.key == "model.weights" && error.to_string().contains("another posterior"), "{error}");
        assert!(Extension { job: ID, end: &end, draws: None, epsilon: None }.of(&job.replace("auto", "never")).is_ok());
    }

    #[test]
    fn what_cannot_be_continued_says_why() {
        let turned = Continuation { radii: None, ..end() };
        let short = Continuation { states: vec![vec![0.0; 3]], ..end() };
        let outside = Continuation { states: vec![vec![0.0, 2e3, 1.0]; 2], ..end() };
        let whole = end();
        for (end, draws, epsilon, key, word) in [
            (&turned, None, None, "sampler.proposal.rotate", "rotated its moves"),
            (&short, None, None, "sampler.starts", "do not fit"),
            (&outside, None, None, "sampler.starts[0].ward[surgery]", "outside"),
            (&whole, Some(0), None, "sampler.draws", "between 1"),
            (&whole, None, Some(0.0), "privacy.epsilon", "positive"),
        ] {
            let error = Extension { job: ID, end, draws, epsilon }.of(JOB).unwrap_err();
            assert!(error.key == key && error.message.contains(word), "{error}");
        }
    }
}
