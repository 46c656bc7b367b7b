//! The statement's content, section by section.

use conclave_common::epsilon;
use conclave_common::job::{ANY_MODEL, JobSpec, ReleasedQuantity};
use conclave_inference::figures::zcdp;
use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;
use conclave_pages::precision::rough;
use conclave_privacy::accounting::{Adjacency, gaussian_dp};

use crate::config::PartyConfig;
use crate::ledger_views::Report;
use crate::owner::figure::figure;
use crate::owner::jobs::JobView;
use crate::owner::masked;
use crate::owner::text::{at_several_owners, describe, signed, unit_of_privacy};
use crate::owner::totals::{Released, Releases};

use super::facts::Facts;
use super::front::{front, signatures};

/// Returns the statement on one job of this party; `now` is the time of the statement, UTC.
pub(crate) fn statement(config: &PartyConfig, job: &JobView, facts: &Facts<'_>, now: &str) -> Vec<Block> {
    let head = format!(
        "The queries to data owner {}, the numbers it released, and what these can reveal about anyone in its data. Created on {} from \
         the ledger {}.",
        config.name,
        stored(now),
        config.ledger.display()
    );
    let mut blocks = vec![Block::Title(format!("Statement on job {}", job.request.job)), Block::Text(head)];
    blocks.extend(front(config, job, facts));
    blocks.push(section("Queries"));
    blocks.extend(queries(config, job));
    blocks.push(section("Releases"));
    blocks.extend(released(config, job, facts.releases));
    blocks.push(section("Guarantees"));
    blocks.extend(guarantee(config, job, facts));
    blocks.extend(roster(job, facts.report).into_iter().flatten());
    blocks.extend(others(config, job.spec.as_ref()));
    blocks.push(section("Signatures"));
    blocks.extend(signatures());
    blocks.extend([section("The approved job"), Block::Verbatim(job.request.spec_toml.clone())]);
    blocks
}

fn section(heading: &str) -> Block {
    Block::Section(heading.to_owned())
}

fn queries(config: &PartyConfig, job: &JobView) -> [Block; 2] {
    let request = &job.request;
    let analyst = format!("{} (the job is signed with this analyst's key), on {}", request.analyst, stored(&request.asked));
    let mut facts = vec![fact("name", job.name()), fact("analyst", analyst)];
    facts.extend(signed(job));
    facts.extend(job.spec.iter().flat_map(|spec| describe(spec, config.budget.unit)));
    facts.push(fact("digest", format!("SHA-256 {}", request.digest_hex())));
    let digest = "The digest covers the job's text below, from which every public constant is derived. The party answers no query of \
                  this job under another text.";
    [Block::Facts(facts), Block::Text(digest.to_owned())]
}

fn released(config: &PartyConfig, job: &JobView, releases: Option<&Releases>) -> Vec<Block> {
    let Some(totals) = job.totals.as_ref().filter(|t| t.spent.draws > 0) else {
        return vec![Block::Text("Nothing: no number was released or charged for this job.".to_owned())];
    };
    let mut facts = vec![
        fact("opened", stored(&totals.opened)),
        fact("finished", stored(totals.closed.as_deref().unwrap_or("not yet"))),
        fact("numbers", format!("{} whole numbers released or charged", totals.spent.draws)),
    ];
    if let Some(Releases { kinds, charged: (first, last), .. }) = releases {
        facts.push(fact("charged", format!("from {} to {}", stored(first), stored(last))));
        facts.extend(kinds.iter().map(|released| fact(released.name(), of_kind(released))));
    }
    let unit = config.budget.unit;
    let count = match (unit.adjacency, unit.records_per_person()) {
        (Adjacency::AddRemove, _) => ", but not the number of rows",
        (Adjacency::Replace, None) => ", and the number of rows",
        (Adjacency::Replace, Some(_)) => ", and the number of persons, but not the number of rows",
    };
    facts.push(fact("also known", format!("the time when the job was opened, and the time of each release{count}")));
    let chooses = |released: &Released| released.kind.candidates().is_some();
    let kinds = releases.map(|releases| releases.kinds.as_slice()).unwrap_or_default();
    let mut text = String::new();
    if kinds.is_empty() || !kinds.iter().all(chooses) {
        let quantity = job.spec.as_ref().map_or(ReleasedQuantity::RATIO, JobSpec::released_quantity);
        let means = if quantity.fits_any_model { format!(" {ANY_MODEL}.") } else { String::new() };
        let starts = job.spec.as_ref().is_some_and(|spec| spec.start_share().is_some());
        let which = match kinds.iter().any(chooses) {
            true if starts => "Each number except that of the choice at which the chains start",
            true => "Each number of the search",
            false => "Each number",
        };
        text = format!(
            "{which} is a sum over all records of {}, bounded in advance for each of them, plus fresh random noise of the stated \
             size.{means} ",
            quantity.words
        );
    }
    if kinds.iter().any(chooses) {
        text += "Each choice is the index of one of the public candidates in its query, drawn at random in proportion to how well each \
                 explains the records; its charge bounds the change of these odds by one record or person. ";
    }
    text += "No record, and no sum without noise, was released. Every number, with its time and its noise, is in the ledger.";
    if job.is_masked() {
        text += " It was released masked, and the ledger records it as released: only its sum with the other owners' numbers is opened.";
    }
    vec![Block::Facts(facts), Block::Text(text)]
}

