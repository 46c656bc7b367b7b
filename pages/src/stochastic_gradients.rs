//! Diagnostics of unadjusted stochastic-gradient chains: the object `stochastic_gradients` of a result, in words.

use serde_json::Value;

use crate::identity::identity;
use crate::precision::rough;
use crate::text::percent;

/// Returns the diagnostics, each with a one-word heading; nothing for a result without the object.
pub(crate) fn diagnostics(result: &Value) -> Vec<(&'static str, String)> {
    let of = &result["stochastic_gradients"];
    if !of.is_object() {
        return Vec::new();
    }
    let number = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), rough);
    let percentage = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), percent);
    let (show, share) = (|key: &str| number(&of[key]), |key: &str| percentage(&of[key]));
    let [step, warmup, ess, error, variance, batch] =
        ["step", "warmup", "planned_ess", "planned_error", "planned_variance", "batch"].map(show);
    let [parties, sampling, exceeded, turned] = ["noise_share", "sampling_share", "exceeded", "turned"].map(share);
    let [stein, gradient, kinetic] = ["stein", "mean_gradient", "kinetic"].map(|key| identity(&of[key]));
    let friction = if of["friction"].is_null() { String::new() } else { format!(" with friction {}", show("friction")) };
    let polish = &of["polish"];
    let steps = match polish.is_object() {
        // The draws come from the sweeps.
        true => format!("{} steps per chain, none of them a draw", number(&polish["steps"])),
        false => format!("{warmup} warm-up steps per chain before the kept draws"),
    };
    let bias = format!(
        "steps have no acceptance test: for a normal posterior the draws have {variance} times its variance, for others more or less"
    );
    let noise = format!(
        "{parties} of a gradient's noise is from the parties, {sampling} from subsampling ({batch} of the units), the rest is public; \
         {exceeded} of the gradients had more noise than a step allows"
    );
    let stein = format!(
        "mean of (position - mean) × gradient + 1 in the worst component, corrected for the step length: {stein}; the mean gradient: \
         {gradient}; both are close to 0 if the draws are as wide as a nearly normal posterior"
    );
    let mut words = vec![
        ("steps", format!("eta {step}{friction}; {steps}")),
        ("planned", format!("{ess} effective draws over all chains, means accurate to {error} posterior sds")),
        ("bias", bias),
        ("noise", noise),
        ("Stein", stein),
        ("box", format!("{turned} of the steps led out of it and were turned back")),
    ];
    let decay = &of["decay"];
    if decay.is_object() {
        let [a, b, gamma, first, last] = ["a", "b", "gamma", "first", "last"].map(|key| number(&decay[key]));
        let sentence = format!(
            "eta = {a} ({b} + t)^-{gamma}: {first} in the first step, {last} in the last one; a draw is kept for each stretch of time of the \
             last warm-up step"
        );
        words.push(("decrease", sentence));
    }
    let start = &of["start"];
    if start.is_object() {
        let [candidates, power, range, mu] = ["candidates", "power", "range", "mu"].map(|key| number(&start[key]));
        let sentence = format!(
            "all chains started at one posterior sample among {candidates} candidates, with likelihood and prior to the power {power}: range \
             {range}, mu {mu}, {} of the budget",
            percentage(&start["budget_share"])
        );
        words.push(("start", sentence));
    }
    if !of["kinetic"].is_null() {
        words.push(("momenta", format!("mean square relative to its value under correct noise, minus 1: {kinetic}")));
    }
    if !of["thermostat"].is_null() {
        let thermostat = show("thermostat");
        let sentence = format!("{thermostat} on average: the friction plus half of eta times the unaccounted noise");
        words.push(("thermostat", sentence));
    }
    if polish.is_object() {
        let [sweeps, ess] = ["sweeps", "planned_ess"].map(|key| number(&polish[key]));
        let [accepted, budget] = ["acceptance_rate", "budget_share"].map(|key| percentage(&polish[key]));
        let sentence = format!(
            "the draws are from {sweeps} penalty sweeps per chain, which leave the posterior invariant: {accepted} of their proposals \
             accepted, about {ess} effective draws in total, for {budget} of the budget"
        );
        words.push(("sweeps", sentence));
    }
    words
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
            "thermostat: 1.06 on",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("momenta") && !words.contains("sweeps") && !words.contains("start"));
        let mut more = of.clone();
        more["stochastic_gradients"]["start"] =
            json!({"candidates": 512, "power": 0.25, "range": 0.5, "mu": 0.31, "budget_share": 0.4});
        more["stochastic_gradients"]["decay"] = json!({"a": 0.4, "b": 3.0, "gamma": 0.5, "first": 0.2, "last": 0.01});
        let words = diagnostics(&more).into_iter().map(|(what, words)| format!("{what}: {words}\n")).collect::<String>();
        for part in
            ["among 512 candidates", "to the power 0.25", "40% of the budget", "eta = 0.4 (3 + t)^-0.5: 0.2 in the first step"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
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
