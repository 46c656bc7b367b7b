//! The model as a formula, its parameters' priors, and the public declarations of the columns.

use conclave_common::parameter::{Interval, Prior};
use conclave_common::schema::{ColumnSpec, Design, Factor, Family, Feature, ModelSpec, Offset, Regression};
use conclave_pages::table::{Cell, Column, Table, facts};
use conclave_pages::text::{as_written as plain, name, plain as whole};
use maud::{Markup, html};

use super::fold::folded_if_many;
use super::material::Material;

pub(super) fn section(material: &Material<'_>) -> Markup {
    let spec = material.spec;
    let parties: Vec<Markup> = spec.parties.iter().map(|party| name(party)).collect();
    let extends = spec.extends.as_ref().map(|job| ("continues", html! { "job " code { (job) } }));
    let said: Vec<(&str, Markup)> = [
        ("model", html! { bdi { (whole(&spec.model.describe(), usize::MAX)) } }),
        ("submitted by", html! { "analyst " (name(&material.status.analyst)) }),
        ("parties", html! { @for (i, party) in parties.iter().enumerate() { @if i > 0 { ", " } (party) } }),
    ]
    .into_iter()
    .chain(extends)
    .collect();
    let (count, columns) = (spec.model.parameter_names().len(), columns(material));
    html! {
        (folded_if_many(count, "The model in words, and its parties", facts(&said)))
        (folded_if_many(count, "The formula", html! { div.formula { (formula(&spec.model)) } }))
        @for site in spec.varying() {
            p { "Every owner has its own value of " (name(&spec.model.parameter_names()[site.index])) ", from a normal law over the owners whose sd has the prior "
                code { (site.sd) } "; the formula has the mean over the owners." }
        }
        @if spec.power != 1.0 { p { "The likelihood is raised to the power " (plain(spec.power)) "." } }
        @if spec.power_prior { p { "So are the priors: those below are raised." } }
        @if spec.exposure_fixed { p { "The job states that the exposure was fixed by design." } }
        @if spec.incomplete_rows { p { "Rows with a missing or unusable value are inert: they are counted and contribute zero." } }
        p { "Numeric columns are clamped to their public bounds and coded to [−1, 1] between them; the formula and the priors refer to the "
            "coded values. [column = level] is 1 if the column has that level and 0 otherwise." }
        (folded_if_many(count, "Priors and boxes", parameters(material).html()))
        (folded_if_many(count, "Columns and their public declarations", columns.html()))
        p.note { "The analyst declared the bounds, which are meant to be public knowledge and not taken from the records. Values outside are replaced by the nearest bound." }
    }
}

/// Formats a variable of a formula.
fn v(text: &str) -> Markup {
    html! { i { (name(text)) } }
}

fn formula(model: &ModelSpec) -> Markup {
    match model {
        ModelSpec::Regression(regression) => regression_formula(regression),
        ModelSpec::Bernoulli { outcome } => html! { "Pr(" (v(outcome)) " = 1) = p" },
        ModelSpec::PoissonMean { outcome } => html! { (v(outcome)) " ~ Poisson(rate)" },
        ModelSpec::Multinomial { outcome, .. } => html! { "Pr(" (v(outcome)) " = level) = p[level]" },
        ModelSpec::NaiveBayes { outcome, features, .. } => html! {
            "Pr(" (v(outcome)) " = class) = " (name(outcome)) "[class]"
            @for feature in features {
                ", Pr(" (v(&feature.column)) " = level | class) = " (name(&feature.column)) "[level|class]"
            }
        },
        ModelSpec::GaussianMean { outcome, sd } => {
            html! { (v(outcome)) " ~ Normal(mean, sd), sd = " (plain(*sd)) " in the data’s units" }
        }
        ModelSpec::GaussianMixture { outcome, sd, weight } => html! {
            (v(outcome)) " ~ " (plain(*weight)) " Normal(theta_1, sd) + " (plain(1.0 - weight)) " Normal(theta_1 + theta_2, sd), sd = "
            (plain(*sd)) " in the data’s units"
        },
        ModelSpec::Weibull { outcome, event } => html! {
            (v(outcome)) " ~ Weibull(shape, scale), censored where " (v(event)) " = 0"
        },
        ModelSpec::PiecewiseExponential(survival) => html! {
            (v(&survival.outcome)) ": hazard exp(log_hazard[k]" @if !survival.design.features.is_empty() { " + " (predictor(&survival.design)) }
            ") in interval k, censored where " (v(&survival.event)) " = 0"
            @if let Some(entry) = &survival.entry { ", observed from " (v(entry)) " on" }
        },
        ModelSpec::LifeTable(table) => html! {
            "Pr(" (v(&table.event)) " in interval k | at risk at its start) = hazard[k]" @if let Some(by) = &table.by { ", by " (v(&by.column)) }
            ": intervals of " (v(&table.outcome)) " end at " @for cut in &table.cuts { (plain(*cut)) ", " } "the declared maximum"
        },
        ModelSpec::Banana { outcome, second_outcome, bend, precision } => html! {
            (v(outcome)) " ~ Normal(theta_1, precision " (plain(precision[0])) "), " (v(second_outcome)) " ~ Normal(theta_2 + "
            (plain(*bend)) " theta_1², precision " (plain(precision[1])) ")"
        },
    }
}

