//! Diagnostics of gradient-based chains: the objects `gradients` and `stochastic_gradients` of a result, in words.

use serde_json::Value;

use crate::identity::identity;
use crate::object::{rows, text};
use crate::precision::rough;
use crate::stochastic_gradients;
use crate::text::{percent, plain};

/// Maximum length of a party's name.
const NAME: usize = 63;

/// Returns the diagnostics, each with a one-word heading; nothing for a result without the objects.
#[must_use]
pub fn diagnostics(result: &Value) -> Vec<(&'static str, String)> {
    let of = &result["gradients"];
    if !of.is_object() {
        return stochastic_gradients::diagnostics(result);
    }
    let show = |key: &str| of[key].as_f64().map_or_else(|| "-".to_owned(), rough);
    let share = |key: &str| of[key].as_f64().map_or_else(|| "-".to_owned(), percent);
    let [step, friction, warmup, ess, error] = ["step", "friction", "warmup", "planned_ess", "planned_error"].map(show);
    let ([acceptance, unasked], energy) = (["acceptance", "unasked"].map(share), show("energy_error"));
    let [kinetic, stein, gradient] = ["kinetic", "stein", "mean_gradient"].map(|key| identity(&of[key]));
    let steps =
        format!("length of {step} posterior sds, friction {friction}; {warmup} warm-up steps per chain before the kept draws");
    let energy = format!(
        "mean acceptance probability {acceptance}; rms energy error {energy} in addition to the noise of the tests; {unasked} of the steps \
         rejected without a query"
    );
    let stein = format!(
        "mean of (position - mean) × gradient + 1 in the worst component: {stein}; the mean gradient: {gradient}; both are close to 0 if \
         the posterior is nearly normal"
    );
    vec![
        ("steps", steps),
        ("planned", format!("{ess} effective draws over all chains, means accurate to {error} posterior sds")),
        ("energy", energy),
        ("momenta", format!("mean square relative to its value under the stated noise, minus 1: {kinetic}")),
        ("Stein", stein),
        ("noise", noise(of)),
    ]
}

/// Describes the check of the parties' noise by repeated queries.
fn noise(of: &Value) -> String {
    let count = of["repeated_questions"].as_u64().unwrap_or(0);
    if count == 0 {
        return "no query was repeated".to_owned();
    }
    let party = |party: &Value| {
        let name = plain(text(party, "party"), NAME);
        match party["equal"].as_u64() {
            Some(equal @ 1..) => format!("{name} repeated {equal} of its answers"),
            _ => format!("{name} p = {}", party["p_value"].as_f64().map_or_else(|| "-".to_owned(), rough)),
        }
    };
    let parties: Vec<String> = rows(of, "repeated_answers").iter().map(party).collect();
    format!(
        "{count} queries were repeated after a rejection; differences between a party's two answers, tested against its noise: {}",
        parties.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn diagnostics_are_stated_in_words() {
        assert_eq!(diagnostics(&json!({"gradients": null})), []);
        let party =
            |name: &str, equal: u64| json!({"party": name, "equal": equal, "chi2": 9.0, "degrees_of_freedom": 8, "p_value": 0.5});
        let of = |standard_error: Value| {
            let identity = json!({"error": -0.04, "standard_error": standard_error});
            json!({"gradients": {"step": 0.5, "friction": 1.0, "warmup": 10, "planned_ess": 400.0, "planned_error": 0.05, "acceptance": 0.97,
                "unasked": 0.0, "energy_error": 0.02, "kinetic": identity, "stein": identity, "mean_gradient": null, "repeated_questions": 8,
                "repeated_answers": [party("a", 0), party("b", 3)]}})
        };
        let text =
            |value: Value| diagnostics(&value).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        let words = text(of(json!(0.02)));
        for part in
            ["97%", "2.0 standard errors", "the mean gradient: -;", "8 queries", "a p = 0.5", "b repeated 3 of its answers"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(text(of(Value::Null)).contains("too few steps"));
    }
}
