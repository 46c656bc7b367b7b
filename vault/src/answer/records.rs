//! Holds an open job's records, on its model's scale.

use conclave_privacy::pass::{Blocks, ModelData};

use crate::data::{BindError, Binding, Precision, Shard};

/// A job's records as its model reads them.
pub(crate) enum Records {
    /// In memory, scaled once.
    Held(ModelData),
    /// In memory, in single precision.
    Single(ModelData<f32>),
    /// Read or scaled block by block, in every pass.
    Streamed(Box<dyn Blocks + Send>),
}

impl Records {
    /// Holds these records in this precision.
    pub(crate) fn new(data: ModelData, precision: Precision) -> Self {
        match precision {
            Precision::Double => Self::Held(data),
            Precision::Single => Self::Single(data.narrowed()),
        }
    }

    /// Copies a job's records of a shard in memory in this precision.
    ///
    /// # Errors
    /// The errors of [`crate::data::bind`].
    pub(crate) fn copied(shard: &Shard, binding: &Binding, precision: Precision) -> Result<Self, BindError> {
        Ok(match precision {
            Precision::Double => Self::Held(binding.copy(shard)?),
            Precision::Single => Self::Single(binding.copy(shard)?),
        })
    }

    /// Returns the records as passes read them.
    pub(crate) fn blocks(&self) -> &dyn Blocks {
        match self {
            Self::Held(data) => data,
            Self::Single(data) => data,
            Self::Streamed(blocks) => blocks.as_ref(),
        }
    }

    /// Returns the records of a sandbox, where they are held in double precision.
    pub(crate) fn into_held(self) -> Option<ModelData> {
        match self {
            Self::Held(data) => Some(data),
            Self::Single(_) | Self::Streamed(_) => None,
        }
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Records {
    pub(crate) fn held(&self) -> &ModelData {
        match self {
            Self::Held(data) => data,
            Self::Single(_) | Self::Streamed(_) => panic!("the records are not held"),
        }
    }

    pub(crate) fn held_mut(&mut self) -> &mut ModelData {
        match self {
            Self::Held(data) => data,
            Self::Single(_) | Self::Streamed(_) => panic!("the records are not held"),
        }
    }
}
