//! Records on this machine, read and screened as their owner would.

use std::path::Path;
use std::sync::Arc;

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_proto::error::Fault;
use conclave_vault::data::{BadRows, DataConfig, Format, Memory, Shard};

use crate::raw_table;
use crate::rehearse::check_spares_rows;

/// Loads the records that a job needs, from a file or a folder of raw columns; `drop` makes unusable rows inert.
///
/// # Errors
/// Records that can't be read; a job that does not allow for inert rows.
pub(crate) fn load(path: &Path, spec: &JobSpec, drop: bool) -> Result<Arc<Shard>, Fault> {
    let needed: Vec<String> = spec.model.columns().into_iter().map(str::to_owned).collect();
    let is_text = |name: &&String| matches!(spec.columns.get(name.as_str()), Some(ColumnSpec::Levels(_)));
    if drop {
        check_spares_rows(spec)?;
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
