//! Interpretation of diagnostics in sentences: warnings with a remedy, and the share of the reported spread that a small budget
//! causes.

use conclave_common::job::Wanted;

use super::summary::Summary;

/// Draws with a split R-hat above this are unusable.
const RHAT_USELESS: f64 = 1.1;

/// Assessment of a run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// Warnings, each with a remedy; empty if there are none.
    pub warnings: Vec<String>,
    /// Largest Monte Carlo standard error of a mean, as a share of that parameter's posterior sd; `NaN` if none can be computed.
    pub mcse_to_sd: f64,
    /// Sentence on the share of the reported spread that is due to too little budget.
    pub budget_error: String,
}

/// Assesses a run by its parameters' summaries, `(name, summary)`. `ended_by_budget` is true if the budget ended the run before
/// its last draw.
#[must_use]
pub fn verdict(rows: &[(&str, Summary)], chains: u32, wanted: Wanted, ended_by_budget: bool) -> Verdict {
    let remedy =
        if ended_by_budget { "a larger epsilon, more records or fewer parameters" } else { "more draws, or a longer warm-up" };
    let mut warnings = Vec::new();
    warnings.extend(mixing_warnings(rows, chains, wanted.rhat, remedy));
    warnings.extend(never_moved(rows).map(|name| {
        format!(
            "all draws of {name} are equal: its chains never moved, and no posterior has this spread. Do not use these draws."
        )
    }));
    warnings.extend(sample_size_warnings(rows, wanted.ess, remedy));
    let worst = worst_error(rows).filter(|_| never_moved(rows).is_none());
    if let Some((name, share)) = worst.filter(|(_, share)| *share > wanted.error_share()) {
        warnings.push(format!(
            "the mean of {name} is uncertain by {:.0}% of its posterior sd because of Monte Carlo error alone (limit {:.0}%); try {remedy}.",
            100.0 * share,
            100.0 * wanted.error_share()
        ));
    }
    Verdict { warnings, mcse_to_sd: worst.map_or(f64::NAN, |w| w.1), budget_error: budget_error(rows, worst, ended_by_budget) }
}

/// Warning for a single chain. It does not apply to independent draws, which need no comparison.
pub const ONE_CHAIN: &str = "R-hat cannot be computed from one chain: run four.";

fn mixing_warnings(rows: &[(&str, Summary)], chains: u32, most: f64, remedy: &str) -> Vec<String> {
    let mut out = Vec::new();
    let worst = rows.iter().filter(|(_, s)| s.rhat > most).max_by(|a, b| a.1.rhat.total_cmp(&b.1.rhat));
    if let Some((name, s)) = worst {
        let severity = if s.rhat > RHAT_USELESS { " Do not use these draws." } else { "" };
        out.push(format!("the chains disagree: split R-hat of {name} is {:.3}, above {most}; try {remedy}.{severity}", s.rhat));
    }
    if chains < 2 {
        out.push(ONE_CHAIN.to_owned());
    } else if let Some((name, _)) = rows.iter().find(|(_, s)| s.rhat.is_nan()) {
        out.push(format!(
            "split R-hat of {name} can't be computed: there are too few draws, or a chain never moved. Do not rely on these draws; \
             try {remedy}."
        ));
    }
    out
}

fn sample_size_warnings(rows: &[(&str, Summary)], wanted: f64, remedy: &str) -> Vec<String> {
    let least = |what: &str, of: fn(&Summary) -> f64, so: &str| {
        let low = rows.iter().filter(|(_, s)| of(s) < wanted).min_by(|a, b| of(&a.1).total_cmp(&of(&b.1)));
        low.map(|(name, s)| {
            format!("few independent draws: the {what} effective sample size of {name} is {:.0}, below {wanted:.0}, so {so}; try {remedy}.", of(s))
        })
    };
    let bulk = least("bulk", |s| s.ess_bulk, "means and medians are uncertain");
    let tail = least("tail", |s| s.ess_tail, "the 5% and 95% quantiles are uncertain");
    bulk.into_iter().chain(tail).collect()
}

/// Returns a parameter whose draws are all equal.
fn never_moved<'a>(rows: &[(&'a str, Summary)]) -> Option<&'a str> {
    rows.iter().find(|(_, s)| s.sd == 0.0).map(|(name, _)| *name)
}

