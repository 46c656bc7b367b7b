//! Prior densities to a power, which are priors of the same family, or of the family that contains it.

use super::family::Prior;

impl Prior {
    /// Returns the priors whose densities are proportional to these to the power, which lies in (0, 1]: the prior of a scaled
    /// posterior sample (Wang, Fienberg & Smola 2015, Algorithm 1).
    ///
    /// # Errors
    /// The first prior whose density to the power has no finite integral, by its index: a heavy tail and a small power.
    pub fn to_the_power(priors: &[Self], power: f64) -> Result<Vec<Self>, usize> {
        let mut raised = Vec::with_capacity(priors.len());
        // From the last to the first, as a component of a Dirichlet prior holds the sum of those after it.
        let mut after = 0.0;
        for (at, prior) in priors.iter().enumerate().rev() {
            let one = match *prior {
                Prior::Dirichlet { concentration, after: rest } => {
                    let concentration = shape_to_the_power(concentration, power);
                    let after_this = if rest == 0.0 { 0.0 } else { after };
                    after = after_this + concentration;
                    Some(Prior::Dirichlet { concentration, after: after_this })
                }
                one => one.one_to_the_power(power),
            };
            raised.push(one.ok_or(at)?);
        }
        raised.reverse();
        Ok(raised)
    }

    fn one_to_the_power(self, power: f64) -> Option<Self> {
        let narrow = |sd: f64| sd / power.sqrt();
        let shape = |shape: f64| shape_to_the_power(shape, power);
        Some(match self {
            Prior::Normal { mean, sd } => Prior::Normal { mean, sd: narrow(sd) },
            Prior::HalfNormal { sd } => Prior::HalfNormal { sd: narrow(sd) },
            Prior::StudentT { df, location, scale } => {
                let (df, scale) = tail_to_the_power(df, scale, power)?;
                Prior::StudentT { df, location, scale }
            }
            Prior::Cauchy { location, scale } => {
                let (df, scale) = tail_to_the_power(1.0, scale, power)?;
                Prior::StudentT { df, location, scale }
            }
            Prior::HalfStudentT { df, scale } => {
                let (df, scale) = tail_to_the_power(df, scale, power)?;
                Prior::HalfStudentT { df, scale }
            }
            Prior::HalfCauchy { scale } => {
                let (df, scale) = tail_to_the_power(1.0, scale, power)?;
                Prior::HalfStudentT { df, scale }
            }
            Prior::Uniform { .. } | Prior::Dirichlet { .. } => self,
            Prior::Gamma { shape: a, rate } => Prior::Gamma { shape: shape(a), rate: power * rate },
            Prior::Exponential { rate } => Prior::Exponential { rate: power * rate },
            Prior::InverseGamma { shape, scale } => {
                let shape = power * (shape + 1.0) - 1.0;
                (shape > 0.0).then_some(Prior::InverseGamma { shape, scale: power * scale })?
            }
            // -rho log x - rho (log x - m)²/(2 s²) is that of a lognormal of location m + s² (1 - rho)/rho.
            Prior::LogNormal { location, scale } => {
                Prior::LogNormal { location: location + scale * scale * (1.0 - power) / power, scale: narrow(scale) }
            }
            Prior::Beta { a, b } => Prior::Beta { a: shape(a), b: shape(b) },
        })
    }
}

/// Returns the shape of a density `x^(shape - 1)` to the power; it is positive.
fn shape_to_the_power(shape: f64, power: f64) -> f64 {
    power * (shape - 1.0) + 1.0
}

/// Returns the degrees of freedom and the scale of a Student density to the power; `None` if it has no finite integral.
fn tail_to_the_power(df: f64, scale: f64, power: f64) -> Option<(f64, f64)> {
    let raised = power * (df + 1.0) - 1.0;
    (raised > 0.0).then(|| (raised, scale * (df / raised).sqrt()))
}
