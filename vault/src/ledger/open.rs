//! Makes, opens, unlocks and closes a ledger.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use conclave_ops::place::Place;
use conclave_privacy::accounting::{Budget, PrivacyFilter, Spent};
use ring::rand::{SecureRandom, SystemRandom};

use super::error::LedgerError;
use super::events::{AllCollude, Genesis, Settle, Unlock, exact, hex};
use super::handle::{DataStanding, Ledger};
use super::head::{Head, HeadFile};
use super::lock::LedgerLock;
use super::room::honest_before;
use super::schema::{checkpoint, create, sync_folder};
use super::secret::Secret;
use super::settings::{KEY_CHECK, LedgerSettings};
use super::{convert, verify};
use crate::clock::now_ms;

/// Numbers the openings of a ledger: receipts of one are void at another.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

impl LedgerSettings {
    /// Creates the ledger of a data set, and its secret key unless there is one: an explicit act of the owner.
    ///
    /// # Errors
    /// [`LedgerError::Exists`] where there is a ledger already: it is never replaced. [`LedgerError::Earlier`] where the head file of an
    /// earlier one exists. [`LedgerError::Locked`] or an input or output error.
    pub fn init(&self) -> Result<(), LedgerError> {
        // A budget that the filter cannot hold is found before the file exists.
        PrivacyFilter::new(&self.budget)?;
        let _lock = LedgerLock::for_new(&self.ledger)?;
        if self.head_file.try_exists().map_err(|e| LedgerError::io(&self.head_file, &e))? {
            return Err(LedgerError::Earlier {
                file: self.head_file.clone(),
                what: "is the newest head of a ledger that was made here before and is gone",
                remedy: "move this file away, and run init again",
            });
        }
        let secret = Secret::load_or_make(&self.secret)?;
        let mut nonce = [0; 32];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| LedgerError::io(&self.ledger, &std::io::Error::other("the system gives no random numbers")))?;
        let genesis =
            Genesis { key_check: hex(&secret.mac(KEY_CHECK, [nonce.as_slice()])), nonce: hex(&nonce), ..self.genesis() };
        create(&self.ledger, &genesis)
    }
}

impl Ledger {
    /// Calls [`LedgerSettings::init`] with key and head beside the ledger, for temporary ledgers.
    ///
    /// # Errors
    /// As [`LedgerSettings::init`].
    pub fn init(path: &Path, party: &str, budget: &Budget) -> Result<(), LedgerError> {
        LedgerSettings::beside(path, party, budget).init()
    }

    /// Calls [`Ledger::open_kept`] with key and head beside the ledger, for temporary ledgers.
    ///
    /// # Errors
    /// As [`Ledger::open_kept`].
    pub fn open(path: &Path, party: &str, budget: &Budget) -> Result<Self, LedgerError> {
        Self::open_kept(&LedgerSettings::beside(path, party, budget))
    }

    /// Opens the ledger and verifies every entry in it.
    ///
    /// A ledger that does not reach a head that the party has published is opened too, but answers no query: see [`Ledger::behind`].
    ///
    /// # Errors
    /// [`LedgerError::Missing`] where there is none: a missing ledger is not an empty one. [`LedgerError::Locked`] where
    /// another process holds it. [`LedgerError::Budget`], [`LedgerError::Unit`] or [`LedgerError::Party`] where it was made
    /// for something else, [`LedgerError::Secret`] where its key is missing. [`LedgerError::Corrupt`] where an entry is
    /// damaged, missing or does not follow from those before it.
    pub fn open_kept(settings: &LedgerSettings) -> Result<Self, LedgerError> {
        Self::open_as(settings, &verify::Layout::PRESENT)
    }

    /// Opens the ledger as [`Ledger::open_kept`] does, with a given layout.
    pub(super) fn open_as(settings: &LedgerSettings, layout: &verify::Layout) -> Result<Self, LedgerError> {
        let mut ledger = Self::read(settings, layout)?;
        if ledger.lost.is_none() {
            ledger.begin()?;
        }
        Ok(ledger)
    }

    /// Unlocks a ledger that is behind a published head, at the owner's request. The act is entered with its reason; sequence numbers
    /// continue above the lost head's, so that no head of the lost entries counts any more.
    ///
    /// # Errors
    /// As [`Ledger::open_kept`]; [`LedgerError::NotBehind`] where there is nothing to unlock.
    ///
    /// `forget` deletes the keys of masks, which must not outlive the lost entries: before the act is entered, so that no ledger is
    /// unlocked beside them.
    pub fn unlock<E: From<LedgerError>>(
        settings: &LedgerSettings,
        reason: &str,
        forget: impl FnOnce(&Secret) -> Result<(), E>,
    ) -> Result<Unlock, E> {
        let mut ledger = Self::read(settings, &verify::Layout::PRESENT)?;
        let Some(lost) = ledger.lost.take() else { return Err(LedgerError::NotBehind.into()) };
        forget(&ledger.secret)?;
        let place = |seq, hash: &[u8; 32]| super::events::ChainPosition { seq, hash: hex(hash) };
        let act = Unlock {
            reason: reason.to_owned(),
            lost: place(lost.seq, &lost.hash),
            from: place(ledger.state.seq(), &ledger.state.hash()),
        };
        let (body, seq) = (act.body(), lost.seq.max(ledger.state.seq()) + 1);
        ledger.write(true, |writer| writer.event_at(seq, Unlock::KIND, 0, &body))?;
        ledger.begin()?;
        ledger.close()?;
        Ok(act)
    }

