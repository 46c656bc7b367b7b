//! How chains moved that stochastic gradients drive, without a test: the object `stochastic_gradients` of a result, in words.

use serde_json::Value;

use crate::identity::identity;
use crate::text::{number, percent};

/// What there is to say, each under a heading of one word; nothing of a result without.
pub(crate) fn told(result: &Value) -> Vec<(&'static str, String)> {
    let of = &result["stochastic_gradients"];
    if !of.is_object() {
        return Vec::new();
    }
    let show = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |x| trimmed(&number(x)));
    let share = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), percent);
    let friction = if of["friction"].is_null() { String::new() } else { format!(" with friction {}", show(&of["friction"])) };
    let mut words = vec![
        ("steps", format!("eta {}{friction}; {} of each chain before the kept draws", show(&of["step"]), show(&of["warmup"]))),
        (
            "planned",
            format!(
                "{} effective draws of all chains, a mean within {} posterior sds",
                show(&of["planned_ess"]),
                show(&of["planned_error"])
            ),
        ),
        (
            "bias",
            format!(
                "no test ends a step: on a normal posterior draws have {} times its variance, on any other more or less",
                show(&of["planned_variance"])
            ),
        ),
        (
            "noise",
            format!(
                "{} of a gradient's is the parties', {} that of samples (of {} of the units), the rest public; {} of the gradients had more than a \
                 step takes",
                share(&of["noise_share"]),
                share(&of["sampling_share"]),
                show(&of["batch"]),
                share(&of["exceeded"])
            ),
        ),
        (
            "Stein",
            format!(
                "of the worst component, the mean of (place - mean) × gradient + 1, less what a step's length makes of it: {}; the mean gradient: {}; \
                 both about 0 where draws are as wide as a nearly normal posterior",
                identity(&of["stein"]),
                identity(&of["mean_gradient"])
            ),
        ),
        ("box", format!("{} of the steps led out of it, where a chain turns round", share(&of["turned"]))),
    ];
    if !of["kinetic"].is_null() {
        words.push(("momenta", format!("mean square over what right noise makes it, less 1: {}", identity(&of["kinetic"]))));
    }
    if !of["thermostat"].is_null() {
        words.push((
            "thermostat",
            format!("{} on average: friction, and half of eta times what noise it was not told of", show(&of["thermostat"])),
        ));
    }
    let polish = &of["polish"];
    if polish.is_object() {
        // The draws are of the sweeps: what stands above is of the steps before them.
        words[0].1 =
            format!("eta {}{friction}; {} of each chain, none of them a draw", show(&of["step"]), show(&polish["steps"]));
        words.push((
            "sweeps",
            format!(
                "the draws are of {} penalty sweeps of each chain, which leave the posterior as it is: {} of their proposals accepted, some {} effective \
                 draws in all, for {} of the budget",
                show(&polish["sweeps"]),
                share(&polish["acceptance_rate"]),
                show(&polish["planned_ess"]),
                share(&polish["budget_share"])
            ),
        ));
    }
    words
}

/// A figure without the zeros at its end.
fn trimmed(figure: &str) -> String {
    let shorter = figure.trim_end_matches('0').trim_end_matches('.');
    if figure.contains('.') && !figure.contains('e') { shorter.to_owned() } else { figure.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_known_of_the_bias_is_told_in_words() {
        assert_eq!(told(&json!({"gradients": {}})), []);
        let identity = json!({"error": -0.04, "standard_error": 0.02});
        let of = json!({"stochastic_gradients": {"step": 0.05, "friction": 1.0, "batch": 0.25, "warmup": 100, "noise_share": 0.75,
            "sampling_variance": 3.0, "sampling_share": 0.07, "planned_variance": 1.5, "planned_ess": 400.0, "planned_error": 0.05,
            "turned": 0.0, "exceeded": 0.01, "thermostat": 1.0625, "kinetic": null, "stein": identity, "mean_gradient": null}});
        let words = crate::gradients::told(&of).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
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
        let words = told(&polished).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        for part in [
            "210 of each chain, none of them a draw",
            "sweeps: the draws are of 40 penalty sweeps",
            "37% of their",
            "5.2 effective",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
