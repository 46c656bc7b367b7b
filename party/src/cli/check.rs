//! `conclave-party run --check`: checks everything that can be checked without changes. `doctor` checks more.

use conclave_ops::check::{Checks, check_writable};
use conclave_ops::files::parent_folder;
use conclave_proto::revoked::RevokedFile;
use serde_json::json;

use super::common::Common;
use crate::config::{PartyConfig, secure_concerns};
use crate::daemon::{NO_VECTORS, check_key_permissions};
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::link::load_identity;
use crate::owner::jobs;
use crate::presence::running;
use crate::screening::{screen_columns, screen_job};
use conclave_vault::config::ReplyDelay;
use conclave_vault::data::Shard;
use conclave_vault::ledger::LedgerError;

pub(super) fn check(common: &Common) -> Result<(), StartError> {
    let mut startup = StartupChecks::default();
    match PartyConfig::load(&common.config) {
        Ok(config) => {
            startup.checks.good("config", format!("{}: every key is known", common.config.display()));
            startup.run(&config);
        }
        Err(fault) => startup.checks.fault("config", fault.to_string()),
    }
    let faults = startup.checks.faults();
    let object = json!({
        "party": startup.party, "records": startup.records, "share_spent": startup.share_spent, "faults": faults,
        "checks": startup.checks,
    });
    common.print(&object, startup.checks.to_string().trim_end())?;
    match faults {
        0 => Ok(()),
        1 => Err(StartError::Input("1 fault; the party would not start".into())),
        faults => Err(StartError::Input(format!("{faults} faults; the party would not start"))),
    }
}

#[derive(Default)]
struct StartupChecks {
    checks: Checks,
    party: Option<String>,
    records: Option<u64>,
    share_spent: Option<f64>,
}

impl StartupChecks {
    fn run(&mut self, config: &PartyConfig) {
        self.party = Some(config.name.clone());
        let identity = load_identity(&config.identity, &config.key, &config.name)
            .and_then(|identity| identity.check_at(std::time::SystemTime::now()).map(|()| identity.identity().uri()));
        self.checks.add_result("identity", identity.map(|uri| format!("{}: {uri}", config.identity.display())));
        if let Err(open) = check_key_permissions(config) {
            self.checks.fault("identity", open);
        }
        if let Err(beside) = config.check_head_location() {
            self.checks.fault("head_file", beside);
        }
        if let Some(path) = &config.revoked {
            let read = RevokedFile::at(path).read().map(|_| format!("{} can be read", path.display()));
            self.checks.add_result("revoked", read);
        }
        self.data(config);
        let daemon = running(&config.ledger);
        self.ledger(config, daemon.is_some());
        self.policy(config);
        self.checks.check_metrics(config.ops.metrics, daemon.is_some());
        self.checks.check_pages("page", config.page, daemon.is_some());
    }

    fn data(&mut self, config: &PartyConfig) {
        let shard = match Shard::load(&config.data, config.policy.columns.as_deref()) {
            Ok(shard) => shard,
            Err(e) => return self.checks.fault("data", e.to_string()),
        };
        self.records = Some(shard.records());
        // Inert rows, and those beyond a person's limit.
        let (rows, unused) = (shard.file_rows(), shard.inert() + shard.beyond_limit());
        let found = format!("{}: {rows} rows, {unused} of which contribute zero to every answer", shard.file().display());
        self.checks.good("data", found);
        // Notes, not faults: the party starts with any records, so that its start reveals nothing about them.
        match screen_columns(&shard, None) {
            Ok(concerns) => concerns.iter().for_each(|concern| self.checks.note("columns", concern.to_string())),
            Err(e) => self.checks.fault("columns", e.to_string()),
        }
        let jobs = if config.ledger.exists() { jobs(&config.ledger).unwrap_or_default() } else { Vec::new() };
        for job in jobs.iter().filter(|job| job.is_live()) {
            let Some(spec) = &job.spec else { continue };
            match screen_job(&shard, spec) {
                Ok(concerns) => {
                    concerns.iter().for_each(|concern| self.checks.note("bounds", format!("job {}: {concern}", job.request.job)));
                }
                Err(e) => self.checks.fault("bounds", e.to_string()),
            }
        }
    }

    fn ledger(&mut self, config: &PartyConfig, runs: bool) {
        let report = report_kept(&config.ledger_settings());
        if let Err(e @ LedgerError::Former(_)) = &report {
            self.checks.note("ledger", e.to_string());
            return;
        }
        self.share_spent = report.as_ref().ok().map(|report| report.share_spent);
        self.checks.add_result(
            "ledger",
            report.map(|report| format!("{}: {:.2}% of the budget spent", config.ledger.display(), 100.0 * report.share_spent)),
        );
        let secret = config.ledger_settings().secret;
        if !secret.exists() {
            let message = format!("{}: the ledger's key is missing; restore the one made with the ledger", secret.display());
            self.checks.fault("ledger", message);
        }
        self.checks.add_result("ledger", check_writable(parent_folder(&config.ledger)));
        self.checks.add_result("head_file", check_writable(parent_folder(&config.head_file)));
        if runs {
            self.checks.note("ledger", "a running party uses it: a second one would not start");
        }
    }

    fn policy(&mut self, config: &PartyConfig) {
        if !conclave_privacy::pass::has_fused_multiply_add() {
            self.checks.fault("processor", NO_VECTORS);
        }
        let unlimited = config.unlimited();
        if !unlimited.is_empty() {
            self.checks.note("policy", format!("sets no {}: jobs are not limited by it", unlimited.join(", no ")));
        }
        if config.policy.reply_delay == ReplyDelay::Off {
            self.checks.note("policy", "reply_delay_ms is 0: the time of an answer is visible from outside");
        }
        for concern in secure_concerns(&config.secure) {
            self.checks.note("secure", concern);
        }
    }
}
