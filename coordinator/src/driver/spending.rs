//! What the parties of a running job have been charged, as this coordinator reckons it.

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::{PartyMetadata, Round};
use conclave_draws::spent::Spent;
use conclave_privacy::accounting::{OpenBlocks, PrivacyUnit};

/// What is reckoned of the parties that protect one kind of unit.
#[derive(Debug)]
struct Account {
    unit: PrivacyUnit,
    spent: Spent,
    /// The blocks that they have opened.
    blocks: OpenBlocks,
}

/// What a job's parties have been charged for the rounds absorbed. A charge depends on what a party protects and on nothing else of it, so there is one
/// account for each kind of unit, however many parties there are.
#[derive(Debug)]
pub(super) struct Spending {
    accounts: Vec<Account>,
    /// Each party's account, in the job's order.
    of_party: Vec<usize>,
    /// What the dearest round cost whom it cost most, in units of 2^-48 of mu².
    dearest: u64,
}

impl Spending {
    /// Nothing charged yet, at parties that hold this.
    pub(super) fn new(metadata: &[PartyMetadata]) -> Self {
        let mut accounts: Vec<Account> = Vec::new();
        let mut account = |unit: PrivacyUnit| {
            accounts.iter().position(|account| account.unit == unit).unwrap_or_else(|| {
                accounts.push(Account { unit, spent: Spent::default(), blocks: OpenBlocks::default() });
                accounts.len() - 1
            })
        };
        let of_party = metadata.iter().map(|metadata| account(metadata.unit())).collect();
        Self { accounts, of_party, dearest: 0 }
    }

    /// Adds the charges of an absorbed round.
    ///
    /// # Errors
    /// As [`Spent::for_round`].
    pub(super) fn add(&mut self, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<(), String> {
        for Account { unit, spent, blocks } in &mut self.accounts {
            let cost = Spent::for_round(round, (model, spec), *unit, blocks)?;
            self.dearest = self.dearest.max(cost.units);
            *spent = spent.plus(cost);
        }
        Ok(())
    }

    /// What a party protects, and what it has been charged.
    pub(super) fn of(&self, party: usize) -> (PrivacyUnit, Spent) {
        let Account { unit, spent, .. } = &self.accounts[self.of_party[party]];
        (*unit, *spent)
    }

    /// What a round that is not absorbed yet costs a party.
    ///
    /// # Errors
    /// As [`Spent::for_round`].
    pub(super) fn cost(&self, party: usize, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<Spent, String> {
        let Account { unit, blocks, .. } = &self.accounts[self.of_party[party]];
        Spent::for_round(round, (model, spec), *unit, &mut blocks.clone())
    }

    /// What the dearest round cost whom it cost most.
    pub(super) fn dearest(&self) -> u64 {
        self.dearest
    }

    /// Each party with what it has left of so much, in units of 2^-48 of mu².
    pub(super) fn left(&self, limit_units: u64) -> impl Iterator<Item = (usize, u64)> {
        let left =
            move |(party, account): (usize, &usize)| (party, limit_units.saturating_sub(self.accounts[*account].spent.units));
        self.of_party.iter().enumerate().map(left)
    }

    /// The kinds of unit that the parties protect.
    pub(super) fn units(&self) -> impl Iterator<Item = PrivacyUnit> {
        self.accounts.iter().map(|account| account.unit)
    }
}
