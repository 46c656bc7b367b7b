//! The entry for the public registry of deployments of differential privacy (OpenDP, repository `deployments-registry-data`), as YAML.
//!
//! The fields and their order are those of the registry's template, at tier 3, and every word of an enumeration is one of its schema
//! (`schemas/deployments-schema.yaml` and `tests/good_deployments/template.yaml` at commit 057e5d81cf60). What this party cannot know is
//! left empty, beside the words to choose from.

use conclave_privacy::accounting::Adjacency;

use crate::config::PartyConfig;
use crate::ledger_views::Report;
use crate::owner::figure::figure;
use crate::owner::papers::Papers;
use conclave_vault::config::ReplyDelay;

/// Returns the entry; `now` is the party's time, UTC, whose day becomes that of publication.
pub(super) fn entry(config: &PartyConfig, report: &Report, papers: &Papers, now: &str) -> String {
    let unit = config.budget.unit;
    let (who, bound) = match unit.records_per_person() {
        Some(limit) => ("User-level", format!("One person, of whom at most {limit} rows are used.")),
        None => ("Record-level", "One row; a person with several rows is protected less.".to_owned()),
    };
    let neighbours = match unit.adjacency {
        Adjacency::Replace => "Neighbouring data sets differ in the content of one unit; their number is public.",
        Adjacency::AddRemove => "Neighbouring data sets differ by the presence of one unit; their number is protected.",
    };
    let unprotected = match unit.adjacency {
        Adjacency::Replace => "The number of units; every job with its model, columns, bounds and priors; the times of queries.",
        Adjacency::AddRemove => "Every job with its model, columns, bounds and priors; the times of queries.",
    };
    let basic = [
        ("name", format!("Bayesian inference over the records of {}", papers.organisation)),
        ("description", String::new()),
        ("intended_use", "Posterior distributions of statistical models over the records of several data owners.".to_owned()),
        ("data_product_type", "Summary statistics".to_owned()),
        ("data_product_region", String::new()),
        ("publication_date", now.get(..10).unwrap_or_default().to_owned()),
    ];
    let variant = [
        ("variant_name", "Approximate DP".to_owned()),
        (
            "variant_name_details",
            format!("Gaussian DP with mu {}, converted exactly to epsilon and delta.", figure(report.mu_squared_budget.sqrt())),
        ),
        ("data_domain", "Tables whose columns have public bounds or levels, declared in each job.".to_owned()),
        ("unprotected_quantities", unprotected.to_owned()),
    ];
    let mut text = format!("url_slug: {}\ndeployment:\n", quoted(&config.name));
    section(&mut text, "basic", &basic);
    text += &format!(
        "    data_product_sector: \"\" # one of: {SECTORS}\n    data_curators:\n      - data_curator_name: {}\n        data_curator_type: \"\" # \
         one of: {CURATORS}\n",
        quoted(&papers.organisation)
    );
    section(&mut text, "dp_variant", &variant);
    section(
        &mut text,
        "privacy_loss",
        &[("privacy_unit", who.to_owned()), ("privacy_unit_details", format!("{bound} {neighbours}"))],
    );
    text += &format!(
        "    privacy_parameters:\n      epsilon: {}\n      delta: {}\n",
        number(report.epsilon_budget),
        number(report.delta_promised)
    );
    section(&mut text, "deployment_model", &model(config, report));
    section(&mut text, "implementation", &implementation(config, papers.software));
    text + "  administrative:\n    status: Draft\n    registry_authors:\n      - \"\"\n    tier: 3\n"
}

/// Words of the registry for the sector and for the curator.
const SECTORS: &str = "Technology, Healthcare, Education, Government, Energy, Finance";
const CURATORS: &str = "Government, Industry, Nonprofit";

type Field = (&'static str, String);

fn model(config: &PartyConfig, report: &Report) -> [Field; 9] {
    let trust = match config.secure.allow || report.if_all_collude.is_some() {
        false => {
            "The owner trusts its own machine and software. Coordinator, analysts and all other owners may pool what they see."
        }
        true => {
            "The owner trusts its own machine and software. In masked jobs, at most the stated number of other owners may collude with the \
             coordinator."
        }
    };
    [
        ("model_name", "Central".to_owned()),
        ("model_name_details", "Central at this owner; each of several owners adds its own noise.".to_owned()),
        ("trust_assumptions", trust.to_owned()),
        ("actors", "Data owners, analysts, and the operator of the coordinator.".to_owned()),
        ("release_type", "Many releases".to_owned()),
        ("release_type_details", "One budget covers all releases, for ever.".to_owned()),
        ("data_source_type", "Static".to_owned()),
        ("access_type", "Interactive".to_owned()),
        (
            "access_type_details",
            format!(
                "Queries of approved jobs may depend on earlier answers. All analysts share one budget, and may collude. {}",
                match config.policy.max_epsilon_per_analyst {
                    Some(limit) => format!("One analyst's jobs together are limited to epsilon {}.", figure(limit)),
                    None => "No part of it is set apart for one analyst.".to_owned(),
                }
            ),
        ),
    ]
}

fn implementation(config: &PartyConfig, software: &str) -> [Field; 6] {
    let timing = match config.policy.reply_delay {
        ReplyDelay::Off => "Replies are not delayed: the time of an answer can be observed.",
        _ => "Replies leave at a public delay after their service begins, or at a multiple of it.",
    };
    [
        ("preprocessing_and_hyperparameter_tuning", "Values are clamped to their public bounds.".to_owned()),
        (
            "mechanisms",
            format!(
                "Discrete Gaussian noise on integer sums, sampled exactly in integers; the exponential mechanism for draws by choice. {timing}"
            ),
        ),
        ("composition", "A filter on the sum of mu squared: the ledger refuses what would exceed the budget.".to_owned()),
        ("post_processing", "Bayesian inference from the released numbers, with their noise accounted for.".to_owned()),
        ("justification", String::new()),
        ("additional_information", software.to_owned()),
    ]
}

fn section(text: &mut String, name: &str, fields: &[(&str, String)]) {
    *text += &format!("  {name}:\n");
    for (key, value) in fields {
        *text += &format!("    {key}: {}\n", quoted(value));
    }
}

/// Formats a number that YAML reads as one: a power of ten needs a decimal point.
fn number(x: f64) -> String {
    let text = format!("{x:?}");
    match text.split_once('e') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0e{power}"),
        _ => text,
    }
}

/// Quotes a text as JSON, which YAML reads as it stands.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
