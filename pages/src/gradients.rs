//! How chains moved that gradients drive: the objects `gradients` and `stochastic_gradients` of a result, in words.

use serde_json::Value;

use crate::identity::identity;
use crate::stochastic_gradients;
use crate::text::{number, percent, plain};

/// Longest name of a party that is shown.
const NAME: usize = 63;

/// What there is to say, each under a heading of one word; nothing of a result without.
#[must_use]
pub fn told(result: &Value) -> Vec<(&'static str, String)> {
    let of = &result["gradients"];
    if !of.is_object() {
        return stochastic_gradients::told(result);
    }
    let show = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), number);
    let share = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), percent);
    vec![
        (
            "steps",
            format!(
                "{} posterior sds long, with friction {}; {} of each chain before the kept draws",
                show(&of["step"]),
                show(&of["friction"]),
                show(&of["warmup"])
            ),
        ),
        (
            "planned",
            format!(
                "{} effective draws of all chains, a mean within {} posterior sds",
                show(&of["planned_ess"]),
                show(&of["planned_error"])
            ),
        ),
        (
            "energy",
            format!(
                "steps were taken with a mean probability of {}, and erred by {} (rms) beside the noise of their tests; {} of them were rejected unasked",
                share(&of["acceptance"]),
                show(&of["energy_error"]),
                share(&of["unasked"])
            ),
        ),
        ("momenta", format!("mean square over what the stated noise makes it, less 1: {}", identity(&of["kinetic"]))),
        (
            "Stein",
            format!(
                "of the worst component, the mean of (place - mean) × gradient + 1: {}; the mean gradient: {}; both about 0 where the posterior is \
                 nearly normal",
                identity(&of["stein"]),
                identity(&of["mean_gradient"])
            ),
        ),
        ("noise", noise(of)),
    ]
}

/// What questions that came twice say of the parties' noise.
fn noise(of: &Value) -> String {
    let count = of["repeated_questions"].as_u64().unwrap_or(0);
    if count == 0 {
        return "no question came a second time".to_owned();
    }
    let party = |party: &Value| {
        let name = plain(party["party"].as_str().unwrap_or_default(), NAME);
        match party["equal"].as_u64() {
            Some(equal @ 1..) => format!("{name} gave {equal} of its answers again"),
            _ => format!("{name} p = {}", party["p_value"].as_f64().map_or_else(|| "-".to_owned(), number)),
        }
    };
    let parties: Vec<String> = of["repeated_answers"].as_array().into_iter().flatten().map(party).collect();
    format!(
        "after a rejection {count} questions came a second time; how far the two answers of a party differ, against its noise: {}",
        parties.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_gradients_say_is_told_in_words() {
        assert_eq!(told(&json!({"gradients": null})), []);
        let party =
            |name: &str, equal: u64| json!({"party": name, "equal": equal, "chi2": 9.0, "degrees_of_freedom": 8, "p_value": 0.5});
        let of = |standard_error: Value| {
            let identity = json!({"error": -0.04, "standard_error": standard_error});
            json!({"gradients": {"step": 0.5, "friction": 1.0, "warmup": 10, "planned_ess": 400.0, "planned_error": 0.05, "acceptance": 0.97,
                "unasked": 0.0, "energy_error": 0.02, "kinetic": identity, "stein": identity, "mean_gradient": null, "repeated_questions": 8,
                "repeated_answers": [party("a", 0), party("b", 3)]}})
        };
        let text = |value: Value| told(&value).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        let words = text(of(json!(0.02)));
        for part in
            ["97%", "2.0 standard errors", "the mean gradient: -;", "8 questions", "a p = 0.5", "b gave 3 of its answers again"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(text(of(Value::Null)).contains("too few steps"));
    }
}
