//! A pending job and its owner's decision: the same text and the same action for the command line and the
//! party's page.

use std::sync::Arc;

use conclave_common::epsilon;
use conclave_common::job::JobSpec;
use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;
use conclave_privacy::accounting::PrivacyUnit;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::screening::{screen_columns, screen_job};
use conclave_vault::consent::{ConsentStore, Decider, Standing};
use conclave_vault::data::{DataError, Shard};

use super::figure::figure;
use super::inquiries::{Inquiry, merged};
use super::jobs::JobView;
use super::masked;
use super::permit::Permit;
use super::text::{describe, signed, unit_of_privacy};
use super::worst_case::{WorstCase, analyst_remaining, worst_case};

/// Computes a job's worst case: its cost if it uses everything it may.
///
/// # Errors
/// Fails for a job that this version can't read, and for a ledger that can't be read.
pub(crate) fn worst_case_of(config: &PartyConfig, job: &JobView) -> Result<WorstCase, StartError> {
    let unreadable = || StartError::Input(format!("this version can't read job {}, so it can't be approved", job.request.job));
    let spec = job.spec.as_ref().ok_or_else(unreadable)?;
    let settings = config.ledger_settings();
    let report = report_kept(&settings)?;
    analyst_remaining(&settings, &report, &job.request.analyst)
        .and_then(|remaining| worst_case(spec, job.spent().units, &report, remaining))
        .map_err(|e| StartError::Input(format!("[privacy]: {e}")))
}

/// Returns the document shown to the owner before approval.
pub(crate) fn document(config: &PartyConfig, job: &JobView, worst: &WorstCase) -> Vec<Block> {
    let members = job.spec.as_ref().map(|spec| masked::members(spec, &config.name, &config.secure)).unwrap_or_default();
    blocks(config.budget.unit, members, job, worst)
}

fn blocks(unit: PrivacyUnit, members: Vec<Fact>, job: &JobView, worst: &WorstCase) -> Vec<Block> {
    let request = &job.request;
    let mut facts = vec![fact("analyst", format!("{}, on {}", request.analyst, stored(&request.asked)))];
    facts.extend(signed(job));
    facts.extend(job.spec.iter().flat_map(|spec| describe(spec, unit)));
    facts.push(fact("digest", format!("SHA-256 {}", request.digest_hex())));
    let end = if worst.ended_early { ", limited by the data's budget or the analyst's cap" } else { "" };
    let this_job = format!(
        "epsilon {} at delta {}{end}; by zCDP {}",
        epsilon::spent(worst.job_epsilon),
        figure(worst.job_delta),
        epsilon::spent(worst.job_epsilon_zcdp)
    );
    let data = format!(
        "epsilon {} now, {} afterwards, of {} at delta {}: {:.1}% of the budget",
        epsilon::spent(worst.data_epsilon_now),
        epsilon::spent(worst.data_epsilon_after),
        figure(worst.data_epsilon_budget),
        figure(worst.data_delta),
        100.0 * worst.share_after
    );
    let mut most = vec![fact("this job", this_job), fact("the data", data)];
    let collude = worst.if_all_collude.as_ref();
    most.extend(collude.map(|of| fact("collusion", masked::if_all_collude(of, worst.data_epsilon_after, worst.data_delta))));
    let heading = |words: &str| Block::Heading(words.to_owned());
    let mut blocks = vec![
        Block::Heading(format!("job {} {:?}", request.job, job.name())),
        Block::Facts(facts),
        heading("worst case, if it uses everything it may"),
        Block::Facts(most),
    ];
    if collude.is_some() {
        blocks.extend([heading("the other members of the job, whose masks hide your numbers"), Block::Facts(members)]);
        blocks.push(Block::Text(format!("closing, rejecting or revoking it is permanent: {}", masked::NEVER_REOPENED)));
    }
    blocks.push(Block::Text(format!("this {}", unit_of_privacy(unit))));
    blocks
}

/// Records the owner's decision on a job, an approval with its terms; the running party acts on it within a second.
///
/// # Errors
/// Fails if the job's state does not allow that decision, or if the database fails.
pub(crate) fn decide(
    config: &PartyConfig,
    job: &str,
    decision: Standing,
    reason: &str,
    permit: Option<&Permit>,
) -> Result<(), StartError> {
    let permit = permit.filter(|permit| !permit.is_empty()).map(serde_json::to_string).transpose();
    let permit = permit.map_err(|e| StartError::System(e.to_string()))?;
    Ok(ConsentStore::open(&config.ledger)?.decide_under(job, decision, Decider::Owner, reason, permit.as_deref())?)
}

/// Returns warnings about the records for live jobs, each with its job. Loads the data only if there are live jobs. Unreadable
/// data are a warning too.
pub(crate) fn warnings(config: &PartyConfig, jobs: &[JobView]) -> Vec<String> {
    try_warnings(config, jobs).unwrap_or_else(|e| vec![unread(&e)])
}

/// Formats the warning for unreadable data.
pub(crate) fn unread(error: &DataError) -> String {
    format!("the data can't be read: {error}")
}

/// Returns the same warnings as [`warnings`].
///
/// # Errors
/// Fails if the data can't be read.
pub(crate) fn try_warnings(config: &PartyConfig, jobs: &[JobView]) -> Result<Vec<String>, DataError> {
    let live: Vec<&JobView> = jobs.iter().filter(|job| job.is_live()).collect();
    if live.is_empty() {
        return Ok(Vec::new());
    }
    let shard = Arc::new(Shard::load(&config.data, config.policy.columns.as_deref())?);
    let mut found = Vec::new();
    for (job, spec) in live.into_iter().filter_map(|job| Some((job, job.spec.as_ref()?))) {
        let warnings = inquiries_of(&config.name, &shard, spec)?;
        found.extend(warnings.iter().flat_map(Inquiry::warnings).map(|warning| format!("job {}: {warning}", job.request.job)));
    }
    Ok(found)
}

