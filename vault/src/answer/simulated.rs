//! Runs a party without its sockets and threads, for tests that plant faults between it and the coordinator.
//!
//! Ledger, consent, members, shard and answers are the daemon's own. The noise is a function of a seed that the test sets; its records must
//! be made up.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use conclave_ops::Clock;
use conclave_proto::v1::{self, CoordinatorFrame, PartyFrame, coordinator_frame::Body, party_frame};
use tokio::sync::mpsc;

use super::thread::Command;
use super::{Answerer, Secrecy};
use crate::clock::now_ms;
use crate::config::Policy;
use crate::consent::ConsentStore;
use crate::data::DataConfig;
use crate::data::Shard;
use crate::ledger::{Ledger, LedgerSettings};
use crate::members::Members;
use crate::noise::Noise;

/// Sets the wall clock of every ledger that is written on this thread.
pub fn set_clock_skew_ms(skew: i64) {
    Clock::Party.set_skew_ms(skew);
}

/// Returns the reply of a stand-alone answer path to a piece of a roster of keys, if any.
pub fn enter_roster(answerer: &mut Answerer, piece: v1::Roster) -> Option<party_frame::Body> {
    let (outbox, mut said) = mpsc::channel(1);
    answerer.take_roster(piece, &outbox);
    said.try_recv().ok()?.body
}

/// A party between two starts. Dropped without [`SimulatedParty::stop`], it ends like a killed process, except for unwritten data of the
/// operating system.
pub struct SimulatedParty(Answerer);

impl SimulatedParty {
    /// Starts the party as the daemon does. `identity` is the folder with the CA's certificate.
    ///
    /// # Errors
    /// A sentence: one of its files does not allow a start.
    pub fn start(keeping: &LedgerSettings, data: &DataConfig, policy: Policy, identity: &Path) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let shard = Shard::load(data, policy.columns.as_deref()).map_err(|e| text(&e))?;
        let mut ledger = Ledger::open_kept(keeping).map_err(|e| text(&e))?;
        ledger.present_data(&shard.fingerprints(ledger.secret()).map_err(|e| text(&e))?).map_err(|e| text(&e))?;
        let consent = ConsentStore::open(&keeping.ledger).map_err(|e| text(&e))?;
        let members = Members::of(identity, None);
        let answerer = Answerer::new(keeping.party.clone(), policy, keeping.budget, shard, ledger, Noise::seeded(0));
        let mut party = Self(answerer.with_consent(consent).with_members(members));
        party.meet_clock(Some(SystemTime::now()));
        Ok(party)
    }

    /// Admits masked jobs.
    ///
    /// # Errors
    /// A sentence: a folder of keys cannot be read or written.
    pub fn with_secrecy(self, parts: Secrecy) -> Result<Self, String> {
        self.0.with_secrecy(parts).map(Self).map_err(|e| e.to_string())
    }

    /// Carries out the owner's decisions.
    pub fn consent_changed(&mut self) {
        self.0.take(now_ms(), Command::Consent);
    }

    /// Meets a coordinator whose clock shows this time; `None` before it has met any.
    pub fn meet_clock(&mut self, date: Option<SystemTime>) {
        self.0.meet_clock(date);
    }

    /// Does what is due after `time` without a message.
    pub fn pass(&mut self, time: Duration) {
        let now = Instant::now() + time;
        self.0.close_idle(now);
    }

    /// Seeds the next draws of noise.
    pub fn seed_noise(&mut self, seed: u64) {
        self.0.noise.reseed(seed);
    }

    /// Handles a frame; replies go into `outbox`.
    pub fn take(&mut self, frame: CoordinatorFrame, outbox: &mpsc::Sender<PartyFrame>) {
        let command = match frame.body {
            Some(Body::Welcome(welcome)) => Command::Welcome(welcome.protocol, welcome.head, Some(SystemTime::now())),
            Some(Body::Query(query)) => Command::Query(query, Instant::now(), outbox.clone()),
            Some(Body::OpenJob(open)) => Command::Open(open, Instant::now(), outbox.clone()),
            Some(Body::Roster(piece)) => Command::Roster(piece, outbox.clone()),
            Some(Body::CloseJob(close)) => Command::Close(close),
            Some(Body::AskBudget(ask)) => Command::AskBudget(ask, outbox.clone()),
            Some(Body::Heartbeat(_)) | None => return,
        };
        self.0.take(now_ms(), command);
        self.0.note_health();
    }

    /// Ends it as on SIGTERM.
    pub fn stop(self) {
        self.0.end();
    }
}
