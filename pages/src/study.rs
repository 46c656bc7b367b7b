//! The research question of a job, in the words of its columns: what is estimated of which outcome, from which predictors.

use conclave_common::job::JobSpec;
use maud::{Markup, html};

use crate::text::{name, plain};

/// Largest number of predictors that [`Study::short`] names.
const NAMED: usize = 6;
/// Maximum length of a model's description.
const SENTENCE: usize = 600;

/// The subject of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Study {
    /// The columns beside the outcome.
    pub predictors: Vec<String>,
    /// The outcome; of a survival model the time.
    pub outcome: String,
    /// The event of a survival model.
    pub event: Option<String>,
    /// The model in the words of its field.
    pub model: String,
}

impl Study {
    /// Reads the subject of a job.
    #[must_use]
    pub fn new(spec: &JobSpec) -> Self {
        let outcome = spec.model.outcome();
        let (event, entry) = spec.model.event_and_entry();
        let others =
            spec.model.columns().into_iter().filter(|name| *name != outcome && Some(*name) != event && Some(*name) != entry);
        Self {
            predictors: others.map(str::to_owned).collect(),
            outcome: outcome.to_owned(),
            event: event.map(str::to_owned),
            model: spec.model.describe(),
        }
    }

    /// States the subject as a clause after "wants to know": `how age and sex go with sick`, `how age goes with the time to death
    /// (days)`, or `the mean of height`.
    #[must_use]
    pub fn words(&self) -> String {
        let outcome = match &self.event {
            None => self.outcome.clone(),
            Some(event) => format!("the time to {event} ({})", self.outcome),
        };
        match self.predictors.split_last() {
            None => format!("the {}", self.model),
            Some((only, [])) => format!("how {only} goes with {outcome}"),
            Some((last, rest)) => format!("how {} and {last} go with {outcome}", rest.join(", ")),
        }
    }

    /// Renders the outcome, of a survival model with its event.
    fn outcome(&self) -> Markup {
        html! {
            @match &self.event {
                None => { b { (name(&self.outcome)) } }
                Some(event) => { "the time to " b { (name(event)) } " (" b { (name(&self.outcome)) } ")" }
            }
        }
    }

    /// Renders the clause of [`Self::words`] for a page.
    #[must_use]
    pub fn html(&self) -> Markup {
        html! {
            @match self.predictors.split_last() {
                None => { "the " (plain(&self.model, SENTENCE)) }
                Some((last, rest)) => {
                    "how "
                    @for (i, column) in rest.iter().enumerate() { @if i > 0 { ", " } b { (name(column)) } }
                    @if !rest.is_empty() { " and " }
                    b { (name(last)) } " " @if rest.is_empty() { "goes" } @else { "go" } " with " (self.outcome())
                }
            }
        }
    }

    /// Renders the clause with the model; many predictors by their number.
    #[must_use]
    pub fn short(&self) -> Markup {
        let model = if self.predictors.is_empty() { String::new() } else { format!(" ({})", plain(&self.model, SENTENCE)) };
        match self.predictors.len() > NAMED {
            true => html! { "how " (self.predictors.len()) " columns go with " (self.outcome()) },
            false => html! { (self.html()) (model) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(predictors: &[&str]) -> Study {
        let predictors = predictors.iter().map(|&name| name.to_owned()).collect();
        Study { predictors, outcome: "si<ck".to_owned(), event: None, model: "logistic regression of sick".to_owned() }
    }

    #[test]
    fn a_study_is_one_clause() {
        let shown =
            |names: &[&str]| (study(names).words(), study(names).html().into_string(), study(names).short().into_string());
        let (words, page, short) = shown(&["age", "bmi", "sex"]);
        assert_eq!(words, "how age, bmi and sex go with si<ck");
        assert_eq!(page.matches("<b>").count(), 4, "{page}");
        assert!(page.contains("si&lt;ck") && short.ends_with("</b> (logistic regression of sick)"), "{page} {short}");
        assert!(shown(&["age"]).1.contains("</b> goes with <b>"));
        assert_eq!(
            shown(&[]),
            (
                "the logistic regression of sick".into(),
                "the logistic regression of sick".into(),
                "the logistic regression of sick".into()
            )
        );
        let survival = Study { event: Some("died".to_owned()), ..study(&["age"]) };
        assert_eq!(survival.words(), "how age goes with the time to died (si<ck)");
        assert!(survival.html().into_string().ends_with("the time to <b><bdi>died</bdi></b> (<b><bdi>si&lt;ck</bdi></b>)"));
        let (_, all, short) = shown(&["x"; 40]);
        assert!(all.matches("<b>").count() == 41 && short.starts_with("how 40 columns go with <b>"), "{short}");
    }
}
