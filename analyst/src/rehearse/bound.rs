//! A party's records, screened and bound to a job.

use conclave_common::job::JobSpec;
use conclave_party::screening::{Concern, Records, screen_columns, screen_job};
use conclave_privacy::pass::ModelData;
use conclave_proto::error::Fault;
use conclave_vault::data::DataError;

use super::table::Table;
use crate::faults::input;

/// Screens records for a job: the concerns about single columns, then those about the job's declarations.
///
/// # Errors
/// Records that cannot be read.
pub(crate) fn screen(records: &dyn Records, spec: &JobSpec) -> Result<Vec<Concern>, Fault> {
    let unusable = |e: DataError| input(e.to_string());
    let mut found = screen_columns(records, Some(spec)).map_err(unusable)?;
    found.extend(screen_job(records, spec).map_err(unusable)?);
    Ok(found)
}

/// Screens records for a job, and passes each concern to `warn`.
///
/// # Errors
/// Those of [`screen`]; the first concern with which a job cannot use the records.
pub(super) fn screened(records: &dyn Records, spec: &JobSpec, warn: &mut dyn FnMut(&Concern)) -> Result<(), Fault> {
    for concern in screen(records, spec)? {
        if concern.grave {
            return Err(input(concern.to_string()));
        }
        warn(&concern);
    }
    Ok(())
}

/// Checks that a job allows for rows that cannot be used.
///
/// # Errors
/// A job that does not, with the key to write.
pub(crate) fn check_spares_rows(spec: &JobSpec) -> Result<(), Fault> {
    if spec.spares_inert_rows() {
        return Ok(());
    }
    Err(input(
        "the job does not allow for unusable rows: write incomplete_rows = true under [model], as required by a party whose \
         bad_rows is \"drop\"",
    ))
}

/// Screens one party's columns in memory and copies them to the scale of the job's model; warnings go to `warn`.
///
/// # Errors
/// Rows or columns that cannot be used, and the concerns of [`screened`].
pub(crate) fn bound(table: &Table<'_>, spec: &JobSpec, warn: &mut dyn FnMut(&Concern)) -> Result<ModelData, Fault> {
    screened(table, spec, warn)?;
    table.bind(spec)
}
