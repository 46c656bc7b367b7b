//! The statement's content, section by section.

use conclave_common::job::{ANY_MODEL, JobSpec, ReleasedQuantity};
use conclave_inference::figures::zcdp;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit, gaussian_dp};

use super::block::Block;
use crate::config::PartyConfig;
use crate::ledger_views::Report;
use crate::owner::figure::figure;
use crate::owner::jobs::{JobView, State};
use crate::owner::masked;
use crate::owner::text::{at_several_owners, describe, unit_of_privacy};
use crate::owner::totals::Releases;
use crate::owner::worst_case::WorstCase;

/// Inputs of a statement besides the job itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// State of the data's budget.
    pub(crate) report: &'a Report,
    /// The job's worst case, if it can be computed.
    pub(crate) worst: Option<&'a WorstCase>,
    /// Summary of its releases.
    pub(crate) releases: Option<&'a Releases>,
}

/// Returns the statement on one job of this party; `now` is the time of the statement, UTC.
pub(crate) fn statement(config: &PartyConfig, job: &JobView, facts: &Facts<'_>, now: &str) -> Vec<Block> {
    let Facts { report, worst, releases } = *facts;
    let mut blocks = vec![
        Block::Title(format!("Statement on job {}", job.request.job)),
        Block::Text(format!(
            "The queries to data owner {}, the numbers it released, and what these can reveal about anyone in its data. Created \
             on \
             {now} from the ledger {}.",
            config.name,
            config.ledger.display()
        )),
    ];
    queries(&mut blocks, config.budget.unit, job);
    released(&mut blocks, config, job, releases);
    let masked = masked_facts(job, facts);
    guarantee(&mut blocks, (config, report), job, (worst, masked));
    roster(&mut blocks, job, report);
    others(&mut blocks, config, job.spec.as_ref());
    blocks.push(Block::Heading("The approved job"));
    blocks.push(Block::Verbatim(job.request.spec_toml.clone()));
    blocks
}

fn queries(blocks: &mut Vec<Block>, unit: PrivacyUnit, job: &JobView) {
    let request = &job.request;
    let mut facts = vec![
        ("name".to_owned(), job.name().to_owned()),
        ("analyst".to_owned(), format!("{} (as stated by the coordinator), on {}", request.analyst, request.asked)),
    ];
    facts.extend(job.spec.iter().flat_map(|spec| describe(spec, unit)).map(|(name, words)| (name.to_owned(), words)));
    if let Some(decided) = &request.decided {
        let by = if decided.decider == "owner" { "the data owner" } else { "the data owner's standing policy" };
        let why = if decided.reason.is_empty() { String::new() } else { format!(": {}", decided.reason) };
        facts.push(("decision".into(), format!("{} by {by} on {}{why}", decided.standing.as_str(), decided.time)));
    }
    facts.push(("state".into(), job.state().as_str().into()));
    facts.push(("digest".into(), format!("SHA-256 {}", request.digest_hex())));
    blocks.push(Block::Heading("Queries"));
    blocks.push(Block::Facts(facts));
    blocks.push(Block::Text(
        "The digest covers the job's text below, from which every public constant is derived. The party answers no query of \
         this job under another text."
            .into(),
    ));
}

fn released(blocks: &mut Vec<Block>, config: &PartyConfig, job: &JobView, releases: Option<&Releases>) {
    blocks.push(Block::Heading("Releases"));
    let Some(totals) = job.totals.as_ref().filter(|t| t.spent.draws > 0) else {
        blocks.push(Block::Text("Nothing: no number was released or charged for this job.".into()));
        return;
    };
    let mut facts = vec![
        ("opened".to_owned(), totals.opened.clone()),
        ("closed".to_owned(), totals.closed.clone().unwrap_or_else(|| "not yet".into())),
        ("numbers".to_owned(), format!("{} whole numbers released or charged", totals.spent.draws)),
    ];
    if let Some(Releases { kinds, charged: (first, last), .. }) = releases {
        facts.push(("charged".into(), format!("from {first} to {last}")));
        for released in kinds {
            let (least, most) = released.noise;
            let range = if least == most { figure(least) } else { format!("{} to {}", figure(least), figure(most)) };
            facts.push((
                released.name(),
                format!(
                    "{} whole numbers in {} answers; noise of standard deviation {range} in each, {}",
                    released.integers,
                    released.queries,
                    released.kind.noise_unit()
                ),
            ));
        }
    }
    let unit = config.budget.unit;
    let count = match (unit.adjacency, unit.records_per_person()) {
        (Adjacency::AddRemove, _) => ", but not the number of rows",
        (Adjacency::Replace, None) => ", and the number of rows",
        (Adjacency::Replace, Some(_)) => ", and the number of persons, but not the number of rows",
    };
    facts.push(("also known".into(), format!("the time when the job was opened, and the time of each release{count}")));
    blocks.push(Block::Facts(facts));
    let quantity = job.spec.as_ref().map_or(ReleasedQuantity::RATIO, JobSpec::released_quantity);
    let means = if quantity.fits_any_model { format!(" {ANY_MODEL}.") } else { String::new() };
    let under = match job.is_masked() {
        true => {
            " It was released masked, and the ledger records it as released: only its sum with the other owners' numbers is \
             opened."
        }
        false => "",
    };
    blocks.push(Block::Text(format!(
        "Each number is a sum over all records of {}, bounded in advance for each of them, plus fresh random noise of the \
         stated size. No record, and no sum without noise, was released. Every number, with its time and its noise, is in the \
         ledger.{means}{under}",
        quantity.words
    )));
}

