//! The first half page of a statement: who states what about which job, at what cost and risk, and who checked it.

use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;

use crate::config::PartyConfig;
use crate::owner::jobs::JobView;
use crate::owner::odds::{between, of_100, right, right_guess};
use crate::owner::papers::Papers;
use crate::owner::scale::Scale;

use super::facts::Facts;

/// Returns the summary of a statement, and below it the particulars by which it can be checked.
pub(super) fn front(config: &PartyConfig, job: &JobView, facts: &Facts<'_>) -> Vec<Block> {
    let organisation = facts.papers.map(|papers| fact("organisation", &papers.organisation));
    let mut lines = vec![fact("job", format!("{} of analyst {}", job.name(), job.request.analyst)), fact("state", state(job))];
    lines.extend(decision(job));
    lines.extend(job.permit().map(|permit| fact("terms", permit.words())));
    lines.push(fact("released", released(job, facts)));
    lines.push(fact("risk", risk(config, job, facts)));
    let scale = Scale::new(facts.report, config);
    lines.extend(job.ended.as_ref().map(|why| fact("permit", why.to_string())));
    lines.extend(job.terms.disagreements().into_iter().map(|difference| fact("difference", difference)));
    let mut particulars = facts.papers.map(Papers::facts).unwrap_or_default();
    particulars.extend([fact("analyst's key", job.signer()), fact("signature", signature(job))]);
    vec![
        Block::Facts(organisation.into_iter().chain(lines).collect()),
        Block::Shares(scale.shares("budget")),
        Block::Text(scale.in_epsilon()),
        Block::Section("Particulars".to_owned()),
        Block::Facts(particulars),
    ]
}

/// States how far the job is, and whether it can be opened again.
fn state(job: &JobView) -> String {
    let more = match job.early_end() {
        Some(reason) => format!(": {reason}"),
        None if job.can_be_reopened() => ": the coordinator can open it again, unless the owner revokes it".to_owned(),
        None => String::new(),
    };
    format!("{}{more}", job.state_words())
}

/// Returns the reason for a signature, and the lines for the signatures of the owner's officers.
pub(super) fn signatures() -> [Block; 2] {
    let why = "Nothing depends on a signature: consent is given by approval, and the ledger records it. Sign a printed statement where your rules ask \
               for one, for instance to file it with a study's ethics or data protection records. A signature confirms that the signer has read \
               the figures above, and that they are those of the ledger whose head is stated.";
    let lines = ["For the data owner: name, place, date", "Data protection: name, place, date"];
    [Block::Text(why.to_owned()), Block::Signatures(lines.map(str::to_owned).to_vec())]
}

/// States the check of the analyst's signature. The party stores the fingerprint of the key and the signed text, not the certificate.
fn signature(job: &JobView) -> String {
    let key = job.terms.signer().map(|key| format!(" {key}")).unwrap_or_default();
    format!(
        "signed with the key{key} of analyst {}, checked by this party against its CA before the job was entered; the job's id follows from the \
         signed text. The analyst's certificate is not stored here: conclave-party verify {} checks it again",
        job.request.analyst, job.request.job
    )
}

fn decision(job: &JobView) -> Option<Fact> {
    let decided = job.request.decided.as_ref()?;
    let by = if decided.decider == "owner" { "the data owner" } else { "the data owner's standing policy" };
    let why = if decided.reason.is_empty() { String::new() } else { format!(": {}", decided.reason) };
    Some(fact("decision", format!("{} by {by} on {}{why}", decided.standing.as_str(), stored(&decided.time))))
}

fn released(job: &JobView, facts: &Facts<'_>) -> String {
    let (numbers, answers) =
        (job.spent().draws, facts.releases.map_or(0, |releases| releases.kinds.iter().map(|k| k.queries).sum()));
    match numbers {
        0 => "nothing".to_owned(),
        _ => format!("{numbers} noised whole numbers in {answers} answers, no record"),
    }
}

/// States the odds of a guess after all releases so far.
fn risk(config: &PartyConfig, job: &JobView, facts: &Facts<'_>) -> String {
    let who = if config.budget.unit.records_per_person().is_some() { "person" } else { "row" };
    let at = |mu_squared: f64, reserve: f64| right(of_100(right_guess(mu_squared.sqrt()) + reserve));
    let report = facts.report;
    let (spent, reserve) = (job.spent().mu_squared(), report.delta_reserve_spent);
    let between = between(config.budget.unit);
    let most = facts
        .worst
        .filter(|_| job.may_spend())
        .map(|worst| format!(", {} if it uses everything that it may", at(worst.job_mu_squared, report.delta_reserve)));
    format!(
        "of 100 guesses {between} of one {who}, {} are right after this job's releases so far{}, {} after those of all jobs so far, \
         {} were the whole budget spent; 50 without any",
        at(spent, if spent > 0.0 { reserve } else { 0.0 }),
        most.unwrap_or_default(),
        at(report.mu_squared_spent, reserve),
        at(report.mu_squared_budget, report.delta_reserve)
    )
}