fn of_kind(released: &Released) -> String {
    let Released { kind, queries, integers, noise: (least, most) } = *released;
    if kind.candidates().is_some() {
        return format!("{integers} whole numbers in {queries} answers, each drawn at random; no noise is added");
    }
    let range = if least == most { rough(least) } else { format!("{} to {}", rough(least), rough(most)) };
    let unit = kind.noise_unit();
    format!("{integers} whole numbers in {queries} answers; noise of standard deviation {range} in each, {unit}")
}

/// Returns the guarantee's facts for a masked job: the loss under full collusion.
fn masked_facts(job: &JobView, facts: &Facts<'_>) -> Vec<Fact> {
    let Facts { report, worst, releases, .. } = *facts;
    let delta = job.spec.as_ref().map_or(report.delta, |spec| spec.privacy.budget.delta);
    let mut found = Vec::new();
    if let Some(mu_squared) = releases.and_then(|releases| releases.mu_squared_if_all_collude) {
        let (epsilon, delta) = (epsilon::spent(gaussian_dp::epsilon(mu_squared.sqrt(), delta)), figure(delta));
        let words = format!("epsilon {epsilon} at delta {delta} for this job: then only this owner's noise protects");
        found.push(fact("if all others collude", words));
    }
    if let Some((worst, collude)) = worst.and_then(|worst| Some((worst, worst.if_all_collude.as_ref()?)))
        && job.may_spend()
    {
        let words = masked::if_all_collude(collude, worst.data_epsilon_after, worst.data_delta);
        found.push(fact("if it uses everything it may", words));
    }
    if let (true, Some(collude)) = (job.is_masked(), &report.if_all_collude) {
        found.push(fact("all jobs together", masked::total_if_all_collude(collude)));
    }
    found
}

/// Returns the roster of a masked job, as entered in the ledger.
fn roster(job: &JobView, report: &Report) -> Option<[Block; 2]> {
    let entered = report.masked_jobs.iter().find(|masked| masked.job == job.request.job)?;
    let key = if entered.open { "exists while the job is open" } else { "is deleted, and the job can never be reopened" };
    let digest = entered.roster.as_ref().map_or_else(|| "not entered yet".to_owned(), |digest| format!("SHA-256 {digest}"));
    let own = format!("created on {}; it {key}", entered.key_made);
    let member = |member: &crate::ledger_views::MaskedMember| {
        let known = if member.pinned { "pinned" } else { "certified by the CA only" };
        fact(&member.name, format!("{}, {known}", member.fingerprint))
    };
    let facts = [fact("roster", digest), fact("own key", own)].into_iter().chain(entered.members.iter().map(member));
    Some([section("Roster of the masks"), Block::Facts(facts.collect())])
}

