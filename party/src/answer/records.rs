//! Loads the records that a job ran on.

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use conclave_vault::data::{DataConfig, Memory, Shard, bind};
use conclave_vault::ledger::Secret;
use conclave_vault::ledger::events::hex;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::JobReader;

/// Reads the data into memory, and checks that they are those that the job ran on.
///
/// # Errors
/// Data that can't be read, or that were changed or refreshed since.
pub(super) fn load(config: &PartyConfig, job: &str) -> Result<Shard, StartError> {
    let settings = config.ledger_settings();
    let ledger = JobReader::open(&settings, job)?;
    let Some(known) = ledger.data()? else {
        return Err(StartError::Input(format!("this party has not opened job {job}: it has released nothing for it")));
    };
    if known.is_refreshed {
        return Err(StartError::Input(format!(
            "the data were refreshed after job {job}: its own answer needs the records that it ran on; submit the job again"
        )));
    }
    let data = DataConfig { memory: Memory::Copies, ..config.data.clone() };
    let shard = Shard::load(&data, config.policy.columns.as_deref())?;
    let secret = Secret::load(&settings.secret)?;
    let differs =
        |(name, hash): (String, [u8; 32])| known.columns.get(&name).is_some_and(|known| *known != hex(&hash)).then_some(name);
    let changed: Vec<String> = shard.fingerprints(&secret)?.into_iter().filter_map(differs).collect();
    if !changed.is_empty() {
        return Err(StartError::Input(format!(
            "the data differ from those that job {job} ran on, in {}: put the earlier file back",
            changed.join(", ")
        )));
    }
    Ok(shard)
}

/// Clamps and scales the job's columns.
///
/// # Errors
/// The columns do not serve the job.
pub(super) fn bound(shard: &Shard, spec: &JobSpec) -> Result<ModelData, StartError> {
    bind(shard, spec).map_err(|e| StartError::Input(format!("{}: it {e}", shard.file().display())))
}
