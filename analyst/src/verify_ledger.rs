//! `conclave verify-ledger`: an auditor's check of an exported ledger, without access to the party's machine.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use conclave_common::text::one_line;
use conclave_party::ledger_views::export::{Checked, Late, check};
use conclave_privacy::accounting::{Budget, gaussian_dp};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::Role;
use conclave_proto::signature::{Signature, check_certificate, verify};
use conclave_vault::ledger::events::hex;
use serde_json::json;

use crate::files;
use crate::output::show;

/// Check a ledger exported by a data owner: every entry, every sum, and the owner's signature
///
/// The file is the output of `conclave-party export`. The checks: no entry is missing, changed or out of order (each
/// carries the hash of the one before); every charge follows from its sensitivity and noise; the running totals add up
/// and stay within the budget; every released number has its own charge; and the party's key has signed the whole file.
/// With --ca, the consortium's CA must also have signed the party's certificate, valid at the time of the export.
/// Charges after the last day of an owner's permit are named; with --decisions, so is every permit that differs there.
#[derive(Args)]
pub(crate) struct VerifyLedgerArgs {
    /// The exported ledger
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The consortium's CA certificate, to check the signer's certificate with
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A copy of the owner's file of decisions, to compare its permits with those in the ledger
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The last line of a certificate in PEM.
const END_OF_CERTIFICATE: &str = "-----END CERTIFICATE-----\n";

pub(crate) fn run(args: &VerifyLedgerArgs) -> Result<ExitCode, Fault> {
    let file = File::open(&args.file).map_err(|e| Fault::of_file(&args.file, "be read", &e))?;
    let refused = |why: String| Fault::new(ErrorCode::Unauthenticated, format!("{}: {why}", args.file.display()));
    let checked = check(BufReader::with_capacity(1 << 16, file)).map_err(refused)?;
    let signature = Signature {
        bytes: checked.seal.signature_bytes().ok_or_else(|| refused("the signature is not hexadecimal".to_owned()))?,
        scheme: checked.seal.scheme.clone(),
        certificate: checked.seal.certificate.clone(),
    };
    // Text after the last line would not be read, and so not be covered by the signature.
    if !signature.certificate.ends_with(END_OF_CERTIFICATE) {
        return Err(refused("text follows the last line of the signer's certificate".to_owned()));
    }
    let signer = verify(&checked.signed, &signature).map_err(|fault| refused(fault.message))?;
    if signer.role != Role::Party || signer.name != checked.header.party {
        return Err(refused(format!("the ledger belongs to party {} but was signed by {signer}", checked.header.party)));
    }
    if let Some(ca) = &args.ca {
        let exported = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(checked.header.exported_ms).unwrap_or(0));
        check_certificate(&signature.certificate, &files::read(ca)?, exported).map_err(|fault| refused(fault.message))?;
    }
    print_report(&checked, args)?;
    Ok(ExitCode::SUCCESS)
}

fn print_report(checked: &Checked, args: &VerifyLedgerArgs) -> Result<(), Fault> {
    let state = &checked.state;
    let budget = state.budget().ok_or_else(|| Fault::new(ErrorCode::Internal, "the ledger has no budget"))?;
    let mu_squared = state.spent().mu_squared();
    let epsilon = if mu_squared > 0.0 { gaussian_dp::epsilon(mu_squared.sqrt(), budget.delta) } else { 0.0 };
    let queries: u64 = state.jobs().iter().map(|job| job.queries).sum();
    let (party, entries, head, released) = (&checked.header.party, state.seq(), hex(&state.hash()), state.answers());
    let jobs: Vec<_> = state
        .jobs()
        .iter()
        .map(|job| json!({ "job": job.id, "analyst": job.analyst, "queries": job.queries, "mu_squared": job.spent.mu_squared() }))
        .collect();
    let certificate = match args.ca {
        Some(_) => "its certificate was signed by the CA",
        None => "its certificate was not checked against a CA (--ca ca.pem)",
    };
    let Budget { epsilon: of, delta, unit, .. } = budget;
    let id = |seq: u64| state.job_at(seq).map_or_else(|| format!("entered as {seq}"), |job| job.id.clone());
    let late = checked.permits.late(id);
    let differences = args.decisions.as_deref().map(|file| checked.permits.differences(file, id)).transpose();
    let differences = differences.map_err(|why| Fault::new(ErrorCode::InvalidInput, why))?;
    let after = |late: &Late| {
        let Late { job, last_day, charges, first } = late;
        format!(
            "WARNING: job {job} was charged {charges} times after the last day of its permit, {last_day} (UTC), first at {first}"
        )
    };
    let mut warnings: Vec<String> = late.iter().map(after).collect();
    warnings.extend(differences.iter().flatten().map(|difference| format!("WARNING: {difference}")));
    let mut text = format!(
        "The ledger of party {party} is valid: {entries} entries, {queries} numbers charged and {released} released, in {} jobs.\n\
         Spent: epsilon = {epsilon:.6} of {of} at delta = {delta}, mu^2 = {mu_squared:.6}; protects one {unit}.\n\
         Head: entry {entries}, {head}\n\
         Signed by {party}; {certificate}.",
        jobs.len()
    );
    warnings.iter().for_each(|warning| text += &format!("\n{}", one_line(warning)));
    let object = json!({
        "charged_after_permit": late, "permits_that_differ": differences,
        "party": party, "entries": entries, "head": head, "jobs": jobs, "queries": queries, "released": released,
        "mu_squared_spent": mu_squared, "epsilon_spent": epsilon, "epsilon_budget": of, "delta": delta, "unit": unit.to_string(),
        "certificate_checked": args.ca.is_some(),
    });
    show(args.json, &object, &text);
    Ok(())
}
