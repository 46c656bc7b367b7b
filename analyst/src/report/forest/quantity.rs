//! The quantity of a forest plot's axis, by model.

use conclave_common::job::JobSpec;
use conclave_common::schema::{Design, Family, Feature, ModelSpec};
use conclave_draws::is_whole;
use conclave_pages::object::rows;
use conclave_pages::plot::Quantity;
use conclave_pages::released;

use crate::report::material::Material;
use crate::report::records::total;

/// Returns the quantity of a model's coefficients; without a neutral value for a model without coefficients.
pub(super) fn quantity(spec: &JobSpec) -> Quantity {
    let of = |name: &str, short: &str, neutral: f64, what: &str| Quantity {
        name: name.to_owned(),
        short: short.to_owned(),
        neutral: Some(neutral),
        sides: [format!("lower {what}"), format!("higher {what}")],
    };
    match &spec.model {
        ModelSpec::Regression(regression) => match regression.family {
            Family::Logistic => of("Odds ratio", "OR", 1.0, "odds"),
            Family::Poisson | Family::NegativeBinomial => of("Rate ratio", "RR", 1.0, "rate"),
            Family::Linear { .. } | Family::StudentT { .. } => of("Difference", "difference", 0.0, "value"),
        },
        ModelSpec::PiecewiseExponential(_) => of("Hazard ratio", "HR", 1.0, "hazard"),
        ModelSpec::LifeTable(_) => {
            Quantity { name: "Probability of the event in an interval, of the records at risk".to_owned(), ..of_parameters() }
        }
        _ => of_parameters(),
    }
}

/// Returns the quantity of parameters without a neutral value.
pub(super) fn of_parameters() -> Quantity {
    Quantity {
        name: "Value, in the data’s units".to_owned(),
        short: "value".to_owned(),
        neutral: None,
        sides: [String::new(), String::new()],
    }
}

/// Returns the sentence on the plot's subject: quantity, outcome, and the number of records.
pub(super) fn subject(material: &Material<'_>, quantity: &Quantity) -> String {
    let outcome = material.spec.model.outcome();
    let of = match quantity.neutral {
        None => format!("Parameters of the model of {outcome}."),
        Some(_) if quantity.name == "Difference" => format!("Differences in {outcome}, in its own units."),
        Some(_) => match material.spec.model.event_and_entry().0 {
            Some(event) => format!("{}s of {event}, over {outcome}.", quantity.name),
            None => format!("{}s of {outcome}.", quantity.name),
        },
    };
    let size = total(rows(material.result, "parties")).map(|n| format!(" n = {n}.")).unwrap_or_default();
    let interacts =
        material.spec.model.design().is_some_and(|design| design.features.iter().any(|feature| feature.factors.len() > 1));
    let note = if interacts && quantity.neutral.is_some() { INTERACTION } else { "" };
    let is_noisy = note == INTERACTION && released::is_from_releases(material.result) && mixed(material.spec).contains(&true);
    let noise = if is_noisy { INTERACTION_NOISE } else { "" };
    of + &size + note + noise + &levels_apart(material, quantity)
}

/// Names the factors whose levels have means of their own, which are no differences.
fn levels_apart(material: &Material<'_>, quantity: &Quantity) -> String {
    let Some(design) = material.spec.model.design().filter(|_| quantity.neutral == Some(0.0)) else { return String::new() };
    let apart = design.features.iter().filter(|feature| has_whole_levels(material.spec, design, feature));
    let mut terms: Vec<&str> = apart.map(|feature| design.terms[feature.term].as_str()).collect();
    terms.dedup();
    match terms.is_empty() {
        true => String::new(),
        false => {
            format!(" Without an intercept the levels of {} have means of their own, which the appendix lists.", terms.join(", "))
        }
    }
}

/// The reason why such a row has no share of the noise.
const INTERACTION_NOISE: &str = " Its share of the noise is not known in these units.";
/// The meaning of the row of a predictor that interacts with others.
const INTERACTION: &str =
    " The row of a predictor within an interaction holds where the other predictors of it are 0 or at their reference level.";

/// Returns true for a level's own mean in a linear model without an intercept.
pub(super) fn has_whole_levels(spec: &JobSpec, design: &Design, feature: &Feature) -> bool {
    quantity(spec).neutral == Some(0.0) && is_whole(design, feature)
}

/// Returns, for each value of a draw, whether others move it in the data's units, as those of an interaction move its predictors'.
pub(super) fn mixed(spec: &JobSpec) -> Vec<bool> {
    /// A value within the support of every parameter.
    const ANY: f64 = 0.5;
    let count = spec.draw_names().len();
    // The first draw is the base, and each other draw moves one value.
    let draws = |value: usize| (0..=count).map(move |draw| if draw == value + 1 { 2.0 * ANY } else { ANY }).collect::<Vec<f64>>();
    let values: Vec<Vec<f64>> = (0..count).map(draws).collect();
    let samples: Vec<Vec<&[f64]>> = values.iter().map(|draws| vec![draws.as_slice()]).collect();
    let mapped = spec.in_original_units(&samples);
    let moves = |value: usize, by: usize| {
        let (base, moved) = (mapped[value][0][0], mapped[value][0][by + 1]);
        (moved - base).abs() > 1e-9 * base.abs().max(1.0)
    };
    (0..count).map(|value| (0..count).any(|by| by != value && moves(value, by))).collect()
}
