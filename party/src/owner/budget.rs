//! The state of the data's budget, as its owner reads it at the terminal and on the party's page.

use conclave_common::epsilon;
use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;
use conclave_pages::text::thousands;

use super::figure::figure;
use super::scale::Scale;
use crate::ledger_views::Report;

const ROWS: &str = ": where a person has several rows, the guarantee is weaker for that person";

/// Returns the state of the budget: its one scale, the same in epsilon, and all other figures folded.
pub(crate) fn blocks(r: &Report, scale: &Scale, id: &'static str) -> Vec<Block> {
    let other = "Other figures".to_owned();
    vec![Block::Shares(scale.shares(id)), Block::Text(scale.in_epsilon()), Block::Folded(other, vec![Block::Facts(facts(r))])]
}

/// Returns the facts of a report; those of reserves, collusion, open jobs and analysts only where they exist.
fn facts(r: &Report) -> Vec<Fact> {
    let (spent, of, delta, zcdp) = (r.epsilon_spent, r.epsilon_budget, r.delta, r.epsilon_zcdp);
    let mut facts = vec![
        fact("epsilon", format!("{} spent of {of} at delta = {delta} (by zCDP {})", epsilon::spent(spent), epsilon::spent(zcdp))),
        fact(
            "mu^2",
            format!("{:.6} spent of {:.6}, {:.6} remaining", r.mu_squared_spent, r.mu_squared_budget, r.mu_squared_remaining),
        ),
        fact(
            "a new job",
            format!(
                "{} is the largest epsilon it could still get; epsilons do not add, mu^2 does",
                epsilon::room(r.epsilon_new_job)
            ),
        ),
        fact(
            "numbers",
            format!("{} released or charged, in {} jobs, since {}", thousands(r.queries), r.jobs, stored(&r.created)),
        ),
        fact(
            "noise",
            format!(
                "{} draws spent, {} remaining, and {:.4}% of the allowance for discrete noise; the budget runs out first",
                thousands(r.draws_spent),
                thousands(r.draws_remaining),
                100.0 * r.slack_share_spent
            ),
        ),
    ];
    if r.mu_squared_promised > 0.0 {
        let (promised, room) = (r.mu_squared_promised, epsilon::room(r.epsilon_room));
        let words = "room for one more job beside them unless policy.over_commit is true";
        facts.push(fact("caps", format!("open jobs may still spend mu^2 {promised:.6}: epsilon {room} is the {words}")));
    }
    if r.mu_squared_reserved > 0.0 {
        facts.push(fact("reserved", format!("{:.6} of the mu^2 spent is reserved for running jobs", r.mu_squared_reserved)));
    }
    if r.delta_reserve > 0.0 {
        let [spent, reserve, remaining] = [r.delta_reserve_spent, r.delta_reserve, r.delta_reserve_remaining].map(figure);
        let samples = format!(
            "{spent} of delta spent by blocks of subsampled releases, of {reserve} reserved for them, {remaining} remaining"
        );
        let promised = figure(r.delta_promised);
        facts.push(fact("samples", samples));
        facts.push(fact("promise", format!("epsilon = {of} at delta = {promised}: that of mu^2 plus the reserve")));
    }
    if let Some(collude) = &r.if_all_collude {
        let limit = collude.epsilon_limit.map_or_else(|| "without a limit".to_owned(), |limit| format!("of at most {limit}"));
        let words = "if all other parties of masked jobs collude with the coordinator";
        facts.push(fact("collusion", format!("{} epsilon is spent {limit}, {words}", epsilon::spent(collude.epsilon_spent))));
    }
    facts.push(fact("protects", format!("one {}{}", r.unit, if r.unit.starts_with("row") { ROWS } else { "" })));
    for job in &r.open_jobs {
        let left = match job.iterations_left {
            Some(n) => format!("about {} iterations remaining at its current step", thousands(n)),
            None => "not started".to_owned(),
        };
        let (spent, cap) = (job.mu_squared_spent, job.mu_squared_cap);
        facts.push(fact("open", format!("{} of {}: mu^2 {spent:.6} of its {cap:.6}, {left}", job.job, job.analyst)));
    }
    for a in &r.analysts {
        let (spent, epsilon) = (a.mu_squared_spent, epsilon::spent(a.epsilon_spent));
        let cap = a.mu_squared_cap.map(|cap| format!(" of {cap:.6}")).unwrap_or_default();
        let numbers = format!("{} numbers in {} jobs", thousands(a.queries), a.jobs);
        facts.push(fact("analyst", format!("{}: mu^2 {spent:.6}{cap} (epsilon {epsilon}), {numbers}", a.analyst)));
    }
    facts
}
