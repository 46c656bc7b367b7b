//! Sections of a job's page: state, progress, budgets, parties, result and chains.

use std::sync::Arc;

use conclave_common::job::JobSpec;
use conclave_draws::result::AggregationRow;
use conclave_pages::plot::{self, Budget};
use conclave_pages::text::{as_written, plain};
use conclave_pages::verdict::Verdict;
use maud::{Markup, html};
use serde_json::Value;

use super::super::chains::{PARAMETERS, draw};
use super::super::shared::{Dashboard, Part, SENTENCE};
use super::super::watched_job::RunPace;
use super::{head, progress, result, times};
use crate::live::{ReadRequest, ReadState};
use crate::registry::JobView;
use crate::status::Status;

/// Builds the sections of a job's page. The flag is true once none of them will change any more.
///
/// Shows the page of [`PARAMETERS`] parameters that contains parameter `from`, or the last page. Paths and the store's commit
/// times concern this machine only and are shown to the operator alone.
pub(super) async fn parts(dashboard: &Dashboard, shown: &JobView, from: usize, operator: bool) -> (Vec<Part>, bool) {
    let status = shown.status.borrow().clone();
    let ended = status.state.has_ended();
    let spec = JobSpec::parse(&shown.source).ok();
    let names = spec.as_ref().map_or_else(Vec::new, JobSpec::draw_names);
    // An address may hold any number, and each viewed page gets its own share of a thread.
    let from = from.min(names.len().saturating_sub(1)) / PARAMETERS * PARAMETERS;
    let watched = dashboard.watched.at((status.id.clone(), from, ended));
    let target = watched.target(&status, spec.as_ref(), shown.live.as_ref()).await;
    let pace = watched.progress(&status, spec.as_ref(), target);
    let attached = |party: &str| dashboard.party_registry.is_attached(party);
    let found = match &spec {
        Some(_) => chains_of(dashboard, shown, &names).await,
        None => None,
    };
    let reading = matches!(found, Some(ReadState::Reading));
    let chains = match found {
        Some(ReadState::Chains(live)) => {
            let of = status.clone();
            let drawn = watched.drawn.get(move || draw(&live, &names, from, &of)).await;
            drawn.map_or_else(|| not_drawn("The chains can't be drawn."), |drawn| (*drawn).clone())
        }
        Some(ReadState::Reading) => not_drawn("The draws are being read from disk; the plots appear when that is done."),
        Some(ReadState::Unreadable(why)) => {
            let why = if operator { plain(&why, SENTENCE) } else { "see the coordinator's log".to_owned() };
            not_drawn(&format!("The draws of this job can't be shown: {why}."))
        }
        None => Markup::default(),
    };
    let parsed: Option<Value> = status.result.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let commits = dashboard.job_registry.commit_times().filter(|_| operator);
    let parts = vec![
        ("state", head::state(&status, parsed.as_ref())),
        ("progress", progress::progress(&status, &pace, spec.as_ref())),
        ("budgets", budgets(&status, &pace, spec.as_ref())),
        ("parties", times::parties(&status.parties, shown.live.as_deref(), commits, attached)),
        ("result", result::shown(&status.id, parsed.as_ref(), spec.as_ref())),
        (
            "chains",
            if parsed.as_ref().is_none_or(|result| Verdict::of(result).is_usable()) { chains } else { look_anyway(&chains) },
        ),
    ];
    (parts, ended && !reading)
}

/// Finds a job's chains: in memory, or else in its draws on disk. `None` if no draw was kept.
async fn chains_of(dashboard: &Dashboard, shown: &JobView, names: &[String]) -> Option<ReadState> {
    let (id, ended, draws, chains) = {
        let status = shown.status.borrow();
        (status.id.clone(), status.state.has_ended(), status.draws, status.chains as usize)
    };
    match &shown.live {
        Some(live) => Some(ReadState::Chains(Arc::clone(live))),
        // The draws of an unfinished job are still being written.
        None if !ended || draws == 0 => None,
        None => {
            let (root, parameters) = (dashboard.job_registry.draws_of(&id), names.to_vec());
            Some(dashboard.stored.chains(ReadRequest { job: id, root, chains, parameters }).await)
        }
    }
}

/// Folds the chains of an answer that is not usable, so that none of their figures is taken for a result.
fn look_anyway(chains: &Markup) -> Markup {
    html! { details.fold { summary { "Look at the chains anyway" } (chains) } }
}

fn not_drawn(words: &str) -> Markup {
    html! { h2 { "Chains" } p { (words) } }
}

fn budgets(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    html! {
        h2 { "Privacy budget of this job" }
        @for (index, party) in status.parties.iter().enumerate() {
            @let projected = pace.epsilon_at_end(index).map(|epsilon| epsilon.min(party.epsilon_budget));
            (plot::budget(&Budget {
                id: &format!("budget-{index}"),
                party: &party.name,
                spent: party.epsilon_spent,
                projected,
                limit: party.epsilon_budget,
                has_ended: status.state.has_ended(),
            }))
        }
        p.note {
            "Epsilon of this job alone, by Gaussian differential privacy"
            @if let Some(spec) = spec { ", at delta " (as_written(spec.privacy.budget.promised_delta())) }
            @if let Some(words) = spec.and_then(protection) { ". " (words) }
            ". Only the owner sees the spending over all jobs."
            @if !status.state.has_ended() {
                " The amount expected at the end assumes the current rate; the budget ends a run that would exceed it."
            }
        }
    }
}

/// Describes the protection of a job whose answers are masked; `None` for other jobs.
fn protection(spec: &JobSpec) -> Option<String> {
    let row = AggregationRow::from_spec(spec)?;
    Some(format!(
        "Answers are masked, and only their sum over the {} parties is opened. Each party is charged for the noise of {}, which holds while at most {} of \
         the others collude with the coordinator",
        row.parties, row.honest, row.colluders
    ))
}
