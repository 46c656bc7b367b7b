//! The schema: the columns of the data, the design of a regression, and the statistical model.
//!
//! Everything here is public: the job file declares it before any record is read.

mod column;
mod derived;
mod design;
mod levels;
mod model_spec;
mod operation;
mod regression;
mod spanned;
mod spline;
mod survival;

pub use column::{CategoricalFeature, ColumnSpec, level_at};
pub use derived::Derived;
pub use design::{Auxiliary, Design, Factor, Feature, MAX_FACTORS, Offset};
pub use levels::Levels;
pub use model_spec::{BUILT, ModelSpec};
pub use operation::{Operation, Range};
pub use regression::{Family, Regression};
pub use spanned::{Product, spanned};
pub use spline::NaturalSpline;
pub use survival::{LifeTable, PiecewiseExponential};
