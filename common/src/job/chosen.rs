//! The replacement of `auto` by gradient-driven chains, where `auto` would choose a chain of ratios and the model has gradients.
//!
//! The meaning of `auto` depends only on the job file and never changes, so that earlier jobs replay identically. The analyst's
//! program writes the chosen algorithm into a job before it is signed.

use super::algorithm::Algorithm;
use super::spec::JobSpec;
use crate::settings::is_written;

/// Settings that only chains of ratios use.
const OF_RATIOS: [&str; 5] =
    ["sampler.proposal", "sampler.locate", "privacy.noise_sd", "privacy.clip", "privacy.clip_watch_share"];
/// Settings that only gradient-driven chains use.
const OF_GRADIENTS: [&str; 4] = ["sampler.step", "sampler.friction", "sampler.test", "sampler.refresh"];

impl JobSpec {
    /// Returns the text of a job with `auto` replaced by `hmc` if gradients should drive its chains.
    ///
    /// This requires that the model has gradients and a public bound on their remainder, that `auto` does not choose a single
    /// release, and that no setting is specific to ratios. Otherwise the text is returned unchanged.
    #[must_use]
    pub fn with_chosen_chains(text: &str) -> String {
        let of_gradients = || {
            let table: toml::Table = text.parse().ok()?;
            if table.get("algorithm")?.as_str() != Some("auto") || table.contains_key("extends") {
                return None;
            }
            let says = |key: &&str| is_written(&table, key);
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

/// Returns the text with another value in its `algorithm` line.
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

    /// The unedited file keeps its meaning; `hmc` is written into it exactly where gradients suit the model.
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
