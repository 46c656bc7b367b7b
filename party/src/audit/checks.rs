//! Checks that every single answer must pass; an audit runs them once on the answer path.
//!
//! The experiment bounds the information in the released numbers. These checks find faults that no number of replicates would:
//! an uncharged answer, a second answer to one query, or a length, status or charge that depends on a record.

use std::path::Path;

use conclave_privacy::accounting::{Budget, Honest, Priced, gaussian_dp};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;

use super::world::{Design, World};
use conclave_vault::answer::sandbox::Sandbox;
use conclave_vault::ledger::Ledger;

/// Returns the encoded length of a reply: every field has a fixed width.
fn wire_length(answer: &v1::Answer) -> usize {
    prost::Message::encoded_len(answer)
}

/// Runs every check in `folder` and returns the failures as sentences.
///
/// # Errors
/// Returns a sentence if the sandbox can't be set up.
pub(super) fn run(design: &Design, folder: &Path, prepare: &(dyn Fn(&mut Sandbox) + Sync)) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    one_paid_answer(design, &folder.join("one-answer"), prepare, &mut findings)?;
    any_records_look_alike(design, folder, prepare, &mut findings)?;
    Ok(findings)
}

/// Delta of the stages' own budgets.
const DELTA: f64 = 1e-6;

/// Makes a sandbox whose data budget is larger than the job's, so that no refusal is due to an exhausted data budget.
fn sandbox(design: &Design, folder: &Path) -> Result<Sandbox, String> {
    std::fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let budget = Budget::new(gaussian_dp::epsilon(1.5 * design.mu_limit, DELTA), DELTA).map_err(|e| e.to_string())?;
    Sandbox::new(folder, budget.of(design.unit))
}

/// Checks that an answer is charged on disk first, that a repeated query returns identical bytes at no charge, and that a
/// different query under the same id is refused.
fn one_paid_answer(
    design: &Design,
    folder: &Path,
    prepare: &(dyn Fn(&mut Sandbox) + Sync),
    findings: &mut Vec<String>,
) -> Result<(), String> {
    let mut sandbox = sandbox(design, folder)?;
    sandbox.put_on(JOB, &design.spec, design.shard(World::With))?;
    prepare(&mut sandbox);
    let ask = design.message(JOB, 0);
    let answer = sandbox.answer(ask.clone());
    let on_disk = charges_on_disk(&sandbox)?;
    if answer.status != RELEASED {
        findings.push("a query within the budget was refused".into());
    }
    if on_disk != u64::from(design.per_round()) {
        findings.push(format!("an answer of {} numbers was received with {on_disk} charges on disk", design.per_round()));
    }
    if let Some(finding) = check_collusion_charge(&sandbox, design)? {
        findings.push(finding);
    }
    let spent = sandbox.answerer.ledger().units();
    if sandbox.answer(ask.clone()) != answer || sandbox.answerer.ledger().units() != spent {
        findings.push("a repeated query got another answer or was charged again".into());
    }
    let mut altered = ask;
    for proposal in &mut altered.proposals {
        proposal.to.iter_mut().for_each(|x| *x *= 0.5);
    }
    let second = sandbox.answer(altered);
    if second.status != Some(AnswerStatus::Conflict.to_wire()) || second.releases.iter().any(|r| *r != 0) {
        findings.push("a different query under the same id was answered".into());
    }
    if wire_length(&second) != wire_length(&answer) {
        findings.push("a refusal and an answer have different lengths".into());
    }
    Ok(())
}

/// Checks that ordinary, extreme and impossible records yield equal statuses, lengths and charges, and numbers within range. Each
/// set of records has its own ledger in the same state.
fn any_records_look_alike(
    design: &Design,
    folder: &Path,
    prepare: &(dyn Fn(&mut Sandbox) + Sync),
    findings: &mut Vec<String>,
) -> Result<(), String> {
    let mut seen: Option<(v1::Answer, usize, u64)> = None;
    let far = design.farthest();
    for (number, (name, shard)) in shards(design).into_iter().enumerate() {
        let mut sandbox = sandbox(design, &folder.join(format!("records-{number}")))?;
        sandbox.put_on(JOB, &design.spec, shard)?;
        prepare(&mut sandbox);
        let answer = sandbox.answer(design.message(JOB, 0));
        let charged = sandbox.answerer.ledger().units().0;
        let length = wire_length(&answer);
        if sandbox.opened(JOB, &answer).iter().any(|a| !(-far..=far).contains(a)) {
            findings.push(format!("with {name}, a released number exceeds the range of clamped records and noise"));
        }
        match &seen {
            None => seen = Some((answer, length, charged)),
            Some((first, first_length, first_charged)) => {
                if answer.status != first.status {
                    findings.push(format!("with {name}, the status differs from that of ordinary records"));
                }
                if length != *first_length {
                    findings.push(format!("with {name}, the reply's length differs from that of ordinary records"));
                }
                if charged != *first_charged {
                    findings.push(format!("with {name}, the charge differs from that of ordinary records"));
                }
            }
        }
    }
    Ok(())
}

/// Returns shards with one unusual record each, including values that no loader admits.
pub(crate) fn shards(design: &Design) -> Vec<(&'static str, ModelData)> {
    let with = |value: f64| {
        let mut shard = design.shard(World::With);
        if let Some(last) = shard.outcome.last_mut() {
            *last = value;
        }
        shard
    };
    vec![
        ("ordinary records", with(0.25)),
        ("a record at the end of its range", with(1.0)),
        ("a record far beyond its range", with(1e300)),
        ("an infinite record", with(f64::INFINITY)),
        ("a negative infinite record", with(f64::NEG_INFINITY)),
        ("a record that is not a number", with(f64::NAN)),
        ("a subnormal record", with(1e-310)),
    ]
}

const JOB: &str = "check";
const RELEASED: Option<u32> = Some(0);

/// Compares the ledger's charge of a message under full collusion with the expected one.
fn check_collusion_charge(sandbox: &Sandbox, design: &Design) -> Result<Option<String>, String> {
    let priced = Priced::new(QueryKind::Ratio, design.k_t, design.noise(), Honest::ALONE);
    let each = priced.cost(design.unit).map_err(|e| e.to_string())?.units;
    let (expected, booked) = (each * u64::from(design.per_round()), sandbox.answerer.ledger().state().alone().units);
    let wrong = format!("if all others collude the answers cost {expected} units, but the ledger charged {booked}");
    Ok((booked != expected).then_some(wrong))
}

/// Returns the number of charges that another process reads from the ledger's file.
fn charges_on_disk(sandbox: &Sandbox) -> Result<u64, String> {
    let ledger: &Ledger = sandbox.answerer.ledger();
    crate::ledger_views::report(ledger.path(), conclave_vault::answer::sandbox::NOBODY, &sandbox.budget)
        .map(|r| r.queries)
        .map_err(|e| e.to_string())
}
