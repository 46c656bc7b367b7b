//! Functions that trim, split and pool chains of draws.

/// Cuts all chains to the length of the shortest.
pub(super) fn equal_lengths<'a>(chains: &[&'a [f64]]) -> Vec<&'a [f64]> {
    let draws = chains.iter().map(|chain| chain.len()).min().unwrap_or(0);
    chains.iter().map(|chain| &chain[..draws]).collect()
}

/// True if every chain has at least four draws and all draws are finite.
pub(super) fn is_usable(chains: &[&[f64]]) -> bool {
    !chains.is_empty() && chains.iter().all(|chain| chain.len() >= 4 && chain.iter().all(|x| x.is_finite()))
}

/// True if all draws of all chains are equal up to rounding. Such chains say nothing of a posterior, however many draws they have.
pub(super) fn never_moved(chains: &[&[f64]]) -> bool {
    /// Largest range of equal draws, in units of rounding.
    const ROUNDING: f64 = 16.0;
    let draws = || chains.iter().flat_map(|chain| chain.iter());
    let (least, greatest) = draws().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    greatest - least <= ROUNDING * f64::EPSILON * greatest.abs().max(least.abs())
}

/// Returns the first halves, then the second halves. An odd length omits the middle draw.
pub(super) fn split<'a>(chains: &[&'a [f64]]) -> Vec<&'a [f64]> {
    let half = |chain: &&'a [f64]| chain.len() / 2;
    let first = chains.iter().map(|chain| &chain[..half(chain)]);
    first.chain(chains.iter().map(|chain| &chain[chain.len() - half(chain)..])).collect()
}

/// Concatenates the draws of all chains.
pub(super) fn pooled(chains: &[&[f64]]) -> Vec<f64> {
    chains.iter().flat_map(|chain| chain.iter().copied()).collect()
}

/// Borrows the chains as slices.
pub(super) fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    chains.iter().map(Vec::as_slice).collect()
}
