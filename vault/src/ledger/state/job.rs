//! Holds one job's part of a ledger's state: its charges, and the block that pays ahead for its answers.

use conclave_privacy::accounting::{BlockTerms, Honest, Priced, PrivacyUnit, Spent, grantable_reserve_units};
use conclave_privacy::mechanism::QueryKind;

use super::sampled_block::SampledBlock;
use crate::ledger::entry::Hash;
use crate::ledger::events::{JobReserve, MaskKey, Reserve, RosterEntered, Settle};
use crate::ledger::ids::Ids;
use crate::ledger::wrong::Wrong;

/// One job's part of the state.
#[derive(Debug, Clone)]
pub struct JobState {
    /// `seq` of its entry.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The analyst.
    pub analyst: String,
    /// SHA-256 of its text.
    pub spec_digest: Hash,
    /// The cap's epsilon and delta, as the entry has them.
    pub cap: (String, String),
    /// Public number of units of privacy; 0 where none is.
    pub records: u64,
    /// Keyed hash of its data at the first opening.
    pub fingerprint: Vec<u8>,
    /// `seq` of the last refresh before it was entered.
    pub era: u64,
    /// True while it is open.
    pub open: bool,
    /// Openings since its last charge.
    pub idle: u32,
    /// Charges and forfeits.
    pub spent: Spent,
    /// Queries charged.
    pub queries: u64,
    /// `seq` of its last charge.
    pub last_charge: u64,
    /// The block that pays for its answers, in reserve mode.
    pub block: Option<Block>,
    /// Its cap's part of the reserve of delta, units of 2^-60.
    pub reserve_cap: u64,
    /// Its blocks of subsampled releases, in the order in which they were opened.
    pub sampled: Vec<SampledBlock>,
    /// Its masking.
    pub masks: Masks,
    /// Rounds whose answers may have been lost with a crash in reserve mode: first, and the one after the last.
    pub lost: Vec<(u64, u64)>,
    pub(in crate::ledger) ids: Ids,
}

/// The form in which a job's answers leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Masks {
    /// Each is opened by itself.
    None,
    /// Masked, once there is a roster: this is the public half of the party's key.
    Keyed([u8; 32]),
    /// Masked under the keys of this roster, for ever.
    Under(Box<RosterEntered>),
}

impl Masks {
    /// Returns the roster, once it is entered.
    pub fn roster(&self) -> Option<&RosterEntered> {
        match self {
            Self::Under(roster) => Some(roster),
            _ => None,
        }
    }
}

/// Charge written ahead.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// `seq` of its entry.
    pub seq: u64,
    /// The first round that it may pay for.
    pub iteration: u64,
    /// Total charge.
    pub held: Spent,
    /// Charge that was used.
    pub used: Spent,
}

impl Block {
    /// Returns the charge that no query has used.
    pub fn rest(&self) -> Spent {
        self.held.minus(self.used)
    }
}

impl JobState {
    pub fn reserve(&mut self, seq: u64, reserve: &Reserve) -> Result<(), Wrong> {
        if self.block.is_some() {
            return Err(Wrong::SecondBlock(self.id.clone()));
        }
        let held = Spent { units: reserve.units, slack_units: reserve.slack, draws: reserve.draws, reserve_units: 0 };
        self.block = Some(Block { seq, iteration: reserve.iteration, held, used: Spent::default() });
        Ok(())
    }

    pub(super) fn settle(&mut self, settle: &Settle) -> Result<(), Wrong> {
        let block = self.block.take().filter(|block| block.seq == settle.block).ok_or(Wrong::SettledBlock)?;
        let (rest, forfeit) = (block.rest(), settle.spent());
        let whole = settle.why == Settle::CRASH;
        if (whole && forfeit != rest)
            || forfeit.units > rest.units
            || forfeit.slack_units > rest.slack_units
            || forfeit.draws > rest.draws
        {
            return Err(Wrong::Forfeit);
        }
        if whole {
            // A round has at least one query, and a query that a block pays for has one integer.
            self.lost.push((block.iteration, block.iteration.saturating_add(block.held.draws)));
        }
        self.spent = self.spent.plus(forfeit).ok_or(Wrong::Overflow)?;
        Ok(())
    }

