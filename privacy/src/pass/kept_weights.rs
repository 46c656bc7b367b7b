//! The weights of the last gradients' vectors, kept until the remainders of the same steps are asked.
//!
//! They are whole numbers, and a remainder has the same bits whether it finds them here or makes them anew. What is kept, and for how
//! long, follows from the questions alone.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are kept of a job at most: of a larger shard nothing is.
const MOST_BYTES: u64 = 1 << 28;

/// The weights of a block's vectors.
pub struct BlockWeights {
    /// Of the slopes in the linear predictor.
    pub slopes: Vec<i32>,
    /// Of those in the family's own parameter, where there is one.
    pub own: Vec<i32>,
}

impl BlockWeights {
    /// Room for those of so many records.
    pub fn of(records: usize, own: bool) -> Self {
        Self { slopes: Vec::with_capacity(records), own: Vec::with_capacity(if own { records } else { 0 }) }
    }
}

/// What was asked: the bits of the point, and of the frame.
#[derive(PartialEq, Eq)]
struct Question(Vec<u64>);

impl Question {
    fn new(numbers: [&[f64]; 3]) -> Self {
        Self(numbers.into_iter().flatten().map(|x| x.to_bits()).collect())
    }
}

/// The weights that a job's last gradients had.
pub struct KeptWeights {
    /// Of so many questions.
    questions: usize,
    blocks: usize,
    kept: Mutex<VecDeque<(Question, ByBlock)>>,
}

/// Of the blocks that have been seen.
type ByBlock = Vec<Option<Arc<BlockWeights>>>;

impl KeptWeights {
    /// Room for the weights of so many gradients, as many as a job has chains, over so many records in so many blocks; none where that takes too
    /// much.
    #[must_use]
    pub fn new((records, blocks): (u64, usize), questions: usize) -> Self {
        let bytes = records.saturating_mul(2 * size_of::<i32>() as u64).saturating_mul(questions as u64);
        let questions = if bytes <= MOST_BYTES { questions } else { 0 };
        Self { questions, blocks, kept: Mutex::default() }
    }

    /// Whether there is room for any.
    pub(super) fn keeps(&self) -> bool {
        self.questions > 0
    }

    /// Of how many questions weights are kept.
    #[cfg(any(test, feature = "test-util"))]
    pub fn questions(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn put(&self, asked: [&[f64]; 3], block: usize, weights: BlockWeights) {
        let asked = Question::new(asked);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(question, _)| *question == asked).unwrap_or_else(|| {
            if kept.len() >= self.questions {
                kept.pop_front();
            }
            kept.push_back((asked, vec![None; self.blocks]));
            kept.len() - 1
        });
        if let Some(place) = kept[at].1.get_mut(block) {
            *place = Some(Arc::new(weights));
        }
    }

    fn get(&self, asked: [&[f64]; 3], block: usize) -> Option<Arc<BlockWeights>> {
        let asked = Question::new(asked);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(question, _)| *question == asked).and_then(|(_, blocks)| blocks.get(block)?.clone())
    }
}

/// Where a block's weights are kept.
#[derive(Clone, Copy)]
pub struct Shelf<'a> {
    kept: &'a KeptWeights,
    block: usize,
}

impl<'a> Shelf<'a> {
    /// That of a block of this number.
    pub(super) fn of(kept: &'a KeptWeights, block: usize) -> Self {
        Self { kept, block }
    }

    /// Keeps the weights of a whole block.
    pub fn put(self, asked: [&[f64]; 3], weights: BlockWeights) {
        self.kept.put(asked, self.block, weights);
    }

    /// Returns the weights of the block, where they are kept for this point.
    pub fn get(self, asked: [&[f64]; 3]) -> Option<Arc<BlockWeights>> {
        self.kept.get(asked, self.block)
    }
}
