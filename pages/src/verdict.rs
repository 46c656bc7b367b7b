//! The verdict on a run's answer, as every surface shows it: its sign, its words, its reasons and the next step.

use conclave_common::job::Wanted;
use maud::{Markup, html};
use serde_json::Value;

use crate::object::{rows, sentences, text};
use crate::page::{Tone, notice};
use crate::released::{figures, is_adequate, remedies};
use crate::short_id::{SHORT, first};
use crate::text::{as_written, plain, whole};
use crate::waiting;

/// Grade of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// A check of the answer failed, so it has no interval.
    NoAnswer,
    /// No figure can be relied on.
    NotUsable,
    /// The answer shows sign and size; its figures will still change.
    Preliminary,
    /// The answer meets the limits for publication.
    FitToPublish,
}

impl Grade {
    const ALL: [Self; 4] = [Self::NoAnswer, Self::NotUsable, Self::Preliminary, Self::FitToPublish];

    /// Returns the words, which are also those of the wire.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoAnswer => "no adequate answer",
            Self::NotUsable => "not usable",
            Self::Preliminary => "preliminary",
            Self::FitToPublish => "fit to publish",
        }
    }

    /// Parses the words of the wire; `None` for a job without a verdict.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grade| grade.words() == words)
    }

    /// Returns the sign beside the words, for readers who do not see colours.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::NoAnswer | Self::NotUsable => "!",
            Self::Preliminary => "◐",
            Self::FitToPublish => "✓",
        }
    }

    /// Returns the tone of a notice.
    #[must_use]
    pub fn tone(self) -> Tone {
        match self {
            Self::NoAnswer | Self::NotUsable => Tone::Warning,
            Self::Preliminary => Tone::Partial,
            Self::FitToPublish => Tone::Good,
        }
    }

    /// Renders sign and words.
    #[must_use]
    pub fn html(self) -> Markup {
        let class = match self {
            Self::NoAnswer | Self::NotUsable => "bad",
            Self::Preliminary => "so-so",
            Self::FitToPublish => "ok",
        };
        html! { span class=(class) { (self.sign()) " " (self.words()) } }
    }
}

/// The verdict on an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The grade.
    pub grade: Grade,
    /// The reasons why it is not fit to publish.
    pub reasons: Vec<String>,
    /// The limits that a preliminary answer meets: R-hat and effective sample size.
    met: Option<(f64, f64)>,
    /// The next step.
    pub remedy: Option<String>,
}

impl Verdict {
    /// Reads the verdict of a result object. Earlier coordinators stated none: theirs follows from the figures.
    #[must_use]
    pub fn of(result: &Value) -> Self {
        let stated = &result["verdict"];
        let grade = match text(stated, "grade") {
            _ if !is_adequate(result) => Grade::NoAnswer,
            "fit_to_publish" => Grade::FitToPublish,
            "preliminary" => Grade::Preliminary,
            "not_usable" => Grade::NotUsable,
            _ => return Self::of_figures(result),
        };
        let limits = &stated["met"];
        let met = limits["rhat"].as_f64().zip(limits["ess"].as_f64());
        let reasons = if stated.is_object() { sentences(stated, "reasons") } else { sentences(&result["adequacy"], "reasons") };
        Self { grade, reasons, met, remedy: remedy(result, grade) }
    }

    /// Judges a result by its figures alone.
    fn of_figures(result: &Value) -> Self {
        let strict = Wanted::usual(u32::try_from(result["chains"].as_u64().unwrap_or(1)).unwrap_or(u32::MAX));
        let looser = Wanted::PRELIMINARY;
        let all =
            |key: &str| rows(figures(result), "posterior").iter().map(|row| row[key].as_f64()).collect::<Option<Vec<f64>>>();
        let rhat = all("rhat").filter(|all| !all.is_empty()).map(|all| all.into_iter().fold(1.0, f64::max));
        let least = |key: &str| all(key).map(|all| all.into_iter().fold(f64::INFINITY, f64::min));
        let ess = least("ess_bulk").zip(least("ess_tail")).map(|(bulk, tail)| bulk.min(tail)).unwrap_or(0.0);
        let independent = result["ops"].is_object();
        let mut reasons = Vec::new();
        let mut grade = Grade::FitToPublish;
        let mut add = |at_most: Grade, reason: String| {
            grade = grade.min(at_most);
            reasons.push(reason);
        };
        let loosely = |holds: bool| if holds { Grade::Preliminary } else { Grade::NotUsable };
        match rhat {
            _ if independent => {}
            None => add(Grade::NotUsable, "R-hat is not defined".to_owned()),
            Some(rhat) if rhat > strict.rhat => {
                add(loosely(rhat <= looser.rhat), format!("the largest R-hat is {rhat:.3}, above {}", strict.rhat));
            }
            Some(_) => {}
        }
        if ess < strict.ess {
            add(
                loosely(ess >= looser.ess),
                format!("the least effective sample size is {:.0}, below {:.0}", ess.floor(), strict.ess),
            );
        }
        let met = (grade == Grade::Preliminary).then_some((looser.rhat, looser.ess));
        Self { grade, reasons, met, remedy: remedy(result, grade) }
    }

