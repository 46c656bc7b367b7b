//! The progress of chains toward the effective draws that will end their run.

use crate::text::thousands;

/// Chains and the target of their job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The least effective sample size of all parameters so far.
    pub ess: f64,
    /// The largest split R-hat so far; `NaN` if it is not known yet.
    pub rhat: f64,
    /// The effective sample size that ends the run.
    pub ess_wanted: f64,
    /// The R-hat that ends the run.
    pub rhat_wanted: f64,
}

impl Target {
    /// Returns the effective draws in whole numbers, at most those wanted: `(44, 50)`.
    #[must_use]
    pub fn effective(&self) -> (u64, u64) {
        // Both are sample sizes, far below 2^53.
        let wanted = self.ess_wanted.ceil().max(0.0) as u64;
        (if self.ess.is_finite() { (self.ess.max(0.0) as u64).min(wanted) } else { 0 }, wanted)
    }

    /// Formats `44 of 50 effective draws`, and R-hat where it keeps the run from its end.
    #[must_use]
    pub fn words(&self) -> String {
        let (done, wanted) = self.effective();
        let rhat = match self.rhat > self.rhat_wanted {
            true => format!(", R-hat {:.2} of at most {}", self.rhat, self.rhat_wanted),
            false => String::new(),
        };
        format!("{} of {} effective draws{rhat}", thousands(done), thousands(wanted))
    }

    /// Returns the draws per chain at which the effective draws suffice at this pace: `draws` are made, and at most `asked` will be.
    #[must_use]
    pub fn draws(&self, draws: u64, asked: u64) -> u64 {
        let factor = self.ess_wanted / self.ess;
        if !(factor.is_finite() && self.rhat <= self.rhat_wanted) {
            return asked;
        }
        ((draws as f64 * factor.max(1.0)).ceil() as u64).min(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_draws_are_counted_toward_the_target() {
        let target = Target { ess: 44.7, rhat: 1.02, ess_wanted: 50.0, rhat_wanted: 1.05 };
        assert_eq!((target.words(), target.effective()), ("44 of 50 effective draws".to_owned(), (44, 50)));
        assert_eq!((target.draws(447, 10_000), target.draws(447, 480)), (500, 480));
        // Chains that disagree do not end at the effective draws, and a figure beyond the target awaits the next look.
        let apart = Target { rhat: 1.2, ess: 90.0, ..target };
        assert_eq!(apart.words(), "50 of 50 effective draws, R-hat 1.20 of at most 1.05");
        assert_eq!((apart.draws(447, 10_000), Target { ess: 90.0, ..target }.draws(447, 10_000)), (10_000, 447));
        let unknown = Target { ess: f64::NAN, rhat: f64::NAN, ..target };
        assert_eq!((unknown.words(), unknown.draws(9, 100)), ("0 of 50 effective draws".to_owned(), 100));
    }
}
