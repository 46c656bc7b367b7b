//! Thinned samples of draws.

/// Every n-th draw of a chain, with n doubling so that their number stays bounded, for the densities and pairs plots of a live
/// chain. Each row is a whole draw with one value per parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    rows: Vec<Vec<f64>>,
    capacity: usize,
    every: u64,
    draws: u64,
}

impl Sample {
    /// Creates an empty sample of at most `rows` draws, which is raised to 2.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self { rows: Vec::new(), capacity: rows.max(2), every: 1, draws: 0 }
    }

    /// Adds a draw: one value per parameter.
    pub fn push(&mut self, theta: &[f64]) {
        if self.draws.is_multiple_of(self.every) {
            if self.rows.len() == self.capacity {
                let mut keep = false;
                self.rows.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.every *= 2;
            }
            if self.draws.is_multiple_of(self.every) {
                self.rows.push(theta.to_vec());
            }
        }
        self.draws += 1;
    }

    /// Returns the values of one parameter, in the order of the draws.
    #[must_use]
    pub fn parameter(&self, index: usize) -> Vec<f64> {
        self.rows.iter().map(|row| row.get(index).copied().unwrap_or(f64::NAN)).collect()
    }

    /// Returns the thinning interval n.
    #[must_use]
    pub fn every(&self) -> u64 {
        self.every
    }
}

/// Returns at most `limit` of the values, evenly spaced from the first to the last.
#[must_use]
pub fn evenly_spaced(values: &[f64], limit: usize) -> Vec<f64> {
    let count = values.len().min(limit);
    let last = values.len().saturating_sub(1);
    (0..count).map(|i| values[if count > 1 { i * last / (count - 1) } else { last }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bounded_and_even() {
        let mut sample = Sample::new(100);
        (0..10_000).for_each(|i| sample.push(&[f64::from(i), -f64::from(i)]));
        let first = sample.parameter(0);
        assert!(first.len() <= 100 && first.len() > 45, "{}", first.len());
        assert!(first.windows(2).all(|pair| pair[1] - pair[0] == sample.every() as f64), "{first:?}");
        assert_eq!((first[0], sample.parameter(1)[1]), (0.0, -first[1]));
        assert!(sample.parameter(7).iter().all(|x| x.is_nan()));
    }

    #[test]
    fn thinned_values_are_evenly_spaced() {
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(evenly_spaced(&ten, 4), [0.0, 3.0, 6.0, 9.0]);
        assert_eq!((evenly_spaced(&ten, 20), evenly_spaced(&ten, 1)), (ten, vec![9.0]));
        assert!(evenly_spaced(&[], 5).is_empty() && evenly_spaced(&[1.0], 0).is_empty());
    }
}
