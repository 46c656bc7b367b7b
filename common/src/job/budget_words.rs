//! Sentences by which a party refuses a job for its budget, or lets it wait, and the largest epsilon that it may ask for instead.

use crate::epsilon;
use conclave_privacy::accounting::{Budget, PrivacyFilter, gaussian_dp, mu_squared};

/// Thousandths of an epsilon that are tried.
const STEPS: u32 = 4;

/// A job whose cap a party's budget does not hold, as its analyst may see it.
#[derive(Debug, Clone, Copy)]
pub struct Shortage<'a> {
    /// The analyst.
    pub analyst: &'a str,
    /// The job's cap.
    pub cap: &'a Budget,
    /// Largest epsilon that the job may ask for now; `None` where the owner does not publish it.
    pub askable: Option<f64>,
    /// Other open jobs may still spend a part of the remaining budget.
    pub beside_others: bool,
}

impl Shortage<'_> {
    /// Returns the refusal of a job that may spend more than the remaining budget, with the remedy.
    #[must_use]
    pub fn refusal(&self) -> String {
        let (Budget { epsilon, delta, .. }, analyst) = (self.cap, self.analyst);
        let beside = if self.beside_others { " beside the jobs that are open there" } else { "" };
        let (what, remedy) = match self.askable {
            Some(askable) if askable > 0.0 => (
                format!("epsilon {} is left there for {analyst} at that delta{beside}", epsilon::room(askable)),
                format!("lower privacy.epsilon to {}", epsilon::room(askable)),
            ),
            Some(_) => (format!("nothing is left there for {analyst}{beside}"), "leave the party out".to_owned()),
            None => (format!("less is left there for {analyst}"), "lower privacy.epsilon".to_owned()),
        };
        format!(
            "the job may spend epsilon {epsilon} at delta {delta}, and {what}: {remedy}, or ask the owner for more. Nothing was asked; to have \
             the job end where the budget does, write force = true under [sampler]"
        )
    }

    /// Returns the reason why a job waits whose cap is free only once other jobs have ended.
    #[must_use]
    pub fn wait(&self) -> String {
        let why = "the jobs that are open there may still spend the budget that this one asks for";
        match self.askable {
            Some(askable) if askable > 0.0 => {
                format!("{why}: there is room for one more job of epsilon {} at delta {}", epsilon::room(askable), self.cap.delta)
            }
            Some(_) => format!("{why}: there is no room for one more job"),
            None => why.to_owned(),
        }
    }
}

/// Returns the refusal of a job whose blocks of subsampled releases take `part` of delta, where the owner's reserve holds less.
#[must_use]
pub fn reserve_refusal(has_reserve: bool, part: f64) -> String {
    let stands = if has_reserve { "has less left of what was set aside" } else { "has set none aside" };
    format!(
        "the job asks over samples (sampler.batch is below 1), which takes {part} of delta, and the owner {stands} for that ([budget] \
         delta_reserve in the party's configuration): ask all records, with batch = 1, or for a smaller privacy.delta_reserve. Nothing was asked"
    )
}

/// Returns the epsilon of `units` of mu², each 2^-48.
#[must_use]
pub fn epsilon_of(units: u64, delta: f64) -> f64 {
    if units == 0 { 0.0 } else { gaussian_dp::epsilon(mu_squared(units).sqrt(), delta) }
}

/// Returns the largest epsilon, in thousandths, whose budget at this one's delta holds at most `units` of 2^-48 of mu², so that it can be
/// requested; 0 where there is none.
#[must_use]
pub fn askable(units: u64, budget: &Budget) -> f64 {
    let holds = |thousandths: f64| {
        let budget = Budget { epsilon: thousandths / 1e3, ..*budget };
        PrivacyFilter::new(&budget).is_ok_and(|filter| filter.limit_units() <= units)
    };
    // The epsilon of a budget's units is a little less than the budget's, as they are rounded down.
    let most = (epsilon_of(units, budget.delta) * 1e3).floor() + 1.0;
    (0..STEPS).map(|step| most - f64::from(step)).find(|thousandths| *thousandths > 0.0 && holds(*thousandths)).unwrap_or(0.0)
        / 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_reported_budget_can_be_used_and_no_thousandth_more() {
        let budget = |epsilon: f64| Budget::new(epsilon, 1e-6).unwrap();
        for epsilon in [0.1, 1.0, 3.0, 7.125, 20.0, 400.0] {
            let units = PrivacyFilter::new(&budget(epsilon)).unwrap().limit_units();
            assert_eq!(askable(units, &budget(8.0)), epsilon);
            let less = askable(units - 1, &budget(8.0));
            assert!((epsilon - 0.0015..epsilon).contains(&less), "{epsilon}: {less}");
        }
        assert_eq!(askable(0, &budget(8.0)), 0.0);
    }

    #[test]
    fn an_owner_who_keeps_the_budget_private_publishes_no_figure() {
        let cap = Budget::new(3.0, 1e-6).unwrap();
        let shortage = Shortage { analyst: "alice", cap: &cap, askable: Some(1.25), beside_others: true };
        assert!(shortage.refusal().contains("epsilon 1.25 is left there for alice at that delta beside the jobs"));
        assert!(shortage.wait().contains("room for one more job of epsilon 1.25 at delta 0.000001"), "{}", shortage.wait());
        let private = Shortage { askable: None, ..shortage };
        for words in [private.refusal(), private.wait()] {
            assert!(!words.contains("1.25") && !words.contains("room for"), "{words}");
        }
    }
}
