//! An owner's own answer to a job: the posterior from its records without noise and the other owners' releases.
//!
//! Everything is computed beside the records. The coordinator is asked for the public log, as by `verify`, and receives nothing else;
//! the ledger is read and neither charged nor changed. The result is written for the owner alone, because it is a function of the
//! records without protection.

mod log;
mod records;
mod report;

use std::path::{Path, PathBuf};

use conclave_inference::sampler::{OwnAnswerError, OwnRecords};
use conclave_ops::private_files;
use conclave_privacy::pass::Blocks;
use conclave_vault::data::Precision;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::owner::find;
use crate::verify::watched;

pub(crate) use report::{Report, WARNING};

/// An answer and its file.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) report: Report,
    pub(crate) file: PathBuf,
}

/// Computes this party's own answer to a job, given the job's id or a prefix of it, and writes it to a new file that its owner alone
/// may read. `retired` are files of CAs, as for `verify`.
///
/// # Errors
/// The job is unknown, its log fails verification, its releases can't be separated by owner, or the data are not those of the job.
pub(crate) async fn answer(
    config: &PartyConfig,
    id: &str,
    output: Option<&Path>,
    retired: &[PathBuf],
) -> Result<Written, StartError> {
    let view = find(&config.ledger, id)?;
    let job = view.request.job.clone();
    let unreadable = || StartError::Input(format!("this version can't read job {job}, so it can't answer it"));
    let spec = view.spec.clone().ok_or_else(unreadable)?;
    let file = output.map_or_else(|| PathBuf::from(format!("answer-{job}.json")), Path::to_owned);
    if file.try_exists().unwrap_or(true) {
        return Err(StartError::Input(format!(
            "{} exists already: remove it, or name another file with --output",
            file.display()
        )));
    }
    // Before the log is fetched: a mistake in the files should not cost a transfer.
    let shard = records::load(config, &job)?;
    let data = records::bound(&shard, &spec)?;
    let mut log = log::Log::new(&config.name, spec);
    let verified = watched(config, &job, retired, |piece| log.take(piece)).await?;
    let failed = verified.failed().join(", ");
    if !failed.is_empty() {
        return Err(StartError::NotVerified { job, failed });
    }
    let releases = log.finish()?;
    let refused = |why: OwnAnswerError| StartError::Input(format!("job {job} has no own answer: {why}"));
    let answered = match config.precision {
        Precision::Double => releases.answer(OwnRecords { data: &data, summed: &data }),
        Precision::Single => {
            let summed = data.clone().narrowed();
            releases.answer(OwnRecords { data: &data, summed: &summed as &dyn Blocks })
        }
    };
    let report = Report::new(config, &view, &verified, answered.map_err(refused)?);
    private_files::create(&file, report.json()?.as_bytes())
        .map_err(|e| StartError::Input(format!("{} can't be written: {e}", file.display())))?;
    Ok(Written { report, file })
}
