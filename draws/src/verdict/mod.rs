//! The verdict on an ended run's answer, the same for every algorithm and on every surface.
//!
//! An answer is *fit to publish* if its draws meet the limits of Vehtari et al. (2021, section 4): split R-hat at most 1.01, and bulk
//! and tail effective sample sizes of at least 100 per chain and 400 in total. An answer from noisy statistics whose checks pass
//! is held to the same limits: its draws are those of a Markov chain given the releases. An answer is *preliminary* if it meets looser
//! limits only, and *not usable* otherwise, or if a check of [`Adequacy`](crate::result::Adequacy) fails.

mod ended;
mod remedy;
#[cfg(test)]
mod tests;

use conclave_common::job::{JobSpec, Wanted};
use conclave_inference::diagnostics::Summary;
use conclave_inference::sampler::Adequacy;
use serde::Serialize;

use crate::outcome::{Outcome, StoppedBy};
pub(crate) use ended::Ended;

/// Grade of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No figure of the answer can be relied on.
    NotUsable,
    /// The answer shows sign and size; its figures will still change.
    Preliminary,
    /// The answer meets the limits for publication.
    FitToPublish,
}

/// The verdict on an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The grade.
    pub grade: Grade,
    /// The reasons why it is not fit to publish; empty if it is.
    pub reasons: Vec<String>,
    /// The limits that a preliminary answer meets: the job's own, where it states looser ones than those for publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<Wanted>,
    /// The next step towards an answer that is fit to publish; `None` if this one is, or if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Verdict {
    /// Judges an ended run.
    pub(crate) fn of(run: &Ended<'_>) -> Self {
        let (grade, reasons) = match run.adequacy.adequate {
            true => chains(run),
            // These reasons decide; the limits of publication add nothing.
            false => (Grade::NotUsable, run.adequacy.reasons.clone()),
        };
        Self {
            grade,
            met: (grade == Grade::Preliminary).then(|| looser(run.spec)),
            remedy: (grade != Grade::FitToPublish).then(|| remedy::remedy(run)).flatten(),
            reasons,
        }
    }
}

/// Checks the answer of an ended run. Draws under a clip that stopped the run are of another posterior, however well they mix.
pub(crate) fn checked(outcome: &Outcome, rows: &[(&str, Summary)]) -> Adequacy {
    let mut adequacy = Adequacy::of(&outcome.report, rows);
    if outcome.stopped_by == StoppedBy::Clip {
        adequacy.adequate = false;
        adequacy.reasons.push("the clip cuts too many ratios, so the draws are of another posterior".to_owned());
    }
    adequacy
}

/// The words before a warning on the draws themselves, which is a reason against their publication.
const ON_DRAWS: &str = "a warning on the draws: ";

/// Returns the limits of a preliminary answer.
fn looser(spec: &JobSpec) -> Wanted {
    spec.sampler.until.map_or(Wanted::PRELIMINARY, |_| spec.sampler.wanted().or_preliminary())
}

/// Grades draws by R-hat and effective sample size, with the reasons for a grade below the best.
fn chains(run: &Ended<'_>) -> (Grade, Vec<String>) {
    let (strict, looser) = (Wanted::usual(run.spec.sampler.chains), looser(run.spec));
    let (rhat, ess) = (run.rhat(), run.ess());
    let mut reasons = Vec::new();
    let mut grade = Grade::FitToPublish;
    let mut add = |at_most: Grade, reason: String| {
        grade = grade.min(at_most);
        reasons.push(reason);
    };
    let worst =
        |of: fn(&Summary) -> f64| run.rows.iter().max_by(|a, b| of(&a.1).total_cmp(&of(&b.1))).map_or("", |(name, _)| name);
    match run.spec.sampler.chains {
        _ if run.is_independent() => {}
        1 => add(Grade::Preliminary, "one chain does not show whether it has converged: run four".to_owned()),
        _ if rhat.is_nan() => {
            add(Grade::NotUsable, "R-hat is not defined: there are too few draws, or a chain never moved".to_owned())
        }
        _ if rhat > strict.rhat => {
            let at_most = if rhat <= looser.rhat { Grade::Preliminary } else { Grade::NotUsable };
            add(at_most, format!("R-hat of {} is {rhat:.3}, above {}", worst(|row| row.rhat), strict.rhat));
        }
        _ => {}
    }
    if ess < strict.ess {
        let at_most = if ess >= looser.ess { Grade::Preliminary } else { Grade::NotUsable };
        let name = worst(|row| -ended::least_ess(row));
        // Rounded down, so that a figure below the limit is never shown as the limit.
        add(at_most, format!("the effective sample size of {name} is {:.0}, below {:.0}", ess.floor(), strict.ess));
    }
    if run.is_untested() {
        add(Grade::Preliminary, "its steps were never tested, so the draws have a bias that no diagnostic shows".to_owned());
    }
    if run.outcome.stopped_by != StoppedBy::Futility {
        run.outcome
            .warnings
            .iter()
            .for_each(|warning| add(Grade::Preliminary, format!("{ON_DRAWS}{}", warning.trim_end_matches('.'))));
    }
    (grade, reasons)
}
