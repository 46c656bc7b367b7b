//! Budget spent at each party, its guarantee, and the limits of that guarantee.

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
            "No record left its owner. At each step every owner answered with whole numbers: a sum over its records, in which "
            "each record’s contribution is bounded in advance, plus fresh random noise drawn by the owner. Every answer was "
            "charged to the owner’s ledger before a record was read."
        }
        p {
            "The guarantee is the budget of each owner’s data, over all jobs and for all time. Whatever the receivers of the "
            "answers already know or compute, what they see would have been almost as likely if one protected unit had been "
            "replaced by another (“protects” below states which). Epsilon measures “almost”: no conclusion becomes more or less "
            "likely by a factor of more than e to the power epsilon, except with probability delta."
        }
        p {
            "The figures of this job are running totals of its part of those budgets. They are not separate guarantees, and "
            "epsilons of several jobs do not add up: their μ² do. The job’s limit was epsilon " (plain(limit.epsilon)) " at delta "
            (plain(limit.promised_delta())) " at each owner."
        }
        @for (index, party) in parties.iter().enumerate() { (bar(index, party)) }
        (spending(parties))
        (protected(parties))
        p { (noise(material.spec)) }
        p {
            @match aggregation::summary(material.result) {
                Some(words) => { (words) " Masks rest on X25519, HKDF and HMAC with SHA-256. Not protected are the job " }
                None => {
                    "The coordinator, the analyst and the other owners may pool all they have: the guarantee holds against all "
                    "of them. Not protected are the job "
                }
            }
            "itself (model, columns, bounds, priors), the counts above, and facts about the population that hold whichever "
            "persons are in the data: learning those is the purpose of the analysis. An owner creates a page to cite with " code { "conclave-party statement" } "."
        }
        p.note {
            "epsilon (GDP): Gaussian differential privacy, Dong, Roth & Su (2022), with the exact conversion of Balle & Wang (2018). epsilon (zCDP): "
            "zero-concentrated differential privacy, looser, and rigorous by a different argument; it may exceed the budget, "
            "which is accounted by GDP."
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
    table("Unit protected by each owner’s guarantee", &["party", "holds", "protects"], &body)
}

/// Describes a ledger's unit of privacy, `row, replace` or `person of at most 5 records, add-remove`.
fn unit(protects: &str) -> Markup {
    let (who, change) = protects.rsplit_once(", ").unwrap_or((protects, ""));
    html! {
        @if who == "row" { "one row, not one person: weaker for a person who has several rows" }
        @else { "one " (name(who)) ", with all of these records" }
        @match change {
            "replace" => ", against replacement by any other",
            "add-remove" => ", against addition or removal: even its presence is protected",
            _ => {}
        }
    }
}

fn noise_of_releases() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator. Its scale follows from the job’s \
     budget, all of which is spent in a few releases. The posterior is that of the parameters given the releases, and includes \
     the uncertainty due to the noise."
        .to_owned()
}

fn noise_of_gradients() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient and in the test of \
     every step; its scale follows from the job’s budget. The noise of the gradients drives the chains, whose friction \
     dissipates it, and the test corrects for its own noise (the penalty method of Ceperley & Dewing, 1999): the draws have the \
     posterior of the pooled records as their distribution."
        .to_owned()
}

fn noise_of_stochastic_gradients() -> String {
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient, \
     with the scale that a step of the chains requires: it drives them (Wang, Fienberg & Smola, 2015). Steps have no acceptance \
     test: the draws follow the posterior of the pooled records approximately, and the run reports the known error."
        .to_owned()
}

fn noise_of_polished_chains(spec: &JobSpec) -> String {
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every \
         gradient with the scale that a step of the chains requires, and with standard deviation {} log-likelihood units in \
         every ratio of the final sweeps. Steps have no acceptance test; the sweeps correct for their noise (the penalty method \
         of Ceperley & Dewing, 1999; Yıldırım): the draws are those of the sweeps, and follow the posterior of the pooled \
         records once the sweeps have mixed.",
        decimals(spec.privacy.noise.sd())
    )
}

fn choice_among_candidates() -> String {
    "Noise: none is added, since each draw is random itself: the owner draws one of the public candidates in proportion to its \
     posterior weight (the exponential mechanism), exactly, from its operating system’s generator. The charge follows from the \
     largest change of the log odds of two candidates by one record. The draws follow the posterior of the records, up to the \
     error of a finite set of candidates."
        .to_owned()
}

fn noise(spec: &JobSpec) -> String {
    let unit = match spec.algorithm {
        Algorithm::Penalty | Algorithm::Barker => "log-likelihood units",
        Algorithm::Ops => return choice_among_candidates(),
        Algorithm::PenaltyExpFamily => "widths of a component’s range",
        Algorithm::Hmc if spec.runs_dp_hmc() => {
            return format!(
                "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of \
                 every gradient with a scale set by the job’s budget, and with standard deviation {} log-likelihood units in the \
                 test of every trajectory. The test rejects the energy added by the gradients’ noise and corrects for its own \
                 noise (the penalty method of Ceperley & Dewing, 1999; Räisä, Koskela & Honkela, 2021): the draws follow the \
                 posterior of the pooled records.",
                decimals(spec.privacy.noise.sd())
            );
        }
        Algorithm::Hmc if spec.sampler.hmc.test == HmcTest::None => {
            return "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of \
                    every gradient, with a scale set by the job’s budget. It drives the chains, whose friction dissipates it, \
                    and no test corrects the discretisation error: the draws follow the posterior of the pooled records \
                    approximately."
                .to_owned();
        }
        Algorithm::Hmc => return noise_of_gradients(),
        _ if spec.is_polished() => return noise_of_polished_chains(spec),
        Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => return noise_of_stochastic_gradients(),
        Algorithm::NoisyStatistics | Algorithm::Augmentation => return noise_of_releases(),
    };
    let corrected = if spec.algorithm == Algorithm::Barker {
        "The chain’s acceptance step uses it as a part of its own randomness and corrects for the remainder (Barker’s test by \
         Heikkilä, Jälkö, Dikmen & Honkela, 2019), closely but not exactly: the draws nearly follow the posterior of the pooled \
         records."
    } else {
        "The chain’s acceptance step corrects for it (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws follow \
         the posterior of the pooled records."
    };
    format!(
        "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, standard deviation {} {unit} for every answer of every owner \
         while the chains run. {corrected}",
        decimals(spec.privacy.noise.sd())
    )
}
