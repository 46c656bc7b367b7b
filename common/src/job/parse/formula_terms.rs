//! Messages for predictors and models written as in R formulas or other programs: each names what Conclave has for it.

/// Names of models elsewhere, and the remedy here.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (
        &["cox", "coxph", "cox_ph", "phreg", "survival"],
        "survival times are modelled by `weibull`, which has no predictors; a rate per time at risk with predictors is \
         `poisson` with `exposure`",
    ),
    (&["gaussian", "normal", "ols", "lm"], "a normal outcome with predictors is `linear`, one without is `gaussian_mean`"),
    (&["binomial", "logit", "glm"], "a binary outcome with predictors is `logistic`"),
    (&["negbin", "nb", "nbinom"], "overdispersed counts are `negative_binomial`"),
    (
        &["mixed", "lmer", "glmer", "multilevel", "hierarchical"],
        "effects of groups are not available; declare the group as a column with `levels` and name it in `model.predictors`",
    ),
];

/// Returns the remedy for the name of a model that other programs have.
pub(super) fn model_elsewhere(kind: &str) -> Option<&'static str> {
    let kind = kind.to_lowercase();
    ELSEWHERE.iter().find(|(names, _)| names.contains(&kind.as_str())).map(|(_, remedy)| *remedy)
}

/// Returns the remedy for a predictor that is formula syntax and no column; none if it may be a misspelt column.
pub(super) fn syntax(term: &str) -> Option<String> {
    if let Some((effects, group)) = term.trim_matches(['(', ')']).split_once('|') {
        let (effects, group) = (effects.trim(), group.trim());
        return Some(format!(
            "`{term}` asks for an effect of each `{group}` (of `{effects}`), which is not available; declare `{group}` with \
             `levels` and name it as a predictor"
        ));
    }
    if term.contains('*') {
        let parts: Vec<&str> = term.split('*').map(str::trim).filter(|part| !part.is_empty()).collect();
        let main: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
        return Some(format!(
            "`*` is not available in `{term}`; write main effects and the interaction: {}, \"{}\"",
            main.join(", "),
            parts.join(":")
        ));
    }
    match term.trim() {
        "0" | "-1" | "+0" => Some(format!("`{term}` is no column; a model without intercept has `intercept = false`")),
        "1" => Some("`1` is no column; the intercept is in the model unless `intercept = false`".to_owned()),
        "." => Some("`.` is no column; name each predictor".to_owned()),
        other if other.contains(['(', '^', '/', '%', '~']) => Some(format!(
            "`{term}` is a formula; predictors are columns and their interactions `a:b`, so store the transformed values as a column of \
             the data"
        )),
        _ => None,
    }
}

/// Returns the message for an interaction of a column with itself.
pub(super) fn square(term: &str, column: &str) -> String {
    format!(
        "the interaction `{term}` names column `{column}` twice; for a square, store it as a column of the data, declare its bounds, and \
         name that column"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn formula_syntax_names_what_exists() {
        for (term, remedy) in [
            ("age*sex", "\"age\", \"sex\", \"age:sex\""),
            ("(1|hospital)", "declare `hospital` with `levels`"),
            ("(1 + age | hospital)", "declare `hospital` with `levels`"),
            ("-1", "intercept = false"),
            ("log(age)", "store the transformed values"),
            ("I(age^2)", "store the transformed values"),
        ] {
            let message = syntax(term).expect(term);
            assert!(message.contains(remedy), "{term}: {message}");
        }
        for term in ["age", "age:sex", "blood pressure", "bmi_2"] {
            assert_eq!(syntax(term), None);
        }
    }

    #[test]
    fn names_of_other_programs_are_known() {
        assert!(model_elsewhere("coxph").unwrap().contains("`weibull`"));
        assert!(model_elsewhere("Gaussian").unwrap().contains("`linear`"));
        assert_eq!(model_elsewhere("logistc"), None);
    }
}
