//! The declared columns of a job.

use std::collections::BTreeMap;

use crate::formula::{FormulaError, Span};
use crate::schema::ColumnSpec;
use crate::spelling::nearest;

/// Columns by name; those that a formula derives are added.
pub(super) type Columns = BTreeMap<String, ColumnSpec>;

/// Returns a column's declaration.
pub(super) fn declared<'a>(name: &str, span: Span, columns: &'a Columns) -> Result<&'a ColumnSpec, FormulaError> {
    columns.get(name).ok_or_else(|| {
        let near = nearest(name, columns.keys().map(String::as_str));
        let hint = near.map(|near| format!("; the nearest is `{near}`")).unwrap_or_default();
        let message = format!(
            "`{name}` is not declared under [columns]{hint}: every column needs public bounds, `{name} = {{ min = …, max = … }}`, \
             `{{ binary = true }}` or `{{ levels = […] }}`"
        );
        FormulaError::new(span, message)
    })
}