    /// Returns true if figures of the answer can be relied on, if only for sign and size.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.grade > Grade::NotUsable
    }

    /// Returns sign, words and reasons in one sentence, without the next step.
    #[must_use]
    pub fn line(&self) -> String {
        let words = self.grade.words();
        let reasons = if self.reasons.is_empty() { String::new() } else { format!(": {}", self.reasons.join("; ")) };
        format!("{} {}{}{reasons}.{}", self.grade.sign(), &words[..1].to_uppercase(), &words[1..], self.limits())
    }

    /// States the looser limits that a preliminary answer meets.
    fn limits(&self) -> String {
        let limits = self.met.map(|(rhat, ess)| {
            format!(
                " It meets the looser limits: R-hat at most {}, effective sample size at least {}.",
                as_written(rhat),
                whole(ess)
            )
        });
        limits.unwrap_or_default()
    }

    /// Returns the next step as a sentence; empty if there is none.
    #[must_use]
    pub fn next(&self) -> String {
        self.remedy.as_ref().map(|remedy| format!("Next: {remedy}.")).unwrap_or_default()
    }

    /// Renders the verdict as a notice.
    #[must_use]
    pub fn notice(&self) -> Markup {
        let words = self.grade.words();
        let heading = format!("{}{}", &words[..1].to_uppercase(), &words[1..]);
        let next = self.next();
        notice(
            self.grade.tone(),
            &heading,
            &html! {
                @if self.grade == Grade::FitToPublish { p { "Every check passed, for every parameter." } }
                @if self.reasons.len() == 1 { p { (sentence(&self.reasons[0])) } }
                @if self.reasons.len() > 1 { ul { @for reason in &self.reasons { li { (sentence(reason)) } } } }
                @if let Some((rhat, ess)) = self.met {
                    p { "It meets the looser limits: R-hat at most " (as_written(rhat)) ", effective sample size at least " (whole(ess)) "." }
                }
                @if !next.is_empty() { p { (commands(&next)) } }
            },
            false,
        )
    }
}

/// Returns the stated next step with the first characters of the job's id. An answer that cannot be relied on always has one.
fn remedy(result: &Value, grade: Grade) -> Option<String> {
    let job = text(result, "job");
    let short = |remedy: &str| if job.is_empty() { remedy.to_owned() } else { remedy.replace(job, first(job, SHORT)) };
    let stated = result["verdict"]["remedy"].as_str().map(|remedy| plain(&short(remedy), 600));
    stated.or_else(|| (grade <= Grade::NotUsable).then(|| remedies(result).to_owned()))
}

