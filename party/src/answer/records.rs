//! An open job's records, on its model's scale.

use conclave_common::model::{Blocks, ModelData};

/// A job's records as its model reads them, however they are held.
pub(crate) enum Records {
    /// In memory, scaled once.
    Held(ModelData),
    /// Read or scaled block by block, in every pass.
    Streamed(Box<dyn Blocks + Send>),
}

impl Records {
    /// The records as passes read them.
    pub(crate) fn blocks(&self) -> &dyn Blocks {
        match self {
            Self::Held(data) => data,
            Self::Streamed(blocks) => blocks.as_ref(),
        }
    }

    /// The records that were put on a stage.
    pub(crate) fn into_held(self) -> Option<ModelData> {
        match self {
            Self::Held(data) => Some(data),
            Self::Streamed(_) => None,
        }
    }
}

#[cfg(test)]
impl Records {
    pub(crate) fn held(&self) -> &ModelData {
        match self {
            Self::Held(data) => data,
            Self::Streamed(_) => panic!("the records are not held"),
        }
    }

    pub(crate) fn held_mut(&mut self) -> &mut ModelData {
        match self {
            Self::Held(data) => data,
            Self::Streamed(_) => panic!("the records are not held"),
        }
    }
}