/// Returns the guarantee's facts for a masked job: the loss under full collusion.
fn masked_facts(job: &JobView, facts: &Facts<'_>) -> Vec<(String, String)> {
    let Facts { report, worst, releases } = *facts;
    let delta = job.spec.as_ref().map_or(report.delta, |spec| spec.privacy.budget.delta);
    let mut found = Vec::new();
    if let Some(mu_squared) = releases.and_then(|releases| releases.mu_squared_if_all_collude) {
        let epsilon = gaussian_dp::epsilon(mu_squared.sqrt(), delta);
        let words =
            format!("epsilon {} at delta {} for this job: then only this owner's noise protects", figure(epsilon), figure(delta));
        found.push(("if all others collude".to_owned(), words));
    }
    if let Some((worst, collude)) = worst.and_then(|worst| Some((worst, worst.if_all_collude.as_ref()?)))
        && job.is_live()
    {
        let words = masked::if_all_collude(collude, worst.data_epsilon_after, worst.data_delta);
        found.push(("if it uses everything it may".to_owned(), words));
    }
    if let (true, Some(collude)) = (job.is_masked(), &report.if_all_collude) {
        found.push(("all jobs together".to_owned(), masked::total_if_all_collude(collude)));
    }
    found
}

/// Adds the roster of a masked job, as entered in the ledger.
fn roster(blocks: &mut Vec<Block>, job: &JobView, report: &Report) {
    let Some(entered) = report.masked_jobs.iter().find(|masked| masked.job == job.request.job) else { return };
    blocks.push(Block::Heading("Roster of the masks"));
    let key = if entered.open { "exists while the job is open" } else { "is deleted, and the job can never be reopened" };
    let digest = entered.roster.as_ref().map_or_else(|| "not entered yet".to_owned(), |digest| format!("SHA-256 {digest}"));
    let mut facts =
        vec![("roster".to_owned(), digest), ("own key".to_owned(), format!("created on {}; it {key}", entered.key_made))];
    facts.extend(entered.members.iter().map(|member| {
        let known = if member.pinned { "pinned" } else { "certified by the CA only" };
        (member.name.clone(), format!("{}, {known}", member.fingerprint))
    }));
    blocks.push(Block::Facts(facts));
}

