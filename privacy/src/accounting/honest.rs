//! How many parties' noise protects each of them in what is opened of a release.

use std::num::NonZeroU32;

/// The number of parties whose noise, of one scale each, an adversary can't take off what is opened of a release.
///
/// 1 where each party's answer is opened by itself: its own noise is all that protects it. Where only the sum over `N` parties is opened and
/// at most `t` of the others work together, `N - t`. The sum of `h` discrete Gaussians of scale `s` is one of scale `s sqrt(h)` but for a
/// factor whose logarithm is below `7 (h - 1) exp(-pi^2 s^2)`, so that a ledger's allowance for discrete noise needs no new term: wherever
/// `s^2` stands in a price, `h s^2` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Honest(NonZeroU32);

impl Honest {
    /// Each answer is opened by itself.
    pub const ALONE: Self = Self(NonZeroU32::MIN);
    /// The most that a price is reckoned with.
    pub const MOST: u32 = 1 << 10;

    /// So many parties, 1 to [`Honest::MOST`]; `None` outside.
    #[must_use]
    pub fn new(parties: u32) -> Option<Self> {
        NonZeroU32::new(parties).filter(|parties| parties.get() <= Self::MOST).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// [`Honest::ALONE`].
impl Default for Honest {
    fn default() -> Self {
        Self::ALONE
    }
}
