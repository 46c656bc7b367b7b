//! Charges of a running job at its parties, as this coordinator computes them.

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::{PartyMetadata, Round};
use conclave_draws::spent::Spent;
use conclave_privacy::accounting::{OpenBlocks, PrivacyUnit};

/// Account of the parties that protect one kind of unit.
#[derive(Debug)]
struct Account {
    unit: PrivacyUnit,
    spent: Spent,
    /// Blocks that these parties have opened.
    blocks: OpenBlocks,
}

/// Charges of a job's parties for absorbed rounds. A charge depends only on what a party protects, so there is one account for
/// each kind of unit, however many parties there are.
#[derive(Debug)]
pub(super) struct Spending {
    accounts: Vec<Account>,
    /// Each party's account, in the job's order.
    of_party: Vec<usize>,
    /// Highest cost of a round to a party, in units of 2^-48 of mu².
    highest_cost: u64,
}

impl Spending {
    /// Opens accounts without charges for parties with this metadata.
    pub(super) fn new(metadata: &[PartyMetadata]) -> Self {
        let mut accounts: Vec<Account> = Vec::new();
        let mut account = |unit: PrivacyUnit| {
            accounts.iter().position(|account| account.unit == unit).unwrap_or_else(|| {
                accounts.push(Account { unit, spent: Spent::default(), blocks: OpenBlocks::default() });
                accounts.len() - 1
            })
        };
        let of_party = metadata.iter().map(|metadata| account(metadata.unit())).collect();
        Self { accounts, of_party, highest_cost: 0 }
    }

    /// Adds the charges of an absorbed round.
    ///
    /// # Errors
    /// The errors of [`Spent::for_round`].
    pub(super) fn add(&mut self, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<(), String> {
        for Account { unit, spent, blocks } in &mut self.accounts {
            let cost = Spent::for_round(round, (model, spec), *unit, blocks)?;
            self.highest_cost = self.highest_cost.max(cost.units);
            *spent = spent.plus(cost);
        }
        Ok(())
    }

    /// Unit of privacy and charges of a party.
    pub(super) fn of(&self, party: usize) -> (PrivacyUnit, Spent) {
        let Account { unit, spent, .. } = &self.accounts[self.of_party[party]];
        (*unit, *spent)
    }

    /// Cost to a party of a round that is not absorbed yet.
    ///
    /// # Errors
    /// The errors of [`Spent::for_round`].
    pub(super) fn cost(&self, party: usize, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<Spent, String> {
        let Account { unit, blocks, .. } = &self.accounts[self.of_party[party]];
        Spent::for_round(round, (model, spec), *unit, &mut blocks.clone())
    }

    /// Highest cost of a round to a party.
    pub(super) fn highest_cost(&self) -> u64 {
        self.highest_cost
    }

    /// Remaining budget of each party under the limit, in units of 2^-48 of mu².
    pub(super) fn remaining(&self, limit_units: u64) -> impl Iterator<Item = (usize, u64)> {
        let remaining =
            move |(party, account): (usize, &usize)| (party, limit_units.saturating_sub(self.accounts[*account].spent.units));
        self.of_party.iter().enumerate().map(remaining)
    }

    /// Kinds of unit that the parties protect.
    pub(super) fn units(&self) -> impl Iterator<Item = PrivacyUnit> {
        self.accounts.iter().map(|account| account.unit)
    }
}
