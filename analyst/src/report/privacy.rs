//! What was spent at each party, what that guarantees, and what it does not.

use conclave_common::job::{Algorithm, HmcTest, JobSpec};
use conclave_pages::aggregation;
use conclave_pages::plot::{Budget, budget};
use conclave_pages::table::{Cell, table};
use conclave_pages::text::name;
use maud::{Markup, html};
use serde_json::Value;

use super::figures::{cell, decimals, plain, rows, text, whole};
use super::material::Material;

pub(super) fn section(material: &Material<'_>) -> Markup {
    let parties = rows(material.result, "parties");
    let limit = &material.spec.privacy.budget;
    html! {
        p {
            "No record left its owner. At each step every owner answered with whole numbers: a sum over its records, in which each record’s part is "
            "bounded beforehand, plus fresh random noise of the owner’s own. Every answer was charged to the owner’s ledger before a record was read."
        }
        p {
            "What is promised is the budget of each owner’s data, over all jobs and for ever: whatever the receivers of the answers know already and however "
            "they compute, what they see would have been almost as likely had one protected unit been another (“protects” below says which). How almost "
            "is what epsilon measures: no conclusion becomes more or less likely by a factor of more than e to the power epsilon, except with probability delta."
        }
        p {
            "The figures of this job are running totals of what it used of those budgets. They are not guarantees of their own, and epsilons of several "
            "jobs do not add up: their μ² do. The job was allowed epsilon " (plain(limit.epsilon)) " at delta " (plain(limit.promised_delta())) " at each owner."
        }
        @for (index, party) in parties.iter().enumerate() { (bar(index, party)) }
        (spending(parties))
        (protected(parties))
        p { (noise(material.spec)) }
        p {
            @match aggregation::summary(material.result) {
                Some(words) => { (words) " Masks rest on X25519, HKDF and HMAC with SHA-256. Not protected are the job " }
                None => {
                    "Coordinator, analyst and the other owners may put together all they have: the guarantee holds against all of them. Not protected "
                    "are the job "
                }
            }
            "itself (model, columns, bounds, priors), the counts above, and what is true of the population whoever is in the data: that is what the "
            "analysis is for. An owner’s own page to cite is made by " code { "conclave-party statement" } "."
        }
        p.note {
            "epsilon (GDP): Gaussian differential privacy, Dong, Roth & Su (2022), with the exact conversion of Balle & Wang (2018). epsilon (zCDP): "
            "zero-concentrated differential privacy, looser and rigorous by another road; it may exceed the budget, which is kept by GDP."
        }
    }
}

fn bar(index: usize, party: &Value) -> Markup {
    let figure = |key: &str| party[key].as_f64().unwrap_or(f64::NAN);
    let (spent, limit) = (figure("epsilon_spent"), figure("epsilon_budget"));
    budget(&Budget { id: &format!("budget-{index}"), party: text(party, "name"), spent, projected: None, limit })
}

fn spending(parties: &[Value]) -> Markup {
    let body: Vec<Vec<Cell>> = parties
        .iter()
        .map(|party| {
            vec![
                Cell::Name(text(party, "name").to_owned()),
                cell(&party["queries"], whole),
                cell(&party["epsilon_spent"], decimals),
                cell(&party["epsilon_zcdp"], decimals),
                cell(&party["mu_squared_spent"], decimals),
                cell(&party["delta"], plain),
                cell(&party["epsilon_budget"], plain),
            ]
        })
        .collect();
    let header = ["party", "releases", "epsilon (GDP)", "epsilon (zCDP)", "μ²", "delta", "epsilon allowed"];
    table("Spent by this job: one release per chain and round, search and warm-up included", &header, &body)
}

fn protected(parties: &[Value]) -> Markup {
    let body: Vec<Vec<Cell>> = parties
        .iter()
        .map(|party| {
            let count = match (party["records"].is_number(), party["persons"].is_number()) {
                (true, _) => cell(&party["records"], |x| format!("{} records", whole(x))),
                (_, true) => cell(&party["persons"], |x| format!("{} persons", whole(x))),
                _ => Cell::Text("not public".to_owned()),
            };
            vec![Cell::Name(text(party, "name").to_owned()), count, Cell::markup(unit(text(party, "protects")))]
        })
        .collect();
    table("What each owner’s guarantee protects", &["party", "holds", "protects"], &body)
}

