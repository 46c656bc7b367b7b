//! A cache of the weights of recent gradients' vectors, used by the remainders of the same steps.
//!
//! Weights are integers, and a remainder has the same bits whether it uses the cache or recomputes them. The public queries
//! decide which gradients are cached. A block on which a gradient's kernel panics is not cached.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::small_tile::TileLane;
use super::tile::Tile;

/// The maximum size of a job's cache in bytes. A larger shard is not cached.
const MOST_BYTES: u64 = 1 << 28;

/// The weights of a block's vectors.
pub struct BlockWeights {
    /// Weights of the slopes in the linear predictor.
    pub(super) slopes: Vec<i32>,
    /// Weights of the slopes in the family's own parameter, if it has one.
    pub(super) own: Vec<i32>,
}

impl BlockWeights {
    /// Creates space for the weights of `records` records.
    pub(super) fn of(records: usize, own: bool) -> Self {
        Self { slopes: Vec::with_capacity(records), own: Vec::with_capacity(if own { records } else { 0 }) }
    }
}

/// The cached weights of a block, which a kernel reads tile by tile: it sees no weight of a record outside its tile.
///
/// ```compile_fail
/// # use conclave_privacy::pass::weight_cache::CachedWeights;
/// fn of_all_records(weights: &CachedWeights) -> &[i32] {
///     &weights.block.slopes
/// }
/// ```
/// ```
/// # use conclave_privacy::pass::{small_tile::TileLane, tile::Tile, weight_cache::CachedWeights};
/// fn of_a_tile(weights: &CachedWeights, rows: &Tile<'_>, slopes: &mut [TileLane<f64>; 2]) {
///     weights.recall(rows, slopes);
/// }
/// ```
pub struct CachedWeights {
    pub(super) block: Arc<BlockWeights>,
    /// The place of the block's first record in its columns.
    pub(super) first: usize,
}

impl CachedWeights {
    /// Copies the weights of a tile's records: of the slopes in the linear predictor, and in the family's own parameter. Weights
    /// that are not cached are zero.
    #[inline(always)]
    pub fn recall(&self, rows: &Tile<'_>, slopes: &mut [TileLane<f64>; 2]) {
        let places = rows.range().start - self.first..rows.range().end - self.first;
        for (cached, lane) in [&self.block.slopes, &self.block.own].into_iter().zip(slopes) {
            let lane = &mut lane.0[..rows.len()];
            match cached.get(places.clone()) {
                Some(cached) => lane.iter_mut().zip(cached).for_each(|(weight, cached)| *weight = f64::from(*cached)),
                None => lane.fill(0.0),
            }
        }
    }
}

/// The identity of a gradient: the bits of the point and of the frame.
#[derive(PartialEq, Eq)]
struct GradientKey(Vec<u64>);

impl GradientKey {
    fn new(numbers: [&[f64]; 3]) -> Self {
        Self(numbers.into_iter().flatten().map(|x| x.to_bits()).collect())
    }
}

/// The cached weights of a job's most recent gradients.
pub struct WeightCache {
    /// The maximum number of gradients.
    gradients: usize,
    blocks: usize,
    kept: Mutex<VecDeque<(GradientKey, ByBlock)>>,
}

/// The weights of each block, if computed.
type ByBlock = Vec<Option<Arc<BlockWeights>>>;

impl WeightCache {
    /// Creates a cache for the given number of gradients, one per chain of the job. Caches nothing if the shard, of `records`
    /// records in `blocks` blocks, would need too much memory.
    #[must_use]
    pub fn new((records, blocks): (u64, usize), gradients: usize) -> Self {
        let bytes = records.saturating_mul(2 * size_of::<i32>() as u64).saturating_mul(gradients as u64);
        let gradients = if bytes <= MOST_BYTES { gradients } else { 0 };
        Self { gradients, blocks, kept: Mutex::default() }
    }

    /// Returns whether the cache has any capacity.
    pub(super) fn has_capacity(&self) -> bool {
        self.gradients > 0
    }

    /// Returns the number of gradients in the cache.
    #[cfg(any(test, feature = "test-util"))]
    pub fn gradients(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn put(&self, gradient: [&[f64]; 3], block: usize, weights: BlockWeights) {
        let gradient = GradientKey::new(gradient);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(key, _)| *key == gradient).unwrap_or_else(|| {
            if kept.len() >= self.gradients {
                kept.pop_front();
            }
            kept.push_back((gradient, vec![None; self.blocks]));
            kept.len() - 1
        });
        if let Some(place) = kept[at].1.get_mut(block) {
            *place = Some(Arc::new(weights));
        }
    }

    fn get(&self, gradient: [&[f64]; 3], block: usize) -> Option<Arc<BlockWeights>> {
        let gradient = GradientKey::new(gradient);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(key, _)| *key == gradient).and_then(|(_, blocks)| blocks.get(block)?.clone())
    }
}

/// The part of the cache that holds one block's weights.
#[derive(Clone, Copy)]
pub struct BlockCache<'a> {
    kept: &'a WeightCache,
    block: usize,
}

impl<'a> BlockCache<'a> {
    /// Selects the part of block `block`.
    pub(super) fn of(kept: &'a WeightCache, block: usize) -> Self {
        Self { kept, block }
    }

    /// Stores the weights of a whole block.
    pub(super) fn put(self, gradient: [&[f64]; 3], weights: BlockWeights) {
        self.kept.put(gradient, self.block, weights);
    }

    /// Returns the block's weights, if they are cached for this gradient.
    pub(super) fn get(self, gradient: [&[f64]; 3]) -> Option<Arc<BlockWeights>> {
        self.kept.get(gradient, self.block)
    }
}
