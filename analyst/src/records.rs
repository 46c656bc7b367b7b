//! Records on this machine, read and screened as their owner would.

use std::path::Path;
use std::sync::Arc;

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_party::screening::{Concern, screen_columns, screen_job};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_proto::error::Fault;
use conclave_vault::data::{BadRows, DataConfig, DataError, Format, Memory, Shard};

use crate::faults::input;
use crate::raw_table;

/// Loads the records that a job needs, from a file or a folder of raw columns; `drop` makes unusable rows inert.
///
/// # Errors
/// Records that can't be read; a job that does not allow for inert rows.
pub(crate) fn load(path: &Path, spec: &JobSpec, drop: bool) -> Result<Arc<Shard>, Fault> {
    let needed: Vec<String> = spec.model.columns().into_iter().map(str::to_owned).collect();
    let is_text = |name: &&String| matches!(spec.columns.get(name.as_str()), Some(ColumnSpec::Levels(_)));
    if drop && !spec.spares_inert_rows() {
        let why = "the job does not allow for unusable rows: write incomplete_rows = true under [model], as required by a party \
                   whose bad_rows is \"drop\"";
        return Err(input(why.to_owned()));
    }
    let config = DataConfig {
        path: path.to_owned(),
        format: Format::default(),
        bad_rows: if drop { BadRows::Drop } else { BadRows::Stop },
        text: needed.iter().filter(is_text).cloned().collect(),
        person: None,
        unit: PrivacyUnit::default(),
        memory: Memory::default(),
        snapshot: std::env::temp_dir(),
    };
    raw_table::load(&config, Some(&needed)).map(Arc::new)
}

/// Screens loaded records for mistakes.
///
/// # Errors
/// Records that can't be read again.
pub(crate) fn concerns(shard: &Arc<Shard>, spec: &JobSpec) -> Result<Vec<Concern>, Fault> {
    let unusable = |e: DataError| input(e.to_string());
    let columns = screen_columns(shard, Some(spec)).map_err(unusable)?;
    Ok(columns.into_iter().chain(screen_job(shard, spec).map_err(unusable)?).collect())
}
