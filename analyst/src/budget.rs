//! `conclave budget`: the analyst's remaining budget at the data owners.

use std::process::ExitCode;

use clap::Args;
use conclave_common::epsilon;
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::as_written;
use conclave_proto::error::Fault;
use conclave_proto::v1::{BudgetReply, BudgetRequest, BudgetTold, PartyBudget};
use serde_json::{Value, json};

use crate::client::Connection;
use crate::faults::refused;
use crate::output::show;

/// Show your remaining budget at the data owners that disclose it
///
/// For each party: the most that all of your jobs may spend there, the amount already spent, and the largest epsilon that another
/// job may request, each at the delta of the data's budget. Epsilons do not add: two jobs cost less than their sum. Asking is
/// free.
#[derive(Args)]
#[command(after_help = "Example:\n  conclave budget --coordinator https://coordinator.example --identity identity/")]
pub(crate) struct BudgetArgs {
    /// Parties to ask [default: all that the coordinator knows]
    #[arg(value_name = "PARTY")]
    parties: Vec<String>,
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: BudgetArgs) -> Result<ExitCode, Fault> {
    let mut client = args.connection.open().await?;
    let request = BudgetRequest { parties: args.parties.clone() };
    let reply = client.budget(request).await.map_err(refused)?.into_inner();
    let object = object(&reply);
    let text = match reply.parties.is_empty() {
        true => "No party has attached to this coordinator yet.".to_owned(),
        false => text(&reply),
    };
    show(args.json, &object, &text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Returns the object of `budget --json`.
pub(crate) fn object(reply: &BudgetReply) -> Value {
    json!({ "parties": reply.parties.iter().map(as_json).collect::<Vec<_>>() })
}

fn as_json(party: &PartyBudget) -> Value {
    let mut object = json!({ "party": party.name, "standing": party.standing });
    if let Some(budget) = &party.budget {
        object["epsilon_limit"] = budget.epsilon_limit.into();
        object["delta"] = budget.delta.into();
        object["epsilon_spent"] = budget.epsilon_spent.into();
        object["epsilon_left"] = budget.epsilon_left.into();
    }
    object
}

fn text(reply: &BudgetReply) -> String {
    let figure = |party: &PartyBudget, show: fn(&BudgetTold) -> String| {
        Cell::number(party.budget.as_ref().map_or_else(|| "-".to_owned(), show))
    };
    let columns: [Column<'_, PartyBudget>; 6] = [
        ("party", &|party| Cell::name(&party.name)),
        ("epsilon for you", &|party| figure(party, |budget| as_written(budget.epsilon_limit))),
        ("spent", &|party| figure(party, |budget| epsilon::spent(budget.epsilon_spent))),
        ("a job may request", &|party| figure(party, |budget| epsilon::room(budget.epsilon_left))),
        ("at delta", &|party| figure(party, |budget| as_written(budget.delta))),
        ("", &|party| {
            Cell::text(match party.standing.as_str() {
                "told" => "", // wire name
                "untold" => "its owner does not disclose it",
                "away" => "it is not attached",
                _ => "it did not answer: it is busy or runs an earlier version",
            })
        }),
    ];
    Table::new("", &reply.parties, &columns).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_party_has_its_line() {
        let budget = BudgetTold {
            number: 1,
            told: true, // wire name
            epsilon_limit: 8.0,
            delta: 1e-6,
            epsilon_spent: 2.5,
            epsilon_left: 7.125,
        };
        let party =
            |name: &str, standing: &str, budget| PartyBudget { name: name.to_owned(), standing: standing.to_owned(), budget };
        let parties = vec![
            party("a", "told", Some(budget)), // wire name
            party("b", "untold", None),
            party("c", "silent", None),
        ];
        let reply = BudgetReply { parties };
        let text = text(&reply);
        let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
        assert!(
            line("a").split_whitespace().eq(["a", "8", "2.50", "7.12", "1e-6"])
                && line("b").contains("does not disclose")
                && line("c").contains("earlier version"),
            "{text}"
        );
        assert_eq!(as_json(&reply.parties[0])["epsilon_left"], 7.125);
        assert_eq!(as_json(&reply.parties[1]), json!({ "party": "b", "standing": "untold" }));
    }
}
