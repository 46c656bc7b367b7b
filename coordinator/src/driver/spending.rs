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
    /// One of them: all are asked the same queries.
    party: usize,
    spent: Spent,
    /// Blocks that these parties have opened.
    blocks: OpenBlocks,
}

/// Charges of a job's parties for absorbed rounds. Where all parties are asked the same queries, a charge depends only on what a
/// party protects, so there is one account for each kind of unit, however many parties there are. Else each party has an account.
#[derive(Debug)]
pub(super) struct Spending {
    accounts: Vec<Account>,
    /// Each party's account, in the job's order.
    of_party: Vec<usize>,
    /// Highest cost of a round to a party, in units of 2^-48 of mu².
    highest_cost: u64,
}

impl Spending {
    /// Opens accounts without charges for parties with this metadata; `apart` says whether each is asked queries of its own.
    pub(super) fn new(metadata: &[PartyMetadata], apart: bool) -> Self {
        let mut accounts: Vec<Account> = Vec::new();
        let mut account = |(party, unit): (usize, PrivacyUnit)| {
            accounts.iter().position(|account| !apart && account.unit == unit).unwrap_or_else(|| {
                accounts.push(Account { unit, party, spent: Spent::default(), blocks: OpenBlocks::default() });
                accounts.len() - 1
            })
        };
        let of_party = metadata.iter().map(PartyMetadata::unit).enumerate().map(&mut account).collect();
        Self { accounts, of_party, highest_cost: 0 }
    }

    /// Adds the charges of an absorbed round.
    ///
    /// # Errors
    /// The errors of [`Spent::for_queries`].
    pub(super) fn add(&mut self, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<(), String> {
        for Account { unit, party, spent, blocks } in &mut self.accounts {
            let cost = Spent::for_queries(round.queries_of(*party), (model, spec), *unit, blocks)?;
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
    /// The errors of [`Spent::for_queries`].
    pub(super) fn cost(&self, party: usize, round: &Round, model: &dyn Model, spec: &JobSpec) -> Result<Spent, String> {
        let Account { unit, blocks, .. } = &self.accounts[self.of_party[party]];
        Spent::for_queries(round.queries_of(party), (model, spec), *unit, &mut blocks.clone())
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

    /// Each account's unit of privacy, and a party of it.
    pub(super) fn accounts(&self) -> impl Iterator<Item = (PrivacyUnit, usize)> {
        self.accounts.iter().map(|account| (account.unit, account.party))
    }

    /// Each party's account, in the job's order.
    pub(super) fn of_party(&self) -> &[usize] {
        &self.of_party
    }
}
