//! The number of parties whose noise protects an opened value.

use std::num::NonZeroU32;

/// The number of parties whose noise, of equal scale, an adversary cannot subtract from an opened value.
///
/// It is 1 where each party's answer is opened by itself: only its own noise protects it. It is `N - t` where only the sum over
/// `N` parties is opened and at most `t` other parties collude. The sum of `h` discrete Gaussians of scale `s` is a discrete
/// Gaussian of scale `s sqrt(h)`, up to a factor whose logarithm is below `7 (h - 1) exp(-pi^2 s^2)`. The ledger's slack for
/// discrete noise therefore needs no new term, and every price uses `h s^2` in place of `s^2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Honest(NonZeroU32);

impl Honest {
    /// The count where each answer is opened by itself.
    pub const ALONE: Self = Self(NonZeroU32::MIN);
    /// The largest count that a price accounts for.
    pub const MOST: u32 = 1 << 10;

    /// Creates a count from 1 to [`Honest::MOST`]; `None` outside.
    #[must_use]
    pub fn new(parties: u32) -> Option<Self> {
        NonZeroU32::new(parties).filter(|parties| parties.get() <= Self::MOST).map(Self)
    }

    /// Returns the number of parties.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// Returns [`Honest::ALONE`].
impl Default for Honest {
    fn default() -> Self {
        Self::ALONE
    }
}
