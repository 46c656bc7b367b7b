//! An open job's records, on its model's scale.

use conclave_privacy::pass::{Blocks, ModelData};

use crate::data::Precision;

/// A job's records as its model reads them, however they are held.
pub(crate) enum Records {
    /// In memory, scaled once.
    Held(ModelData),
    /// As that, in single precision.
    Single(ModelData<f32>),
    /// Read or scaled block by block, in every pass.
    Streamed(Box<dyn Blocks + Send>),
}

impl Records {
    /// These records, held in this precision.
    pub(crate) fn new(data: ModelData, precision: Precision) -> Self {
        match precision {
            Precision::Double => Self::Held(data),
            Precision::Single => Self::Single(data.narrowed()),
        }
    }

    /// The records as passes read them.
    pub(crate) fn blocks(&self) -> &dyn Blocks {
        match self {
            Self::Held(data) => data,
            Self::Single(data) => data,
            Self::Streamed(blocks) => blocks.as_ref(),
        }
    }

    /// The records that were put on a sandbox in double precision.
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