/// Starts a reason with a capital letter and ends it with a full stop.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// Marks the parts between backticks as code.
fn commands(text: &str) -> Markup {
    html! { @for (at, part) in text.split('`').enumerate() { @if at % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// Returns the warnings of a result that its verdict does not state already, first those on a budget that protects little. Those on
/// R-hat, effective sample sizes and adequacy are among the verdict's reasons, and those on the draws themselves in their own words.
#[must_use]
pub fn other_warnings(result: &Value) -> Vec<String> {
    const STATED: [&str; 7] = [
        "this is not an adequate answer",
        "the chains disagree",
        "R-hat cannot be computed from one chain",
        "split R-hat of",
        "all draws of",
        "few independent draws",
        "the mean of",
    ];
    let reasons = sentences(&result["verdict"], "reasons");
    let stated = |warning: &String| {
        let words = warning.trim_end_matches('.');
        STATED.iter().any(|start| warning.starts_with(start)) || reasons.iter().any(|reason| reason.ends_with(words))
    };
    let judged = result["verdict"].is_object();
    let of_the_run = sentences(result, "warnings").into_iter().filter(|warning| !(judged && stated(warning)));
    sentences(result, "privacy_warnings").into_iter().chain(of_the_run).collect()
}

/// Returns the words for a job's state: with the verdict if the job has finished without an answer, and with the reason if it waits for
/// consent alone ([`waiting::is_for_consent`]).
#[must_use]
pub fn state_words(state: &str, verdict: &str, waits_for_consent: bool) -> String {
    match state {
        "finished" if Grade::parse(verdict) == Some(Grade::NoAnswer) => format!("finished: {}", Grade::NoAnswer.words()),
        "opening" | "paused" if waits_for_consent => waiting::FOR_CONSENT.to_owned(),
        _ => plain(state, 80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows_of(rhat: f64, ess: f64) -> Value {
        json!([{"name": "a", "rhat": rhat, "ess_bulk": ess, "ess_tail": 2.0 * ess}, {"name": "b", "rhat": 1.0, "ess_bulk": 9e3, "ess_tail": 9e3}])
    }

    #[test]
    fn a_stated_verdict_is_shown_with_reasons_limits_and_the_next_step() {
        let result = json!({"adequacy": {"adequate": true}, "verdict": {"grade": "preliminary", "reasons": ["R-hat of <a> is 1.055, above 1.01"],
            "met": {"rhat": 1.06, "ess": 50.0}, "remedy": "`conclave extend 4f --draws 900`"}});
        let verdict = Verdict::of(&result);
        assert_eq!(
            verdict.line(),
            "◐ Preliminary: R-hat of <a> is 1.055, above 1.01. It meets the looser limits: R-hat at most 1.06, effective sample size at least 50."
        );
        assert_eq!(verdict.next(), "Next: `conclave extend 4f --draws 900`.");
        // The next step has a short id.
        let mut long = result.clone();
        long["job"] = json!("4f01aaaa-0000");
        long["verdict"]["remedy"] = json!("`conclave extend 4f01aaaa-0000 --draws 900`");
        assert_eq!(Verdict::of(&long).next(), "Next: `conclave extend 4f01aaaa --draws 900`.");
        let page = verdict.notice().into_string();
        assert!(page.contains("of &lt;a&gt; is") && page.contains("<code>conclave extend 4f --draws 900</code>"), "{page}");
    }

    /// A check that failed decides, whatever the grade says.
    #[test]
    fn an_inadequate_answer_is_none() {
        let result = json!({"adequacy": {"adequate": false, "reasons": ["too noisy"]}, "verdict": {"grade": "fit_to_publish", "reasons": ["too noisy"]}});
        assert_eq!(Verdict::of(&result).line(), "! No adequate answer: too noisy.");
        assert!(Verdict::of(&result).next().starts_with("Next: request more draws"), "{}", Verdict::of(&result).next());
        // An earlier coordinator's result.
        let result = json!({"adequacy": {"adequate": false, "reasons": ["too noisy"]}});
        assert_eq!(Verdict::of(&result).line(), "! No adequate answer: too noisy.");
    }

    #[test]
    fn results_of_earlier_coordinators_are_judged_by_their_figures() {
        let of = |rhat: f64, ess: f64| Verdict::of(&json!({"chains": 4, "posterior": rows_of(rhat, ess)})).grade;
        assert_eq!(of(1.01, 400.0), Grade::FitToPublish);
        assert_eq!(of(1.011, 400.0), Grade::Preliminary);
        assert_eq!(of(1.01, 399.0), Grade::Preliminary);
        assert_eq!(of(1.051, 400.0), Grade::NotUsable);
        assert_eq!(of(1.01, 99.0), Grade::NotUsable);
        // Draws from releases are those of a Markov chain, too.
        let released = json!({"chains": 4, "conditional_on": "noisy_release", "posterior": rows_of(1.2, 30.0)});
        assert_eq!(Verdict::of(&released).grade, Grade::NotUsable);
        assert_eq!(Verdict::of(&json!({"chains": 4, "posterior": []})).grade, Grade::NotUsable);
        let undefined = json!({"chains": 4, "posterior": [{"rhat": null, "ess_bulk": 500.0, "ess_tail": 500.0}]});
        assert_eq!(Verdict::of(&undefined).grade, Grade::NotUsable);
    }

    /// A warning of the run stays beside the verdict; a result without a stated verdict keeps all.
    #[test]
    fn warnings_are_said_once() {
        let mut result = json!({"verdict": {"grade": "preliminary"}, "warnings": ["the chains disagree: x", "the clip cuts 3%"]});
        assert_eq!(other_warnings(&result), ["the clip cuts 3%"]);
        result["verdict"]["reasons"] = json!(["a warning on the draws: the clip cuts 3%"]);
        assert!(other_warnings(&result).is_empty());
        result["verdict"] = Value::Null;
        assert_eq!(other_warnings(&result).len(), 2);
        result["privacy_warnings"] = json!(["privacy.epsilon = 25 is above 20"]);
        assert_eq!(other_warnings(&result)[0], "privacy.epsilon = 25 is above 20");
    }

    #[test]
    fn the_words_of_the_wire_are_read_back() {
        for grade in Grade::ALL {
            assert_eq!(Grade::parse(grade.words()), Some(grade));
        }
        assert_eq!(Grade::parse(""), None);
        assert_eq!(state_words("finished", "no adequate answer", false), "finished: no adequate answer");
        assert_eq!(state_words("finished", "fit to publish", false), "finished");
        assert_eq!(state_words("running", "", false), "running");
        assert_eq!([state_words("opening", "", true), state_words("paused", "", true)], [waiting::FOR_CONSENT; 2]);
        // A cancelled job waits for nobody.
        assert_eq!(state_words("cancelled", "", true), "cancelled");
    }
}
