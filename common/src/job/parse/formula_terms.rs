//! Messages for predictors and models written as in R formulas or other programs: each names what Conclave has for it.

/// Names of models elsewhere, and the remedy here.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (
        &["cox", "coxph", "cox_ph", "phreg", "survival"],
        "survival times with predictors are modelled by `piecewise_exponential`, whose hazard is constant between `cuts`: with many cuts its \
         hazard ratios are those of a Cox regression",
    ),
    (&["gaussian", "normal", "ols", "lm"], "a normal outcome with predictors is `linear`, one without is `gaussian_mean`"),
    (&["binomial", "logit", "glm"], "a binary outcome with predictors is `logistic`"),
    (&["negbin", "nb", "nbinom"], "overdispersed counts are `negative_binomial`"),
    (
        &["mixed", "lmer", "glmer", "multilevel", "hierarchical"],
        "effects by party are `(1 | party)` in a `formula`; any other group is a column with `levels`, named as a predictor",
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
            "`{term}` asks for an effect of each `{group}` (of `{effects}`): effects by party are written in a `formula`, \
             `(1 | party)`; for another group declare `{group}` with `levels` and name it as a predictor"
        ));
    }
    if term.contains('*') {
        let parts: Vec<&str> = term.split('*').map(str::trim).filter(|part| !part.is_empty()).collect();
        let main: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
        return Some(format!(
            "`*` is available in a `formula`, not in a list: in place of `{term}` write main effects and the interaction: {}, \"{}\"",
            main.join(", "),
            parts.join(":")
        ));
    }
    match term.trim() {
        "0" | "-1" | "+0" => Some(format!("`{term}` is no column; a model without intercept has `intercept = false`")),
        "1" => Some("`1` is no column; the intercept is in the model unless `intercept = false`".to_owned()),
        "." => Some("`.` is no column; name each predictor".to_owned()),
        other if other.contains(['(', '^', '/', '%', '~']) => Some(format!(
            "`{term}` is a term of a formula; predictors are columns and their interactions `a:b`, so write `formula = \"outcome ~ …\"` with \
             `family` in place of `kind`, `outcome` and `predictors`"
        )),
        _ => None,
    }
}

/// Returns the message for an interaction of a column with itself.
pub(super) fn square(term: &str, column: &str) -> String {
    format!("the interaction `{term}` names column `{column}` twice; a square is `I({column}^2)` in a `formula`")
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
            ("log(age)", "write `formula"),
            ("I(age^2)", "write `formula"),
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
        assert!(model_elsewhere("coxph").unwrap().contains("`piecewise_exponential`"));
        assert!(model_elsewhere("Gaussian").unwrap().contains("`linear`"));
        assert_eq!(model_elsewhere("logistc"), None);
    }
}
