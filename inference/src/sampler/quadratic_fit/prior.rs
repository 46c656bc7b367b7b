//! The prior beside a normal likelihood.

/// The log prior density of the coordinates, as the fit counts them. It is a sum over coordinates.
pub(super) struct PriorTerms<'a> {
    /// Log density up to a constant, the coordinates' Jacobian included.
    pub(super) log_density: &'a dyn Fn(&[f64]) -> f64,
    /// Where the first step begins.
    pub(super) location: Vec<f64>,
    /// Minus the second derivative there; 0 where the prior says nothing.
    pub(super) precision: Vec<f64>,
}

impl PriorTerms<'_> {
    /// Slope and second derivative of the log density along each coordinate, on average over a normal
    /// distribution of this mean and these sds: by the three points of Gauss-Hermite, exact up to the fifth power
    /// of a coordinate.
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
