//! The conversion of a job file to a valid [`JobSpec`].

use std::collections::BTreeSet;

use super::checks::{one_line, short};
use super::parameters::{self, Parameters};
use super::{aggregation, auto, batch, columns, formula, life_table, model, plan, privacy, release, sampler, sites, survival};
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::limits::{MAX_BYTES, MAX_CHAINS, MAX_NAME, MAX_WORDS};
use crate::job::raw::RawJob;
use crate::job::spec::JobSpec;
use crate::settings::{self, Table, Value};
use crate::text::valid_name;
use conclave_privacy::mechanism::QueryKind;

const MAX_PARTIES: usize = 10_000;

impl JobSpec {
    /// Reads and validates a job file.
    ///
    /// # Errors
    /// The first fault found, with its key.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        if text.len() > MAX_BYTES {
            return Err(JobError::new("job", format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len())));
        }
        let (mut raw, file): (RawJob, _) = settings::read(text)?;

        if raw.name.trim().is_empty() {
            return Err(JobError::new("name", "give the job a name"));
        }
        short("name", &raw.name)?;
        if let Some(id) = &raw.extends {
            job_id(id)?;
        }
        for (key, words) in [("study.purpose", &raw.study.purpose), ("study.contact", &raw.study.contact)] {
            words.as_ref().map_or(Ok(()), |words| one_line(key, words, MAX_WORDS))?;
        }
        let formula = formula::read(&mut raw.model)?;
        let (algorithm, chosen) = match raw.algorithm.as_str() {
            "auto" => auto::choose(&raw, &file),
            name => (algorithm(name)?, None),
        };
        release::refuse_unused(algorithm, &raw, &file)?;
        let parties = parties(raw.parties)?;
        let aggregation = aggregation::aggregation(raw.aggregation, &parties)?;
        let mut columns = raw.columns;
        columns::check_names(&columns)?;
        let (power, weights, incomplete_rows) = (raw.model.power, raw.model.weights, raw.model.incomplete_rows);
        let power_prior = raw.model.power_prior;
        let exposure_fixed = raw.model.exposure_fixed;
        let written = file.get("model").and_then(Value::as_table).into_iter().flat_map(Table::keys);
        let model = match formula {
            Some(formula) => {
                model::check_keys(&raw.model.kind, written)?;
                formula.model(&raw.model, &mut columns, &mut raw.parameters)?
            }
            None => model::model(raw.model, written, &columns)?,
        };
        let names = model.parameter_names();
        let constraints = model.constraints();
        let units = model.units(&columns);
        let sites = sites::sites(&raw.parameters, &mut raw.prior, (&names, &constraints))?;
        let priors = parameters::priors(
            &raw.prior,
            (&names, &constraints),
            |at| model.weak_prior(constraints[at], units[at]),
            model.default_concentration(),
        )?;
        // The box is a part of the prior that is the same to any power.
        let support = parameters::support(&raw.parameters, &names, &constraints, &units, &priors)?;
        let priors = if power_prior { parameters::to_the_power(&priors, &names, power)? } else { priors };
        let sampler = sampler::sampler(
            raw.sampler,
            (algorithm, weights),
            &Parameters { names: &names, constraints: &constraints, priors: &priors, support: &support },
        )?;
        let privacy = privacy::privacy(&raw.privacy, (sampler.proposal, sampler.batch), parties.len())?;
        let plan = raw.plan.map(|plan| plan::plan(plan, &parties, &names)).transpose()?;
        let auto_noise = raw.privacy.noise_sd.is_none();
        let spec = JobSpec {
            name: raw.name,
            extends: raw.extends,
            algorithm,
            chosen,
            parties,
            model,
            power,
            power_prior,
            weights,
            exposure_fixed,
            incomplete_rows,
            columns,
            priors,
            support,
            sites,
            sampler,
            privacy,
            aggregation,
            release: raw.release,
            plan,
            study: raw.study,
        };
        // Besides the chains, a round contains a clip count and, over samples, a check of their variance.
        let beside = u32::from(spec.privacy.clip.is_some()) + u32::from(spec.asks(QueryKind::SecondMoment));
        if spec.sampler.chains > MAX_CHAINS - beside {
            let message =
                format!("must be at most {}, since rounds also contain clip counts or variance checks", MAX_CHAINS - beside);
            return Err(JobError::new("sampler.chains", message));
        }
        sampler::check(&spec)?;
        sites::check(&spec)?;
        survival::check(&spec)?;
        life_table::check(&spec)?;
        (algorithm.declaration().check)(&spec)?;
        batch::check(&spec)?;
        let by_table = spec.chosen.is_some() && spec.is_by_table(spec.build_model().as_ref());
        let spec = JobSpec { chosen: if by_table { Some(auto::BY_TABLE) } else { spec.chosen }, ..spec };
        (algorithm.declaration().resolve)(spec, auto_noise)
    }
}

/// Checks an id, which appears unescaped in reports and attributes.
fn job_id(id: &str) -> Result<(), JobError> {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !id.is_empty() && id.len() <= MAX_NAME && plain {
        return Ok(());
    }
    Err(JobError::new("extends", "must be the id of a job, as `conclave jobs` shows it"))
}

fn algorithm(name: &str) -> Result<Algorithm, JobError> {
    Algorithm::named(name).ok_or_else(|| {
        let names = std::iter::once("auto").chain(Algorithm::names());
        let (last, names) = names
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .split_last()
            .map(|(last, names)| (last.clone(), names.join(", ")))
            .unwrap_or_default();
        JobError::new("algorithm", format!("unknown algorithm `{name}`; use {names} or {last}"))
    })
}

fn parties(names: Vec<String>) -> Result<Vec<String>, JobError> {
    if names.is_empty() {
        return Err(JobError::new("parties", "name at least one party"));
    }
    if names.len() > MAX_PARTIES {
        return Err(JobError::new("parties", format!("at most {MAX_PARTIES} parties")));
    }
    let mut seen = BTreeSet::new();
    for name in &names {
        if !valid_name(name) {
            let (start, rule) = (name.chars().take(64).collect::<String>(), "1 to 63 of a-z, 0-9 and -, not at either end");
            return Err(JobError::new("parties", format!("{start:?} is not a valid party name: use {rule}")));
        }
        if !seen.insert(name.as_str()) {
            return Err(JobError::new("parties", format!("party `{name}` is named twice; its records would count twice")));
        }
    }
    Ok(names)
}