fn guarantee(config: &PartyConfig, job: &JobView, inputs: &Facts<'_>) -> Vec<Block> {
    let (unit, report) = (config.budget.unit, inputs.report);
    let who = if unit.records_per_person().is_some() { "person" } else { "row" };
    let change = match unit.adjacency {
        Adjacency::Replace => format!("had one {who} been replaced by any other"),
        Adjacency::AddRemove => format!("had one {who} been added or removed"),
    };
    let meaning = format!(
        "In words: whatever the receiver of these numbers already knows or computes, no conclusion would have been more likely or less \
         likely by a factor of more than e to the power epsilon {change}, except with probability delta."
    );
    let spent = job.spent().mu_squared();
    let delta = job.spec.as_ref().map_or(report.delta, |spec| spec.privacy.budget.delta);
    // The reserve for blocks is separate from the delta of mu² charges: the promise includes both.
    let promised = figure(job.spec.as_ref().map_or(report.delta_promised, |spec| spec.privacy.budget.promised_delta()));
    let mut facts = vec![fact("mu of this job", format!("{} (Gaussian differential privacy)", rough(spent.sqrt())))];
    if spent > 0.0 {
        let (gdp, zcdp) =
            [gaussian_dp::epsilon(spent.sqrt(), delta), zcdp::epsilon(spent / 2.0, delta)].map(epsilon::spent).into();
        facts.push(fact("epsilon of this job", format!("{gdp} at delta {promised}")));
        facts.push(fact("by zCDP", format!("epsilon {zcdp} at delta {promised}: looser, by a different argument")));
    }
    if let Some(worst) = inputs.worst.filter(|_| job.may_spend()) {
        let most = format!(
            "epsilon {} at delta {}, if this job uses everything it may; the data would then have spent epsilon {} of {}",
            epsilon::spent(worst.job_epsilon),
            figure(worst.job_delta),
            epsilon::spent(worst.data_epsilon_after),
            figure(worst.data_epsilon_budget)
        );
        facts.push(fact("at most", most));
    }
    facts.extend(masked_facts(job, inputs));
    let budget = format!(
        "epsilon {} at delta {}, over all jobs, permanently; {:.2}% of it (as mu squared) is spent by all jobs together",
        figure(report.epsilon_budget),
        figure(report.delta_promised),
        100.0 * report.share_spent
    );
    facts.push(fact("budget of the data", budget));
    let jobs = "The guarantee is the budget of the data. The figures of one job are running totals for the owner; epsilons of several \
                jobs do not add up, their mu squared do.";
    let unit = format!("The guarantee {}.", unit_of_privacy(unit));
    vec![Block::Text(unit), Block::Text(meaning), Block::Facts(facts), Block::Text(jobs.to_owned())]
}

fn others(config: &PartyConfig, spec: Option<&JobSpec>) -> [Block; 4] {
    let others: Vec<&str> =
        spec.iter().flat_map(|s| &s.parties).map(String::as_str).filter(|name| *name != config.name).collect();
    let allies = match others.is_empty() {
        true => "the analyst and the coordinator".to_owned(),
        false => format!("the analyst, the coordinator and the other data owners ({})", others.join(", ")),
    };
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
    let unit = config.budget.unit;
    let mut points = vec![
        "Facts about the population that hold whichever persons are in the data: learning them is the purpose of the analysis."
            .to_owned(),
        "The job itself: model, columns, bounds, and that this owner took part. Bounds must be chosen without inspecting the \
         data."
            .to_owned(),
    ];
    if unit.records_per_person().is_none() {
        points.push("A person with several rows, as well as a person with one.".to_owned());
    }
    if unit.adjacency == Adjacency::Replace {
        let what = if unit.records_per_person().is_some() { "persons" } else { "rows" };
        points.push(format!("The number of {what}: it is public."));
    }
    let several = spec.filter(|spec| spec.parties.len() > 1).map(|spec| format!(" In this job {}.", at_several_owners(spec)));
    points.push(format!(
        "The same person's data at another owner or in another dataset: each owner's guarantee covers its own records, with its \
         own budget, and these guarantees add, as the squares of mu.{}",
        several.unwrap_or_default()
    ));
    points.push("This machine: anyone who can read the records here needs no query.".to_owned());
    let collude = section("Who could collude, and what they would learn");
    [collude, Block::Text(held), section("What is not protected"), Block::Points(points)]
}
