//! The differences between parties: the parameters that each has of its own.

use conclave_common::job::Sites;
use conclave_pages::ends::Ends;
use conclave_pages::object::{rows, text};
use conclave_pages::plot::{Interval, intervals};
use conclave_pages::precision::by_width;
use conclave_pages::released;
use conclave_pages::text::name;
use maud::{Markup, html};
use serde_json::Value;

use super::fold::{folded, folded_unless_usable};
use super::material::Material;

/// Renders a forest plot per parameter; `None` for a job whose parties share every parameter.
pub(super) fn section(material: &Material<'_>) -> Option<Markup> {
    let sites = material.spec.sites.as_ref()?;
    if !released::is_adequate(material.result) {
        return Some(html! { p { "Not shown, for the reasons above." } });
    }
    let names = material.spec.model.parameter_names();
    let body = html! {
        p {
            "Each party has its own value of these parameters, drawn from a normal law over the parties. A party’s interval rests on its own "
            "releases and on those of all others: the less it releases, the nearer it lies to the mean. The last row predicts the value at "
            "a party that is not in this job."
        }
        @for (at, site) in sites.varying.iter().enumerate() {
            @let parameter = &names[site.index];
            h3 { (name(parameter)) }
            @let plot = intervals(&format!("sites-{at}"), "scale of the priors", ends(material).level, &forest(material, parameter));
            // The result has the coefficients of the parties, in the data's units.
            @if parameter == "intercept" { (plot) } @else { (folded("On the scale of the priors", &plot)) }
            p.note { "Prior of its sd over the parties: " code { (site.sd) } "; posterior median "
                (of(material.result, &Sites::sd_name(parameter)).map_or_else(|| "unknown".to_owned(), |[low, median, high]| by_width(median, high - low))) "." }
        }
    };
    Some(folded_unless_usable(material.result, body))
}

/// Returns the rows of one parameter: every party, the mean over them, and a new party.
fn forest(material: &Material<'_>, parameter: &str) -> Vec<Interval> {
    let row = |name: String, quantiles: Option<[f64; 3]>| Interval { name, quantiles: quantiles.unwrap_or([f64::NAN; 3]) };
    let parties = material.spec.parties.iter();
    let own = parties.map(|party| row(party.clone(), of(material.result, &Sites::name_at(parameter, party))));
    let new = rows(material.result, "new_party").iter().find(|row| text(row, "parameter") == parameter);
    let new = new.map(|row| quantiles(&ends(material), row));
    own.chain([row("mean".to_owned(), of(material.result, parameter)), row("a new party".to_owned(), new)]).collect()
}

/// Returns the quantiles of a row of the posterior.
fn of(result: &Value, name: &str) -> Option<[f64; 3]> {
    rows(result, "posterior")
        .iter()
        .find(|row| text(row, "name") == name)
        .map(|row| quantiles(&Ends::of(rows(result, "posterior")), row))
}

/// Returns the ends of the page's intervals.
fn ends(material: &Material<'_>) -> Ends {
    Ends::of(rows(material.result, "posterior"))
}

fn quantiles(ends: &Ends, row: &Value) -> [f64; 3] {
    [ends.low(row), &row["median"], ends.high(row)].map(|value| value.as_f64().unwrap_or(f64::NAN))
}
