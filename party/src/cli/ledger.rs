//! `conclave-party ledger`, `export`, `unlock` and `refresh`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use conclave_ops::terminal;

use super::common::{Common, load};
use crate::error::StartError;
use crate::ledger_views::export;
use crate::ledger_views::export::Seal;
use crate::ledger_views::{CLOCK, Listed, Listing, list, settled_ms};
use crate::link::load_identity;
use crate::owner::find;
use conclave_vault::ledger::events::hex;
use conclave_vault::ledger::{Ledger, LedgerError, Secret};
use conclave_vault::secure::MaskKeys;

/// Number of a release's integers that a line shows.
const FIRST: usize = 3;

#[derive(Debug, Args)]
pub(super) struct LedgerArgs {
    #[command(flatten)]
    common: Common,
    /// Show only the releases of this job: its id, or a prefix of it.
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Show only the last N releases.
    #[arg(long, value_name = "N")]
    last: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    common: Common,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ActArgs {
    #[command(flatten)]
    common: Common,
    /// Reason in your own words, recorded in the ledger permanently.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Prints a table of every release.
pub(super) fn ledger(args: &LedgerArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let settings = config.ledger_settings();
    let job = args.job.as_deref().map(|id| find(&config.ledger, id)).transpose()?.map(|job| job.request.job);
    let listing = Listing { job, last: args.last };
    let written = if args.common.json {
        let mut out = terminal::json_output();
        // One object, written while reading: a ledger may hold millions of releases.
        let party = serde_json::to_string(&settings.party).unwrap_or_default();
        write!(out, "{{\"party\":{party},\"releases\":[").map_err(stdout)?;
        let mut first = true;
        list(&settings, &listing, |row| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let row = serde_json::to_string(&row).map_err(|e| StartError::System(e.to_string()))?;
            write!(out, "{comma}{row}").map_err(stdout)
        })?;
        writeln!(out, "]}}").and_then(|()| out.flush())
    } else {
        let mut out = terminal::output();
        writeln!(out, "{HEADINGS}").map_err(stdout)?;
        list(&settings, &listing, |row| writeln!(out, "{}", line(&row)).map_err(stdout))?;
        out.flush()
    };
    written.map_err(stdout)
}

const HEADINGS: &str = "    seq time                     job      analyst    iteration chain theta    theta'   kind         integers         K_t     sigma \
                        charge (mu^2) running total             released";

fn line(r: &Listed) -> String {
    let short = |text: &str| text.chars().take(8).collect::<String>();
    let attempt = if r.attempt > 0 { format!("  attempt {}", r.attempt) } else { String::new() };
    let place = r.block.zip(r.place).map(|(block, place)| format!("  block {block} place {place}")).unwrap_or_default();
    format!(
        "{:>7} {} {:8} {:10} {:>9} {:>5} {:8} {:8} {:12} {:>8} {:>11} {:>9.5} {:>13.6e} {:>13.6e} {:>20}{attempt}{place}",
        r.seq,
        r.time,
        short(&r.job),
        r.analyst,
        r.iteration,
        r.chain,
        short(&r.theta),
        short(&r.theta_next),
        r.kind,
        r.integers,
        r.k_t,
        r.sigma,
        r.mu_squared,
        r.running_total,
        r.shown(FIRST)
    )
}

/// Exports the ledger as signed JSON lines for an auditor.
pub(super) fn export(args: &ExportArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let identity = load_identity(&config.identity, &config.key, &config.name)?;
    let settings = config.ledger_settings();
    let mut out: Box<dyn Write> = match &args.out {
        Some(path) => {
            let file = File::options().write(true).create_new(true).open(path);
            Box::new(file.map_err(|e| StartError::System(format!("{}: {e}", path.display())))?)
        }
        None => Box::new(terminal::signed_output()),
    };
    let mut out = Piped { to: &mut out, hung_up: false };
    let written = export::write(&settings, BufWriter::with_capacity(1 << 16, &mut out));
    if out.hung_up {
        return Err(StartError::HungUp);
    }
    let (signed, state) = written?;
    let signature = identity.sign(&signed)?;
    let seal = Seal { signature: hex(&signature.bytes), scheme: signature.scheme, certificate: signature.certificate };
    export::write_line(&mut out, &seal).and_then(|()| out.flush()).map_err(stdout)?;
    let Some(path) = &args.out else { return Ok(()) };
    let (file, entries) = (path.display(), state.seq());
    let text =
        format!("{file}: {entries} entries, signed. An auditor checks it with\n    conclave verify-ledger {file} --ca ca.pem");
    args.common.print(&serde_json::json!({ "file": path, "entries": entries, "head": hex(&state.hash()) }), &text)
}

/// A writer that records whether its reader has hung up.
struct Piped<W> {
    to: W,
    hung_up: bool,
}

impl<W: Write> Write for Piped<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write(bytes).inspect_err(|e| self.hung_up |= e.kind() == std::io::ErrorKind::BrokenPipe)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Records the owner's act that unlocks a ledger older than a published checkpoint.
pub(super) fn unlock(args: &ActArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let settings = config.ledger_settings();
    let forget = |secret: &Secret| -> Result<(), StartError> {
        let keys = MaskKeys::beside(&settings.secret, secret.clone());
        keys.delete_all().map_err(|e| StartError::System(format!("the mask keys of the lost entries could not be deleted: {e}")))
    };
    let act = Ledger::unlock(&settings, reason(args)?, forget)?;
    let text = format!(
        "{}: resumes after entry {}; entries up to {} are declared lost, and the act is recorded with its reason.\nThe charges \
         of the lost entries are not in this ledger's totals: the data have revealed more than it shows.",
        config.ledger.display(),
        act.from.seq,
        act.lost.seq
    );
    args.common.print(&act, &text)
}

/// Records the owner's act that declares the data refreshed.
pub(super) fn refresh(args: &ActArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    Ledger::refresh(&config.ledger_settings(), reason(args)?)?;
    let text = format!(
        "{}: the data are recorded as refreshed. Earlier jobs stay refused; new jobs use the same budget.",
        config.ledger.display()
    );
    args.common.print(&serde_json::json!({ "refreshed": config.ledger }), &text)
}

/// Records the owner's act that confirms the machine's clock: permits no longer count the times of earlier entries.
pub(super) fn confirm_clock(args: &ActArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let (reason, before) = (reason(args)?, settled_ms(&config.ledger)?);
    let mut ledger = Ledger::open_kept(&config.ledger_settings())?;
    ledger.enter_act(CLOCK, None, &serde_json::json!({ "reason": reason, "settled_ms": before }).to_string())?;
    ledger.close()?;
    let now = conclave_vault::clock::now();
    let text = format!(
        "{}: the clock is confirmed at {now}. Permits count from this time on, once the party is started.",
        config.ledger.display()
    );
    args.common.print(&serde_json::json!({ "confirmed": now }), &text)
}

fn reason(args: &ActArgs) -> Result<&str, StartError> {
    match args.reason.trim() {
        "" => Err(LedgerError::NoReason.into()),
        reason => Ok(reason),
    }
}

fn stdout(e: std::io::Error) -> StartError {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        return StartError::HungUp;
    }
    StartError::System(format!("the output can't be written: {e}"))
}