/// Returns the parameter whose mean has the largest Monte Carlo error in posterior sds.
fn worst_error<'a>(rows: &[(&'a str, Summary)]) -> Option<(&'a str, f64)> {
    let shares = rows.iter().map(|(name, s)| (*name, s.mcse_mean / s.sd)).filter(|(_, share)| share.is_finite());
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// States how much Monte Carlo error widens the spread of the reported means.
///
/// A reported mean varies around the truth by the posterior sd and by the Monte Carlo error. The error's variance falls in
/// proportion to the number of draws, and so to the budget's mu^2.
fn budget_error(rows: &[(&str, Summary)], worst: Option<(&str, f64)>, ended_by_budget: bool) -> String {
    let Some((name, share)) = worst else {
        if let Some(name) = never_moved(rows) {
            return format!("The share of the spread due to too little budget is unknown: the chains of {name} never moved.");
        }
        return "The share of the spread due to too little budget is unknown: there are too few draws.".to_owned();
    };
    let extra = 100.0 * ((1.0 + share * share).sqrt() - 1.0);
    let cause = if ended_by_budget { "too little budget" } else { "too few draws" };
    format!(
        "Relative to the posterior's own spread, {cause} adds at most {extra:.1}% to the spread of the reported means (the Monte Carlo \
         error is {:.1}% of the posterior sd, for {name}); four times the draws, at four times the mu^2, would halve that error.",
        100.0 * share
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::summary::EMPTY;

    fn row(rhat: f64, ess: f64, mcse: f64) -> Summary {
        Summary { mean: 1.0, sd: 2.0, rhat, ess_bulk: ess, ess_tail: ess, mcse_mean: mcse, ..EMPTY }
    }

    #[test]
    fn a_good_run_has_no_warning_and_a_figure() {
        let v = verdict(&[("age", row(1.003, 900.0, 0.06)), ("dose", row(1.0, 900.0, 0.02))], 4, Wanted::usual(4), true);
        assert!(v.warnings.is_empty(), "{v:?}");
        assert!((v.mcse_to_sd - 0.03).abs() < 1e-15);
        assert!(v.budget_error.contains("too little budget adds at most 0.0%") && v.budget_error.contains("3.0% of"), "{v:?}");
    }

    #[test]
    fn each_fault_names_parameter_and_remedy() {
        let good = ("dose", row(1.0, 900.0, 0.02));
        let cases = [
            (row(1.02, 900.0, 0.02), "R-hat of age is 1.020", "larger epsilon"),
            (row(1.3, 900.0, 0.02), "R-hat of age is 1.300", "Do not use these draws"),
            (row(f64::NAN, 900.0, 0.02), "R-hat of age can't", "never moved"),
            (
                Summary { ess_bulk: 399.0, ..row(1.0, 900.0, 0.02) },
                "bulk effective sample size of age is 399, below 400",
                "larger epsilon",
            ),
            (Summary { ess_tail: 20.0, ..row(1.0, 900.0, 0.02) }, "tail effective sample size of age is 20", "quantiles"),
            (row(1.0, 900.0, 0.5), "mean of age is uncertain by 25%", "larger epsilon"),
        ];
        for (bad, what, word) in cases {
            let v = verdict(&[("age", bad), good], 4, Wanted::usual(4), true);
            assert_eq!(v.warnings.len(), 1, "{v:?}");
            assert!(v.warnings[0].contains(what) && v.warnings[0].contains(word), "{v:?}");
        }
        let v = verdict(&[good], 4, Wanted::usual(4), false);
        assert!(v.budget_error.contains("too few draws"), "{v:?}");
        assert!(verdict(&[good], 10, Wanted::usual(10), false).warnings[0].contains("below 1000"), "100 per chain");
    }

    /// Lower requirements suppress the warnings, except the warning about unusable draws.
    #[test]
    fn a_job_may_want_less() {
        let less = Wanted { ess: 100.0, rhat: 1.05 };
        let of = |summary| verdict(&[("age", summary)], 4, less, true).warnings;
        assert_eq!(of(row(1.04, 120.0, 0.18)), Vec::<String>::new());
        assert_eq!(of(row(1.0, 120.0, 0.23)), Vec::<String>::new(), "11% of the sd: slightly more than the error of 100 draws");
        assert!(of(row(1.0, 120.0, 0.25))[0].contains("limit 12%"));
        assert!(of(row(1.06, 120.0, 0.18))[0].contains("is 1.060, above 1.05"));
        assert!(of(row(1.0, 90.0, 0.18))[0].contains("below 100"));
        assert!(of(row(1.2, 120.0, 0.18))[0].contains("Do not use"));
    }

    #[test]
    fn what_cannot_be_computed_is_said() {
        let v = verdict(&[("age", Summary { sd: 0.0, mcse_mean: 0.0, ..row(f64::NAN, 900.0, 0.0) })], 1, Wanted::usual(1), true);
        assert!(v.warnings.iter().any(|w| w.contains("one chain")), "{v:?}");
        assert!(v.mcse_to_sd.is_nan() && v.budget_error.contains("is unknown"));
        assert!(verdict(&[], 4, Wanted::usual(4), true).budget_error.contains("is unknown"));
    }

    /// One parameter that stood still makes the whole run's error unknown, and the others' figures do not hide it.
    #[test]
    fn a_chain_that_never_moved_has_no_error_to_state() {
        let still = Summary { sd: 0.0, ess_bulk: f64::NAN, ess_tail: f64::NAN, mcse_mean: f64::NAN, ..row(f64::NAN, 900.0, 0.0) };
        for chains in [1, 4] {
            let v = verdict(&[("age", still), ("dose", row(1.0, 900.0, 0.02))], chains, Wanted::usual(chains), true);
            assert!(v.mcse_to_sd.is_nan() && v.budget_error.contains("the chains of age never moved"), "{v:?}");
            assert!(v.warnings.iter().any(|w| w.contains("all draws of age are equal")), "{v:?}");
        }
    }
}
