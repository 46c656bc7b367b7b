//! A job's progress toward its end in one sentence, and the figures of the run.

use conclave_common::job::JobSpec;
use conclave_common::query::Phase;
use conclave_pages::site;
use conclave_pages::text::{duration, percent, plain_name, thousands};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};
use maud::{Markup, html};

use super::super::watched_job::RunPace;
use super::head::samples;
use crate::status::Status;

/// Renders the progress toward the rule that will end the job: its draws, its effective draws, or the budget of a party. One sentence
/// states it; the other figures are those of the run so far.
pub(super) fn progress(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    let rate = pace.draws_per_second.map(|rate| format!("{rate:.1}"));
    html! {
        @if status.phase == Some(Phase::Sampling) && !status.state.has_ended() { (toward_the_end(status, pace, spec)) }
        @if status.iteration > 0 { dl.tiles {
            div { dt { "Draws per chain" } dd { (thousands(status.draws)) @if status.state.has_ended() { " of " (thousands(status.draws_asked)) } } }
            div { dt { "Rounds" } dd { (thousands(status.iteration)) } }
            div { dt { "Sampling time" } dd { (duration(status.seconds)) } }
            @if let Some(accepted) = status.acceptance() { div { dt { "Proposals accepted" } dd { (percent(accepted)) } } }
            @if let Some(rate) = rate { div { dt { "Draws per chain and second" } dd { (rate) } } }
        } }
        @if !status.state.has_ended() { p { a.danger href={ "/jobs/" (status.id) "/cancel" } { "Cancel this job…" } } }
    }
}

/// Renders what ends the run, how far it is and how long it takes, in one sentence with a bar.
fn toward_the_end(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    // A job that is paused makes no draw, so that its end has no time.
    let forecast = pace.forecast.as_ref().filter(|_| samples(status));
    let left = forecast.map(|forecast| format!(", about {} left", duration(forecast.seconds_left))).unwrap_or_default();
    let ends = forecast.and_then(|forecast| status.parties.get(forecast.ended_by?));
    let limit =
        spec.and_then(|spec| PrivacyFilter::new(&spec.privacy.budget).ok()).map(|filter| mu_squared(filter.limit_units()));
    let counted = pace.target.map_or_else(
        || format!("{} of {} draws per chain", thousands(status.draws), thousands(status.draws_asked)),
        |target| target.words(),
    );
    let (done, all, words) = match ends.zip(limit) {
        Some((party, limit)) => {
            let share = (party.spent.mu_squared() / limit).clamp(0.0, 1.0);
            // The bars of the budgets have the figures, in epsilon.
            let words = format!("{counted}; the budget at {} will end the run{left}", plain_name(&party.name));
            ((1e3 * share) as u64, 1000, words)
        }
        None => {
            let (done, all) = pace.target.map_or((status.draws, status.draws_asked), |target| target.effective());
            (done, all, format!("{counted}{left}"))
        }
    };
    let does = if samples(status) { "Sampling, " } else { "Draws so far: " };
    html! { p { b { (does) (words) "." } " " (site::bar(done, all, &words)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_pages::forecast::Forecast;
    use conclave_pages::target::Target;

    use super::super::head::state;
    use crate::status::{PartyStatus, State};

    /// The head counts what ends the run: effective draws where the job states a target, and the budget where it ends the run first.
    #[test]
    fn a_running_job_counts_toward_the_rule_that_ends_it() {
        let status = Status {
            state: State::Running,
            phase: Some(Phase::Sampling),
            iteration: 460,
            draws: 447,
            draws_asked: 10_000,
            parties: vec![PartyStatus { name: "a".to_owned(), ..Default::default() }],
            ..Status::default()
        };
        let target = Target { ess: 44.7, rhat: 1.02, ess_wanted: 50.0, rhat_wanted: 1.05 };
        let forecast = |ended_by| Some(Forecast { seconds_left: 4.0, ended_by, mu_squared: vec![0.1] });
        let pace = RunPace { target: Some(target), forecast: forecast(None), ..RunPace::default() };
        let page = progress(&status, &pace, None).into_string();
        assert!(page.contains("<b>Sampling, 44 of 50 effective draws, about 4 s left.</b>"), "{page}");
        assert!(page.contains("value=\"44\" max=\"50\"") && page.contains("<dd>447</dd>"), "{page}");
        // One sentence and one bar: no other figure is a progress.
        assert_eq!(
            (page.matches("<progress").count(), page.matches(" of ").count()),
            (1, 2),
            "the sentence and the bar's label: {page}"
        );
        let plain = progress(&status, &RunPace { target: None, ..pace.clone() }, None).into_string();
        assert!(plain.contains("<b>Sampling, 447 of 10,000 draws per chain, about 4 s left.</b>"), "{plain}");
        let spec = JobSpec::parse(
            "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n[privacy]\n\
             epsilon = 1.0\ndelta = 1e-6\n",
        );
        let page = progress(&status, &RunPace { forecast: forecast(Some(0)), ..pace }, spec.ok().as_ref()).into_string();
        let words = "Sampling, 44 of 50 effective draws; the budget at a will end the run, about 4 s left.";
        assert!(page.contains(words) && page.contains("max=\"1000\""), "{page}");
    }

    /// A paused job makes no draw: its page states no time left, and nothing else than the notice states its state.
    #[test]
    fn a_paused_job_is_not_said_to_run() {
        let status = Status {
            state: State::Paused,
            phase: Some(Phase::Sampling),
            waiting_for: vec!["b".to_owned()],
            iteration: 460,
            draws: 447,
            draws_asked: 10_000,
            ..Status::default()
        };
        let forecast = Some(Forecast { seconds_left: 4.0, ended_by: None, mu_squared: vec![0.1] });
        let page = state(&status, None).into_string()
            + &progress(&status, &RunPace { forecast, ..RunPace::default() }, None).into_string();
        assert_eq!(page.matches("Paused").count(), 1, "{page}");
        assert!(page.contains("<b>Draws so far: 447 of 10,000 draws per chain.</b>"), "{page}");
        assert!(!page.contains("Sampling, ") && !page.contains(" left"), "{page}");
        // A job that releases once accepts no proposals, nor does one that has not begun.
        assert!(page.contains("Proposals accepted"));
        let once = progress(&Status { never_rejects: true, ..status }, &RunPace::default(), None).into_string();
        assert!(once.contains("Rounds") && !once.contains("accepted"), "{once}");
        assert!(!progress(&Status::default(), &RunPace::default(), None).into_string().contains("<dl"));
    }
}