    fn read(settings: &LedgerSettings, layout: &verify::Layout) -> Result<Self, LedgerError> {
        let path = &settings.ledger;
        if !path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
            return Err(LedgerError::Missing(path.clone()));
        }
        let path = path.canonicalize().map_err(|e| LedgerError::io(path, &e))?;
        let mut lock = LedgerLock::for_existing(&path)?;
        let connection = convert::connect(settings, &path, &mut lock)?;
        let place = Place::of(&path, &lock.ledger().map_err(|e| LedgerError::io(&path, &e))?)?;
        let (state, index) = verify::add_up(&connection, &path, layout)?;
        let (party, budget) = (settings.party.clone(), settings.agreed(&path, state.genesis())?);
        let secret = Secret::load(&settings.secret)?;
        settings.check(&path, &state, &secret)?;
        let (head_file, heads) = HeadFile::open(&settings.head_file, &secret, &party)?;
        // A limit that the ledger has entered holds until another is entered: a key missing in a configuration revokes nothing.
        let entered = state.all_collude().map(|limit| limit.budget(budget.unit)).transpose();
        let entered = entered.map_err(|wrong| LedgerError::corrupt(&path, wrong.to_string()))?;
        let all_collude = settings.all_collude.or(entered);
        let spent = state.spent().plus(state.held()).unwrap_or(state.spent());
        let alone = state.alone().plus(state.held()).unwrap_or(state.alone());
        let mut ledger = Self {
            head: Head::new(&secret, &party, state.seq(), state.hash()),
            filter: PrivacyFilter::resume(&budget, spent)?,
            meter: PrivacyFilter::new(&budget)?,
            alone: all_collude
                .map(|limit| PrivacyFilter::resume(&limit.of(budget.unit).reserving(budget.reserve_units), alone))
                .transpose()?,
            all_collude,
            had_no_head: heads.is_empty(),
            analyst_cap: settings.analyst_cap.map(|cap| cap.of(budget.unit).reserving(budget.reserve_units)),
            analysts: HashMap::new(),
            recoverable: state.unanswered().clone(),
            durability: settings.durability,
            syncing: true,
            uncopied: 0,
            data_version: None,
            data: DataStanding::Unknown,
            lost: None,
            jobs: HashMap::new(),
            before: if all_collude.is_some() { honest_before(&connection, &state)? } else { HashMap::new() },
            priced: HashMap::new(),
            ahead: None,
            pending: HashMap::new(),
            last_pending: 0,
            session: SESSIONS.fetch_add(1, Ordering::Relaxed),
            halted: None,
            clock: now_ms,
            place,
            _lock: lock,
            path,
            connection,
            state,
            index,
            party,
            budget,
            secret,
            head_file,
        };
        for head in heads {
            if ledger.lost.is_none_or(|lost| lost.seq < head.seq) && !ledger.holds(&head)? {
                ledger.lock_behind(head, "its head file");
            }
        }
        Ok(ledger)
    }

    /// Makes everything that was read at this start durable, before any query is answered from it, and counts blocks that a crash left open
    /// as spent.
    ///
    /// A process that was killed between a write and its sync leaves rows that are read back from the system's cache and may not be on
    /// disk: an answer sent from such a row could be forgotten by a power cut, and the query answered again.
    fn begin(&mut self) -> Result<(), LedgerError> {
        checkpoint(&self.connection)?;
        let open: Vec<_> = self.state.jobs().iter().filter_map(|job| Some((job.seq, job.block?))).collect();
        let body = format!("{{\"software\":\"conclave-party {}\"}}", env!("CARGO_PKG_VERSION"));
        let limit = self.changed_all_collude();
        self.write(true, |writer| {
            for (job, block) in &open {
                let Spent { units, slack_units: slack, draws, .. } = block.rest();
                let settle = Settle { block: block.seq, units, slack, draws, why: Settle::CRASH.into() };
                tracing::warn!("a crash has forfeited the charge of {draws} integers, written ahead");
                writer.event(Settle::KIND, *job, &settle.body())?;
            }
            writer.event("start", 0, &body)?;
            match &limit {
                Some(limit) => writer.event(AllCollude::KIND, 0, &limit.body()),
                None => Ok(()),
            }
        })?;
        // The log's own name, too: SQLite syncs the folder once, and does not check the result.
        sync_folder(&self.path)?;
        self.place.with_log()?;
        self.head_file.sync()
    }

    /// Enters the owner's limit in case all others collude, where it differs from the ledger's.
    fn changed_all_collude(&self) -> Option<AllCollude> {
        let Budget { epsilon, delta, .. } = self.all_collude?;
        let limit = AllCollude { epsilon: exact(epsilon), delta: exact(delta) };
        (self.state.all_collude() != Some(&limit)).then_some(limit)
    }

    /// Ends an open ledger: blocks are settled, the log is copied in, the head file synced. No refund covers a charge that may have paid
    /// for an answer: only charge that was never taken is returned, and every taken one is recorded and synced by then.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] where any of it fails; the next start treats it as a crash.
    pub fn close(mut self) -> Result<(), LedgerError> {
        self.alive()?;
        if self.lost.is_some() {
            return Ok(());
        }
        let result = self.try_close();
        self.fail_stop(result)
    }

    fn try_close(&mut self) -> Result<(), LedgerError> {
        let settles = self.settle_all("stopped");
        self.write(true, |writer| {
            for (job, settle) in &settles {
                writer.event(Settle::KIND, *job, &settle.body())?;
            }
            writer.event("stop", 0, "{}")
        })?;
        checkpoint(&self.connection)?;
        self.head_file.sync()
    }
}