/// Returns the findings about the records under one job, merged by their remedies.
///
/// # Errors
/// Fails if the data can't be read.
pub(crate) fn try_inquiries(config: &PartyConfig, job: &JobView) -> Result<Vec<Inquiry>, DataError> {
    let Some(spec) = &job.spec else { return Ok(Vec::new()) };
    inquiries_of(&config.name, &Arc::new(Shard::load(&config.data, config.policy.columns.as_deref())?), spec)
}

fn inquiries_of(party: &str, shard: &Arc<Shard>, spec: &JobSpec) -> Result<Vec<Inquiry>, DataError> {
    let found = screen_columns(&**shard, Some(spec))?.into_iter().chain(screen_job(&**shard, spec)?);
    let weak = spec.privacy.warnings([(party, Some(shard.units()))]);
    let weak = weak.into_iter().map(|warning| (warning, String::new()));
    Ok(merged(weak.chain(found.map(|concern| (concern.found, concern.remedy.to_owned())))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_common::text::{is_plain, json};
    use conclave_pages::document;

    use super::*;
    use crate::ledger_views::report;
    use conclave_vault::consent::Request;
    use conclave_vault::ledger::Ledger;
    use conclave_vault::secure::{Peers, SecureSettings};
    use conclave_vault::testing::{JOB, MEAN_TOML, budget, masked_toml};

    const HOSTILE: &str = "b\u{1b}[2K\r  at most   epsilon 0.01 at delta 1e-9\u{202e}\nthis protects everybody\u{9b}2J";

    /// The job can't rewrite the text that its owner reads before approval: the parser refuses such names, and if it did not,
    /// they would be shown harmlessly, each on its own line.
    #[test]
    fn a_job_does_not_rewrite_the_text_that_its_owner_consents_to() {
        // JSON escapes are also valid in TOML.
        let quoted = json(&serde_json::to_string(HOSTILE).unwrap()).into_owned();
        for (name, refused) in [("\"hospital-a\"", "parties"), ("\"mean\"", "name"), ("height = {", "columns")] {
            let hostile =
                if refused == "columns" { format!("{quoted} = {{ min = 0, max = 1 }}\n{name}") } else { quoted.clone() };
            let error = JobSpec::parse(&MEAN_TOML.replacen(name, &hostile, 1)).unwrap_err();
            assert!(error.key == refused && is_plain(&error.to_string()), "{error:?}");
        }
        let mut honest = JobSpec::parse(MEAN_TOML).unwrap();
        honest.parties.insert(0, "hospital-z".to_owned());
        let mut spec = honest.clone();
        HOSTILE.clone_into(&mut spec.parties[0]);
        spec.name = HOSTILE.to_owned();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        Ledger::init(&path, "hospital-a", &budget()).unwrap();
        let report = report(&path, "hospital-a", &budget()).unwrap();
        let text = |spec: JobSpec, stranger: &str| {
            let worst = worst_case(&spec, 0, &report, None).unwrap();
            let (analyst, asked) = (stranger.to_owned(), "2026-03-01".to_owned());
            let request = Request {
                job: JOB.into(),
                analyst,
                digest: [7; 32],
                spec_toml: MEAN_TOML.into(),
                asked,
                decided: None,
                permit: None,
                signer: None,
            };
            document::text(&blocks(budget().unit, Vec::new(), &JobView { spec: Some(spec), ..JobView::of(request, &[]) }, &worst))
        };
        let (shown, honest) = (text(spec, HOSTILE), text(honest, "alice"));
        assert!(shown.lines().all(is_plain), "{shown:?}");
        assert_eq!(shown.lines().count(), honest.lines().count(), "no line is a stranger's");
        let most = |text: &str| text.lines().filter(|line| line.starts_with("  at most")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(most(&shown), most(&honest));
    }

    #[test]
    fn a_masked_job_says_who_protects_whom_and_what_if_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        Ledger::init(&path, "h-0", &budget()).unwrap();
        let spec = JobSpec::parse(&masked_toml(5, 1)).unwrap();
        let worst = worst_case(&spec, 0, &report(&path, "h-0", &budget()).unwrap(), None).unwrap();
        let members = masked::members(&spec, "h-0", &SecureSettings { peers: Peers::Ca, ..SecureSettings::default() });
        let (analyst, asked) = ("alice".to_owned(), "2026-03-01".to_owned());
        let request = Request {
            job: JOB.into(),
            analyst,
            digest: [7; 32],
            spec_toml: masked_toml(5, 1),
            asked,
            decided: None,
            permit: None,
            signer: None,
        };
        let text =
            document::text(&blocks(budget().unit, members, &JobView { spec: Some(spec), ..JobView::of(request, &[]) }, &worst));
        let collude = worst.if_all_collude.unwrap();
        let instead = format!(
            "would be {} instead of {} at",
            epsilon::spent(collude.data_epsilon),
            epsilon::spent(worst.data_epsilon_after)
        );
        for part in [
            "as if 4 parties' noise protects you, which holds while at most 1 of the other 4 seats",
            &instead,
            "h-4 any key that the CA certifies as h-4",
            "you have set no limit",
            "can never be reopened",
            "mu grows by m",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("h-0 any key") && text.lines().all(is_plain), "{text}");
    }
}
