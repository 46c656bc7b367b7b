//! The result as a forest plot: one row per coefficient, and one per party where a coefficient varies by party.

mod figures;
mod labels;
mod quantity;

use conclave_common::schema::{Design, Feature};
use conclave_pages::ends::Ends;
use conclave_pages::object::rows;
use conclave_pages::plot::{Estimate, Forest, ForestRow};

use super::material::Material;
use figures::Figures;
use labels::{coefficient, level, reference};
use quantity::{has_whole_levels, quantity};

/// Returns the plot of a result; `None` without figures.
pub(super) fn forest(material: &Material<'_>) -> Option<Forest<'static>> {
    let figures = Figures::new(material);
    let design = material.spec.model.design().filter(|_| quantity(material.spec).neutral.is_some());
    let mut found: Vec<ForestRow> = design.map(|design| coefficients(&figures, design)).unwrap_or_default();
    let mut kind = quantity(material.spec);
    if found.iter().all(|row| row.estimate().is_none()) {
        // A model without coefficients has its parameters themselves.
        kind = quantity::of_parameters();
        found = parameters(&figures);
    }
    let is_empty = found.iter().all(|row| row.estimate().is_none());
    let level = Ends::of(rows(material.result, "posterior_original")).level;
    let subject = quantity::subject(material, &kind);
    (!is_empty).then_some(Forest { id: "forest", quantity: kind, level, rows: found, subject })
}

/// Returns the rows of all coefficients, one term after the other.
fn coefficients(figures: &Figures<'_>, design: &Design) -> Vec<ForestRow> {
    (0..design.terms.len())
        .flat_map(|term| {
            // A level's own mean is no difference; the ratios of the result leave it out, too.
            let is_shown = |feature: &&Feature| feature.term == term && !has_whole_levels(figures.spec(), design, feature);
            let features: Vec<&Feature> = design.features.iter().filter(is_shown).collect();
            if let [first, ..] = features[..]
                && first.factors.len() == 1
                && first.factors[0].level.is_some()
            {
                return factor(figures, &first.factors[0].column, &features);
            }
            features.into_iter().flat_map(|feature| one(figures, feature)).collect()
        })
        .collect()
}

/// Returns the rows of a factor: its heading, the reference level, and the other levels.
fn factor(figures: &Figures<'_>, column: &str, features: &[&Feature]) -> Vec<ForestRow> {
    let spec = figures.spec();
    let shared: Vec<ForestRow> = features
        .iter()
        .filter(|feature| !figures.varies(&feature.name))
        .filter_map(|feature| {
            let label = level(spec, column, feature.factors.first()?.level?);
            Some(ForestRow::Estimate(Estimate { label, indented: true, ..figures.coefficient(&feature.name, 1.0)? }))
        })
        .collect();
    let varying = features.iter().filter(|feature| figures.varies(&feature.name)).flat_map(|feature| one(figures, feature));
    let mut found = Vec::new();
    if !shared.is_empty() {
        found.push(ForestRow::Heading(column.to_owned()));
        found.extend(reference(spec, column, features).map(ForestRow::Reference));
        found.extend(shared);
    }
    found.extend(varying);
    found
}

/// Returns the row of a coefficient; those of the parties where it varies.
fn one(figures: &Figures<'_>, feature: &Feature) -> Vec<ForestRow> {
    let (label, scale) = coefficient(figures.spec(), figures.units(), feature);
    named(figures, &feature.name, label, |name| figures.coefficient(name, scale), scale)
}

/// Returns the rows of all parameters in the units of the data.
fn parameters(figures: &Figures<'_>) -> Vec<ForestRow> {
    let names = figures.spec().model.parameter_names();
    names.into_iter().flat_map(|name| named(figures, &name, name.clone(), |name| figures.parameter(name), 1.0)).collect()
}

/// Returns the row of a parameter, or a heading with the rows of the parties, of their mean and of a new party.
fn named(
    figures: &Figures<'_>,
    name: &str,
    label: String,
    estimate: impl Fn(&str) -> Option<Estimate>,
    scale: f64,
) -> Vec<ForestRow> {
    if !figures.varies(name) {
        return estimate(name).map(|found| ForestRow::Estimate(Estimate { label, ..found })).into_iter().collect();
    }
    let indented = |label: &str, found: Option<Estimate>| {
        found.map(|found| ForestRow::Estimate(Estimate { label: label.to_owned(), indented: true, ..found }))
    };
    let parties = figures.spec().parties.iter();
    let own = parties.map(|party| indented(party, estimate(&conclave_common::job::Sites::name_at(name, party))));
    let mean = indented("mean over the parties", estimate(name));
    let new = indented("a new party", figures.new_party(name, scale));
    let found: Vec<ForestRow> = own.chain([mean, new]).flatten().collect();
    if found.is_empty() { found } else { std::iter::once(ForestRow::Heading(label)).chain(found).collect() }
}
