//! A schema declares the columns of the data, the design of a regression, and the statistical model on them.
//!
//! Everything here is public: what a job file says of the data before anybody has read a record.

mod column;
mod design;
pub mod keys;
mod model_spec;
mod regression;

pub use column::{ColumnSpec, level_at};
pub use design::{Auxiliary, Design, Factor, Feature, MAX_FACTORS, Offset};
pub(crate) use model_spec::BUILT;
pub use model_spec::{CategoricalFeature, ModelSpec};
pub use regression::{Family, Regression};
