//! Survival curves and restricted mean survival times.

use conclave_common::schema::ModelSpec;
use conclave_pages::object::{rows, text};
use conclave_pages::plot::{Curve, CurvePoint, curves};
use conclave_pages::{released, run};
use maud::{Markup, html};
use serde_json::Value;

use super::fold::folded_unless_usable;
use super::material::Material;

/// Renders the curves; `None` for a model without them.
pub(super) fn section(material: &Material<'_>) -> Option<Markup> {
    let drawn: Vec<Curve> = rows(material.result, "survival").iter().map(curve).collect();
    let means = run::restricted_means(material.result)?;
    if !released::is_adequate(material.result) {
        return Some(html! { p { "Not shown, for the reasons above." } });
    }
    let unit = format!("{}, in the units of the data", material.spec.model.outcome());
    let is_life_table = matches!(material.spec.model, ModelSpec::LifeTable(_));
    let body = html! {
        @if is_life_table {
            p {
                "The probability to survive to the end of each interval, of each group: the product of the probabilities to pass the intervals before. "
                "Between the ends the lines only join the points."
            }
        } @else {
            p {
                "The probability to survive a time, by the posterior of the hazards. The baseline has every numeric predictor at the middle of its bounds, "
                "and every other one at its reference. " @if drawn.len() > 1 { "Each other curve differs from it in the level or binary predictor that it names. " }
                "The hazard is constant between the cuts and changes there, so a curve may bend at a cut."
            }
        }
        (curves("survival-curves", "Survival", &unit, &drawn))
        (means.html())
    };
    Some(folded_unless_usable(material.result, body))
}

fn curve(row: &Value) -> Curve {
    let figure = |point: &Value, key: &str| point[key].as_f64().unwrap_or(f64::NAN);
    let of = |point: &Value| -> CurvePoint { (figure(point, "time"), ["q5", "median", "q95"].map(|key| figure(point, key))) };
    let points = row["points"].as_array().map(Vec::as_slice).unwrap_or_default();
    Curve { name: text(row, "of").to_owned(), points: points.iter().map(of).collect() }
}
