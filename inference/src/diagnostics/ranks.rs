//! Rank normalisation.

/// Replaces every draw by the normal quantile of its pooled rank, `Phi^-1((rank - 3/8) / (count + 1/4))`. Ties share their mean
/// rank.
pub(super) fn z_scale(chains: &[&[f64]]) -> Vec<Vec<f64>> {
    let mut order: Vec<(f64, usize, usize)> =
        chains.iter().enumerate().flat_map(|(c, chain)| chain.iter().enumerate().map(move |(i, &x)| (x, c, i))).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let count = order.len() as f64;
    let mut scaled: Vec<Vec<f64>> = chains.iter().map(|chain| vec![0.0; chain.len()]).collect();
    let mut start = 0;
    // Compares values, not bits: -0 and 0 are the same draw.
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let rank = start as f64 + 0.5 * (tied.len() as f64 + 1.0);
        let z = normal_quantile((rank - 0.375) / (count + 0.25));
        for &(_, c, i) in tied {
            scaled[c][i] = z;
        }
        start += tied.len();
    }
    scaled
}

fn normal_quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * probability)
}