fn guarantee(
    blocks: &mut Vec<Block>,
    (config, report): (&PartyConfig, &Report),
    job: &JobView,
    (worst, masked): (Option<&WorstCase>, Vec<(String, String)>),
) {
    let unit = config.budget.unit;
    let who = if unit.records_per_person().is_some() { "person" } else { "row" };
    let change = match unit.adjacency {
        Adjacency::Replace => format!("had one {who} been replaced by any other"),
        Adjacency::AddRemove => format!("had one {who} been added or removed"),
    };
    blocks.push(Block::Heading("Guarantees"));
    blocks.push(Block::Text(format!("The guarantee {}.", unit_of_privacy(unit))));
    blocks.push(Block::Text(format!(
        "In words: whatever the receiver of these numbers already knows or computes, what it sees would have been \
         almost as likely {change}. Epsilon measures “almost”: no conclusion becomes more likely or less likely by \
         a factor of more than e to the power epsilon, except with probability delta."
    )));
    let spent = job.spent().mu_squared();
    let delta = job.spec.as_ref().map_or(report.delta, |spec| spec.privacy.budget.delta);
    // The reserve for blocks is separate from the delta of mu² charges: the promise includes both.
    let promised = job.spec.as_ref().map_or(report.delta_promised, |spec| spec.privacy.budget.promised_delta());
    let mut facts = vec![("mu of this job".to_owned(), format!("{} (Gaussian differential privacy)", figure(spent.sqrt())))];
    if spent > 0.0 {
        facts.push((
            "epsilon of this job".into(),
            format!("{} at delta {}", figure(gaussian_dp::epsilon(spent.sqrt(), delta)), figure(promised)),
        ));
        facts.push((
            "by zCDP".into(),
            format!(
                "epsilon {} at delta {}: looser, by a different argument",
                figure(zcdp::epsilon(spent / 2.0, delta)),
                figure(promised)
            ),
        ));
    }
    if let Some(worst) = worst.filter(|_| matches!(job.state(), State::Running | State::Approved | State::Awaiting)) {
        facts.push((
            "at most".into(),
            format!(
                "epsilon {} at delta {}, if this job uses everything it may; the data would then have spent epsilon {} of {}",
                figure(worst.job_epsilon),
                figure(worst.job_delta),
                figure(worst.data_epsilon_after),
                figure(worst.data_epsilon_budget)
            ),
        ));
    }
    facts.extend(masked);
    facts.push((
        "budget of the data".into(),
        format!(
            "epsilon {} at delta {}, over all jobs, permanently; {:.2}% of it (as mu squared) is spent by all jobs together",
            figure(report.epsilon_budget),
            figure(report.delta_promised),
            100.0 * report.share_spent
        ),
    ));
    blocks.push(Block::Facts(facts));
    blocks.push(Block::Text(
        "The guarantee is the budget of the data. The figures of one job are running totals for the owner; \
         epsilons of several jobs do not add up, their mu squared do."
            .into(),
    ));
}

fn others(blocks: &mut Vec<Block>, config: &PartyConfig, spec: Option<&JobSpec>) {
    let others: Vec<&str> =
        spec.iter().flat_map(|s| &s.parties).map(String::as_str).filter(|name| *name != config.name).collect();
    let allies = match others.is_empty() {
        true => "the analyst and the coordinator".to_owned(),
        false => format!("the analyst, the coordinator and the other data owners ({})", others.join(", ")),
    };
    blocks.push(Block::Heading("Who could collude, and what they would learn"));
    let held = match spec.and_then(masked::promise) {
        Some(promise) => format!(
            "This owner's numbers were masked: {promise}. The coordinator and the analyst see sums over all owners, draws and \
             queries. Against the coordinator, the analyst and that number of other owners together, the guarantee above holds. \
             It also relies on X25519, HKDF and HMAC with SHA-256: should {allies} all collude, or should recorded masks be \
             broken one day, for instance by a quantum computer, the protection falls to this owner's own noise, with the weaker \
             figure above; it never vanishes."
        ),
        None => format!(
            "The coordinator sees every number; the analyst sees draws computed from them; the other owners see the queries. \
             Even if {allies} pool all they have, they see no more of this owner's data than the numbers in \
             its ledger, and the guarantee above holds against all of them together: the noise is drawn by this owner on its \
             own machine and is not shared with anyone."
        ),
    };
    blocks.push(Block::Text(held));
    blocks.push(Block::Heading("What is not protected"));
    let mut points = vec![
        "Facts about the population that hold whichever persons are in the data: learning them is the purpose of the analysis."
            .to_owned(),
        "The job itself: model, columns, bounds, and that this owner took part. Bounds must be chosen without inspecting the \
         data."
            .to_owned(),
    ];
    if config.budget.unit.records_per_person().is_none() {
        points.push("A person with several rows, as well as a person with one.".into());
    }
    if config.budget.unit.adjacency == Adjacency::Replace {
        let what = if config.budget.unit.records_per_person().is_some() { "persons" } else { "rows" };
        points.push(format!("The number of {what}: it is public."));
    }
    let others = spec.filter(|spec| spec.parties.len() > 1).map(|spec| format!(" In this job {}.", at_several_owners(spec)));
    points.push(format!(
        "The same person's data at another owner or in another dataset: each owner's guarantee covers its own records, with its \
         own budget, and these guarantees add, as the squares of mu.{}",
        others.unwrap_or_default()
    ));
    points.push("This machine: anyone who can read the records here needs no query.".into());
    blocks.push(Block::Points(points));
}