/// A ledger's unit of privacy, `row, replace` or `person of at most 5 records, add-remove`, in words.
fn unit(protects: &str) -> Markup {
    let (who, change) = protects.rsplit_once(", ").unwrap_or((protects, ""));
    html! {
        @if who == "row" { "one row, not one person: weaker for a person who has several rows" }
        @else { "one " (name(who)) ", with all of those" }
        @match change {
            "replace" => ", against its being replaced by any other",
            "add-remove" => ", against its being added or left out: whether it is there at all",
            _ => {}
        }
    }
}

fn noise_of_releases() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, as much of it as the job’s budget asks for: all of the \
     budget is spent in a few releases. The posterior is that of the parameters given what was released, as wide as the noise makes it."
        .to_owned()
}

fn noise_of_gradients() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient and in the test of \
     every step, as much of it as the job’s budget asks for. The noise of the gradients drives the chains, whose friction takes it up, and the test \
     corrects for its own (the penalty method of Ceperley & Dewing, 1999): the draws are of the posterior that all records in one place would have \
     given."
        .to_owned()
}

fn noise_of_stochastic_gradients() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient, as much of it as a step \
     of the chains takes: it is what moves them (Wang, Fienberg & Smola, 2015). No test ends a step: the draws are approximately of the posterior that \
     all records in one place would have given, and the run says what is known of the difference."
        .to_owned()
}

fn noise_of_polished_chains(spec: &JobSpec) -> String {
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every gradient as much as a step of the \
         chains takes, and standard deviation {} log-likelihood units in every ratio of the sweeps that end them. No test ends a step; the sweeps correct \
         for their noise (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws are theirs, and of the posterior that all records in one \
         place would have given once the sweeps have mixed.",
        decimals(spec.privacy.noise.sd())
    )
}

fn choice_among_candidates() -> String {
    "Noise: none is added, as each draw is random itself: the owner draws one of the public candidates in proportion to its posterior weight (the \
     exponential mechanism), exactly, from its operating system’s generator. It is charged by the range that one record can move the odds of two \
     candidates by. The draws are of the posterior that the records would have given, but for the error of standing on so many candidates."
        .to_owned()
}

fn noise(spec: &JobSpec) -> String {
    let unit = match spec.algorithm {
        Algorithm::Penalty | Algorithm::Barker => "log-likelihood units",
        Algorithm::Ops => return choice_among_candidates(),
        Algorithm::PenaltyExpFamily => "widths of a component’s range",
        Algorithm::Hmc if spec.runs_dp_hmc() => {
            return format!(
                "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every gradient as much as the \
                 job’s budget asks for, and standard deviation {} log-likelihood units in the test of every trajectory. The heat that the gradients’ noise \
                 brings in is rejected by the test, which corrects for its own noise (the penalty method of Ceperley & Dewing, 1999; Räisä, Koskela & \
                 Honkela, 2021): the draws are of the posterior that all records in one place would have given.",
                decimals(spec.privacy.noise.sd())
            );
        }
        Algorithm::Hmc if spec.sampler.hmc.test == HmcTest::None => {
            return "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient, as much of \
                    it as the job’s budget asks for. It drives the chains, whose friction takes it up, and no test corrects what their steps err by: the \
                    draws are approximately of the posterior that all records in one place would have given."
                .to_owned();
        }
        Algorithm::Hmc => return noise_of_gradients(),
        _ if spec.is_polished() => return noise_of_polished_chains(spec),
        Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => return noise_of_stochastic_gradients(),
        Algorithm::NoisyStatistics | Algorithm::Augmentation => return noise_of_releases(),
    };
    let corrected = if spec.algorithm == Algorithm::Barker {
        "The chain’s acceptance step takes it for a part of its own randomness and corrects for what is left (Barker’s test by Heikkilä, Jälkö, Dikmen & \
         Honkela, 2019), nearly and not exactly: the draws are close to those of the posterior that all records in one place would have given."
    } else {
        "The chain’s acceptance step corrects for it (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws are of the posterior that all \
         records in one place would have given."
    };
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, standard deviation {} {unit} for every answer of every owner \
         while the chains run. {corrected}",
        decimals(spec.privacy.noise.sd())
    )
}