    /// Returns the least attempt under which an unrecorded id may be answered: one more for every crash that may have lost its answer.
    pub fn least_attempt(&self, iteration: u64) -> u32 {
        self.lost.iter().filter(|(first, end)| (*first..*end).contains(&iteration)).count() as u32
    }

    /// Returns its block with a free place for a release of this kind under these terms.
    pub fn free_block(&self, kind: QueryKind, terms: &BlockTerms) -> Option<&SampledBlock> {
        self.sampled.iter().rev().find(|block| block.has_place(kind, terms))
    }

    /// Takes a place of the block of that number.
    pub(super) fn take_place(&mut self, block: u64, priced: &Priced, unit: PrivacyUnit) -> Result<(), Wrong> {
        let at = self.sampled.binary_search_by_key(&block, |block| block.seq).map_err(|_| Wrong::SampledPlace)?;
        self.sampled[at].take(priced, unit)
    }

    /// Adds a block that has been opened.
    pub(super) fn open_block(&mut self, block: SampledBlock) -> Result<(), Wrong> {
        if !self.open {
            return Err(Wrong::Closed(self.id.clone()));
        }
        if self.masks != Masks::None {
            return Err(Wrong::BlockTerms);
        }
        if self.free_block(block.kind, &block.terms).is_some() {
            return Err(Wrong::EarlyBlock);
        }
        let spent = self.spent.plus(block.cost).ok_or(Wrong::Overflow)?;
        let limit = grantable_reserve_units(self.reserve_cap);
        if spent.reserve_units > limit {
            return Err(Wrong::OverReserved { units: spent.reserve_units, limit });
        }
        self.spent = spent;
        self.sampled.push(block);
        Ok(())
    }

    /// Sets the limit on its blocks' reserve of delta: once, right after its entry, before any other event.
    pub(super) fn reserve_for_blocks(&mut self, seq: u64, reserve: JobReserve) -> Result<(), Wrong> {
        if seq != self.seq + 1 || reserve.reserve == 0 {
            return Err(Wrong::JobReserve(self.id.clone()));
        }
        self.reserve_cap = reserve.reserve;
        Ok(())
    }

    pub(super) fn mask_key(&mut self, key: &MaskKey) -> Result<(), Wrong> {
        if self.masks != Masks::None || self.queries > 0 || self.block.is_some() || !self.sampled.is_empty() {
            return Err(Wrong::SecondMaskKey(self.id.clone()));
        }
        self.masks = Masks::Keyed(key.key()?);
        Ok(())
    }

    pub(super) fn enter_roster(&mut self, roster: RosterEntered) -> Result<(), Wrong> {
        let Masks::Keyed(own) = self.masks else { return Err(Wrong::SecondRoster(self.id.clone())) };
        roster.check(&self.id, &self.spec_digest, &own)?;
        self.masks = Masks::Under(Box::new(roster));
        Ok(())
    }

    /// Returns the number of parties whose noise protects its opened answers; `None` while it has a key and no roster, and may not be
    /// charged.
    pub fn honest(&self) -> Option<Honest> {
        match &self.masks {
            Masks::None => Some(Honest::ALONE),
            Masks::Keyed(_) => None,
            Masks::Under(roster) => Honest::new(roster.honest),
        }
    }

    /// Returns the roster under which its answers are masked.
    pub fn roster(&self) -> Option<&RosterEntered> {
        self.masks.roster()
    }

    /// Returns charges and forfeits, and the unused charge of its open block.
    pub fn committed(&self) -> Spent {
        let rest = self.block.as_ref().map(Block::rest).unwrap_or_default();
        self.spent.plus(rest).unwrap_or(self.spent)
    }
}
