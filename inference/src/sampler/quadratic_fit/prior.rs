//! The prior of a normal likelihood.

/// The log prior density of the fit's coordinates, which is a sum over coordinates.
pub(super) struct PriorTerms<'a> {
    /// Log density up to a constant, including the coordinates' Jacobian.
    pub(super) log_density: &'a dyn Fn(&[f64]) -> f64,
    /// Starting point of the first step.
    pub(super) location: Vec<f64>,
    /// Minus the second derivative at that point; 0 if the prior is flat.
    pub(super) precision: Vec<f64>,
}

impl PriorTerms<'_> {
    /// Returns slope and second derivative of the log density along each coordinate, averaged over a normal distribution of this
    /// mean and these sds. Three Gauss-Hermite points are exact up to the fifth power of a coordinate.
    pub(super) fn averaged(&self, mean: &[f64], sd: &[f64]) -> Vec<(f64, f64)> {
        let middle = (self.log_density)(mean);
        let along = |j: usize| {
            let side = |sign: f64| {
                let mut point = mean.to_vec();
                point[j] += sign * 3.0_f64.sqrt() * sd[j];
                (self.log_density)(&point)
            };
            let (up, down) = (side(1.0), side(-1.0));
            let slope = (up - down) / (2.0 * 3.0_f64.sqrt() * sd[j]);
            (slope, (up - 2.0 * middle + down) / (3.0 * sd[j] * sd[j]))
        };
        (0..mean.len()).map(along).collect()
    }
}
