//! The schema: the columns of the data, the design of a regression, and the statistical model.
//!
//! Everything here is public: the job file declares it before any record is read.

mod column;
mod design;
mod model_spec;
mod regression;

pub use column::{ColumnSpec, level_at};
pub use design::{Auxiliary, Design, Factor, Feature, MAX_FACTORS, Offset};
pub use model_spec::{BUILT, CategoricalFeature, ModelSpec};
pub use regression::{Family, Regression};
