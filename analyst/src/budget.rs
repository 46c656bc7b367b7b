//! `conclave budget`: the analyst's remaining budget at the data owners.

use std::process::ExitCode;

use clap::Args;
use conclave_proto::error::{Fault, from_status};
use conclave_proto::v1::{BudgetReply, BudgetRequest, PartyBudget};
use serde_json::{Value, json};

use crate::client::Connection;
use crate::output::{say, say_json};
use crate::table::{number, table};

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
    let reply = client.budget(request).await.map_err(|status| from_status(&status))?.into_inner();
    if args.json {
        say_json(&json!({ "parties": reply.parties.iter().map(as_json).collect::<Vec<_>>() }));
    } else if reply.parties.is_empty() {
        say!("No party has attached to this coordinator yet.");
    } else {
        say!("{}", text(&reply).trim_end());
    }
    Ok(ExitCode::SUCCESS)
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
    let row = |party: &PartyBudget| {
        let figures = party.budget.as_ref().map(|b| [b.epsilon_limit, b.epsilon_spent, b.epsilon_left, b.delta].map(number));
        let why = match party.standing.as_str() {
            "told" => "", // wire name
            "untold" => "its owner does not disclose it",
            "away" => "it is not attached",
            _ => "it did not answer: it is busy or runs an earlier version",
        };
        let mut cells = vec![party.name.clone()];
        cells.extend(figures.unwrap_or_else(|| std::array::from_fn(|_| "-".to_owned())));
        cells.push(why.to_owned());
        cells
    };
    let header = ["party", "epsilon for you", "spent", "a job may request", "at delta", ""];
    table(&header, &reply.parties.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_proto::v1::BudgetTold;

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
            line("a").contains("7.125") && line("b").contains("does not disclose") && line("c").contains("earlier version"),
            "{text}"
        );
        assert_eq!(as_json(&reply.parties[0])["epsilon_left"], 7.125);
        assert_eq!(as_json(&reply.parties[1]), json!({ "party": "b", "standing": "untold" }));
    }
}
