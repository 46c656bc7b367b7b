//! Diagnostics of unadjusted stochastic-gradient chains: the object `stochastic_gradients` of a result, in words.

use serde_json::Value;

use crate::identity::identity;
use crate::text::{number, percent};

/// Returns the diagnostics, each with a one-word heading; nothing for a result without the object.
pub(crate) fn diagnostics(result: &Value) -> Vec<(&'static str, String)> {
    let of = &result["stochastic_gradients"];
    if !of.is_object() {
        return Vec::new();
    }
    let show = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |x| trimmed(&number(x)));
    let share = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), percent);
    let friction = if of["friction"].is_null() { String::new() } else { format!(" with friction {}", show(&of["friction"])) };
    let mut words = vec![
        (
            "steps",
            format!("eta {}{friction}; {} warm-up steps per chain before the kept draws", show(&of["step"]), show(&of["warmup"])),
        ),
        (
            "planned",
            format!(
                "{} effective draws over all chains, means accurate to {} posterior sds",
                show(&of["planned_ess"]),
                show(&of["planned_error"])
            ),
        ),
        (
            "bias",
            format!(
                "steps have no acceptance test: for a normal posterior the draws have {} times its variance, for others more or less",
                show(&of["planned_variance"])
            ),
        ),
        (
            "noise",
            format!(
                "{} of a gradient's noise is from the parties, {} from subsampling ({} of the units), the rest is public; {} of the gradients had \
                 more noise than a step allows",
                share(&of["noise_share"]),
                share(&of["sampling_share"]),
                show(&of["batch"]),
                share(&of["exceeded"])
            ),
        ),
        (
            "Stein",
            format!(
                "mean of (position - mean) × gradient + 1 in the worst component, corrected for the step length: {}; the mean gradient: {}; \
                 both are close to 0 if the draws are as wide as a nearly normal posterior",
                identity(&of["stein"]),
                identity(&of["mean_gradient"])
            ),
        ),
        ("box", format!("{} of the steps led out of it and were turned back", share(&of["turned"]))),
    ];
    if !of["kinetic"].is_null() {
        words.push((
            "momenta",
            format!("mean square relative to its value under correct noise, minus 1: {}", identity(&of["kinetic"])),
        ));
    }
    if !of["thermostat"].is_null() {
        words.push((
            "thermostat",
            format!("{} on average: the friction plus half of eta times the unaccounted noise", show(&of["thermostat"])),
        ));
    }
    let polish = &of["polish"];
    if polish.is_object() {
        // The draws come from the sweeps; the first entry describes the steps before them.
        words[0].1 =
            format!("eta {}{friction}; {} steps per chain, none of them a draw", show(&of["step"]), show(&polish["steps"]));
        words.push((
            "sweeps",
            format!(
                "the draws are from {} penalty sweeps per chain, which leave the posterior invariant: {} of their proposals accepted, about {} effective \
                 draws in total, for {} of the budget",
                show(&polish["sweeps"]),
                share(&polish["acceptance_rate"]),
                show(&polish["planned_ess"]),
                share(&polish["budget_share"])
            ),
        ));
    }
    words
}

/// Removes a figure's trailing zeros.
fn trimmed(figure: &str) -> String {
    let shorter = figure.trim_end_matches('0').trim_end_matches('.');
    if figure.contains('.') && !figure.contains('e') { shorter.to_owned() } else { figure.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_bias_is_stated_in_words() {
        assert_eq!(diagnostics(&json!({"gradients": {}})), []);
        let identity = json!({"error": -0.04, "standard_error": 0.02});
        let of = json!({"stochastic_gradients": {"step": 0.05, "friction": 1.0, "batch": 0.25, "warmup": 100, "noise_share": 0.75,
            "sampling_variance": 3.0, "sampling_share": 0.07, "planned_variance": 1.5, "planned_ess": 400.0, "planned_error": 0.05,
            "turned": 0.0, "exceeded": 0.01, "thermostat": 1.0625, "kinetic": null, "stein": identity, "mean_gradient": null}});
        let words =
            crate::gradients::diagnostics(&of).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        for part in [
            "eta 0.05 with friction 1",
            "1.5 times its variance",
            "75%",
            "2.0 standard errors",
            "the mean gradient: -;",
            "thermostat: 1.0625",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("momenta") && !words.contains("sweeps"));
        let mut polished = of;
        polished["stochastic_gradients"]["polish"] =
            json!({"sweeps": 40, "steps": 210, "budget_share": 0.02, "planned_ess": 5.2, "acceptance_rate": 0.37});
        let words = diagnostics(&polished).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        for part in [
            "210 steps per chain, none of them a draw",
            "sweeps: the draws are from 40 penalty sweeps",
            "37% of their",
            "5.2 effective",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
