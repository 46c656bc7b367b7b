//! Chains driven by gradients take the place of a chain of ratios where `auto` would choose one and there are gradients.
//!
//! What `auto` means is a function of the job file alone and stays what it was, so that jobs of before replay as they ran: whoever submits a job
//! writes the algorithm into it, before it is signed.

use super::algorithms::Algorithm;
use super::spec::JobSpec;

/// What is said of chains or of ratios that only ratios have a use for.
const OF_RATIOS: [(&str, &str); 5] = [
    ("sampler", "proposal"),
    ("sampler", "locate"),
    ("privacy", "noise_sd"),
    ("privacy", "clip"),
    ("privacy", "clip_watch_share"),
];
/// What is said of gradients.
const OF_GRADIENTS: [(&str, &str); 4] =
    [("sampler", "step"), ("sampler", "friction"), ("sampler", "test"), ("sampler", "refresh")];

impl JobSpec {
    /// The text of a job for `auto` with `hmc` written in its place, where its chains are to be driven by gradients: the model has them, and
    /// their remainder a public bound; and no release once is chosen, nor anything said that is for ratios alone. As it is where not.
    #[must_use]
    pub fn with_chosen_chains(text: &str) -> String {
        let of_gradients = || {
            let table: toml::Table = text.parse().ok()?;
            if table.get("algorithm")?.as_str() != Some("auto") || table.contains_key("extends") {
                return None;
            }
            let says = |(of, key): &(&str, &str)| table.get(*of).and_then(|of| of.get(key)).is_some();
            let moved = OF_GRADIENTS.iter().any(says);
            let chain = Self::parse(text).is_ok_and(|spec| spec.algorithm == Algorithm::Penalty);
            if OF_RATIOS.iter().any(says) || !(moved || chain) {
                return None;
            }
            let written = renamed(text)?;
            Self::parse(&written).is_ok_and(|spec| spec.algorithm == Algorithm::Hmc).then_some(written)
        };
        of_gradients().unwrap_or_else(|| text.to_owned())
    }
}

/// The text with another value at its line for the algorithm.
fn renamed(text: &str) -> Option<String> {
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    let names = |line: &str| line.trim_start().strip_prefix("algorithm").is_some_and(|rest| rest.trim_start().starts_with('='));
    let at = top.enumerate().find(|(_, line)| names(line))?.0;
    let chosen = "algorithm = \"hmc\" # chosen for auto: gradients drive chains at a part of what ratios take";
    let lines: Vec<&str> = text.lines().enumerate().map(|(place, line)| if place == at { chosen } else { line }).collect();
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(model: &str, more: &str) -> String {
        format!(
            "name = \"c\"\n  algorithm =  \"auto\" # of whatever suits\nparties = [\"a\"]\n[model]\noutcome = \"y\"\npredictors = [\"x\"]\n{model}\n\
             [columns]\ny = {{ min = 0, max = 1 }}\nx = {{ min = -1, max = 1 }}\n{more}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        )
    }

    fn chosen(model: &str, more: &str) -> (Algorithm, Algorithm) {
        let text = job(model, more);
        let written = JobSpec::with_chosen_chains(&text);
        let before = JobSpec::parse(&text).map_or(Algorithm::Hmc, |spec| spec.algorithm);
        (before, JobSpec::parse(&written).unwrap().algorithm)
    }

    /// As the file stands it means what it always did; gradients are written into it where they suit, and nowhere else.
    #[test]
    fn gradients_take_the_place_of_ratios() {
        use Algorithm::{Hmc, NoisyStatistics, Penalty};
        let known = "kind = \"linear\"\nsd = 0.1";
        let until = "[sampler]\nuntil = { ess = 200 }";
        for (model, more, becomes) in [
            (known, "", (NoisyStatistics, NoisyStatistics)),
            ("kind = \"linear\"\nsd = 0.1\npower = 0.5", "", (Penalty, Hmc)),
            (known, until, (Penalty, Hmc)),
            (known, "[sampler]\nlocate_share = 0.1", (Penalty, Hmc)),
            // Refused as it stands.
            (known, "[sampler]\nstep = 0.3", (Hmc, Hmc)),
            // What is for ratios alone; a residual's scale, which no bound is known of; a warm-up that gradients have not.
            (known, "[sampler]\nproposal = { kind = \"componentwise\" }\nuntil = { ess = 200 }", (Penalty, Penalty)),
            ("kind = \"linear\"\npower = 0.5", "", (Penalty, Penalty)),
            (known, "[sampler]\nwarmup = { until_rhat = 1.1, max = 50 }\nuntil = { ess = 200 }", (Penalty, Penalty)),
        ] {
            assert_eq!(chosen(model, more), becomes, "{model} {more}");
        }
        let named = job(known, until).replace("\"auto\"", "\"penalty\"");
        assert_eq!(JobSpec::with_chosen_chains(&named), named);
        assert!(JobSpec::with_chosen_chains(&job(known, until)).contains("\nalgorithm = \"hmc\" # chosen for auto"));
    }
}