fn regression_formula(regression: &Regression) -> Markup {
    let Regression { family, outcome, design, .. } = regression;
    let y = v(outcome);
    html! {
        @match family {
            Family::Logistic => { "logit Pr(" (y) " = 1) = " (predictor(design)) }
            Family::Linear { sd } => {
                (y) " ~ Normal(η, " @if let Some(sd) = sd { "sd = " (plain(*sd)) " in the data’s units" } @else { "sigma" } "), η = " (predictor(design))
            }
            Family::Poisson => { (y) " ~ Poisson(exp η), η = " (predictor(design)) }
            Family::NegativeBinomial => {
                (y) " ~ NegativeBinomial(mean μ, variance μ + dispersion μ²), log μ = " (predictor(design))
            }
            Family::StudentT { df } => { (y) " ~ Student-t(" (plain(*df)) " degrees of freedom, η, sigma), η = " (predictor(design)) }
        }
    }
}

/// Renders the linear predictor, one term per coefficient.
fn predictor(design: &Design) -> Markup {
    html! {
        @match &design.offset {
            Some(Offset::Value(column)) => { (v(column)) " + " }
            Some(Offset::Exposure(column)) => { "log " (v(column)) " + " }
            None => {}
        }
        @if design.intercept { "β" sub { "intercept" } @if !design.features.is_empty() { " + " } }
        @for (index, feature) in design.features.iter().enumerate() { @if index > 0 { " + " } (term(feature)) }
    }
}

fn term(feature: &Feature) -> Markup {
    let factor = |factor: &Factor| match factor.level {
        None => v(&factor.column),
        // The level's name is part of the parameter's name.
        Some(_) => html! { "[" (v(&factor.column)) " = " (name(level_name(&feature.name, &factor.column))) "]" },
    };
    html! { "β" sub { (name(&feature.name)) } @for f in &feature.factors { " · " (factor(f)) } }
}

/// Returns a column's level from a parameter's name, as `b` from `age:ward[b]`.
fn level_name<'a>(parameter: &'a str, column: &str) -> &'a str {
    let opening = format!("{column}[");
    let rest = parameter.split_once(&opening).map_or(parameter, |(_, rest)| rest);
    rest.split("]:").next().unwrap_or(rest).trim_end_matches(']')
}

fn parameters(material: &Material<'_>) -> Table {
    let spec = material.spec;
    let priors = spec.priors.iter().zip(&spec.support);
    let rows: Vec<_> = spec.model.parameter_names().into_iter().zip(priors).collect();
    let columns: [Column<'_, (String, (&Prior, &Interval))>; 3] = [
        ("parameter", &|(name, _)| Cell::name(name)),
        ("prior", &|(_, (prior, _))| Cell::markup(html! { code { (prior) } })),
        ("box", &|(_, (_, Interval { min, max }))| Cell::text(format!("{} to {}", plain(*min), plain(*max)))),
    ];
    Table::new("Parameters, their priors, and the box that bounds every draw, on the scale of the priors", &rows, &columns)
}

fn columns(material: &Material<'_>) -> Table {
    let model = &material.spec.model;
    let design = model.design();
    let (event, entry) = model.event_and_entry();
    let role = |column: &str| match (column == model.outcome(), design.and_then(|d| d.offset.as_ref())) {
        (true, _) if event.is_some() => "time",
        (true, _) => "outcome",
        (false, _) if Some(column) == event => "event (0: censored)",
        (false, _) if Some(column) == entry => "time of entry",
        (false, Some(Offset::Value(offset))) if offset == column => "offset",
        (false, Some(Offset::Exposure(exposure))) if exposure == column => "exposure",
        (false, _) if design.is_none() => "second outcome",
        (false, _) if design.is_some_and(|d| d.derived.iter().any(|derived| derived.name == column)) => {
            "computed from the columns above"
        }
        _ => "predictor",
    };
    let columns: [Column<'_, &str>; 3] = [
        ("column", &|column| Cell::name(column)),
        ("role", &|column| Cell::text(role(column))),
        ("public bounds", &|column| Cell::markup(bounds(material.spec.columns.get(*column)))),
    ];
    let derived = design.into_iter().flat_map(|design| &design.derived).map(|derived| derived.name.as_str());
    let rows: Vec<&str> = model.columns().into_iter().chain(derived).collect();
    Table::new("Columns and their public declarations", &rows, &columns)
}

fn bounds(column: Option<&ColumnSpec>) -> Markup {
    html! {
        @match column {
            Some(ColumnSpec::Numeric { min, max }) => { "a number from " (plain(*min)) " to " (plain(*max)) }
            Some(ColumnSpec::Binary) => "0 or 1",
            Some(ColumnSpec::Levels(levels)) => {
                "one of " @for (index, level) in levels.iter().enumerate() { @if index > 0 { ", " } (name(level)) @if index == 0 { " (the reference)" } }
            }
            None => "not declared",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::level_name;

    #[test]
    fn levels_are_found_in_the_names_of_parameters() {
        assert_eq!(level_name("ward[b]", "ward"), "b");
        assert_eq!(level_name("age:ward[b]", "ward"), "b");
        assert_eq!((level_name("sex[f]:ward[b]", "sex"), level_name("sex[f]:ward[b]", "ward")), ("f", "b"));
    }
}
