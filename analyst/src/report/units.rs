//! `--per`: the units of a report's coefficients.

use std::collections::BTreeMap;

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_proto::error::Fault;

use crate::faults::input;

/// `--per COLUMN=NUMBER`: the number of a column's own units that a coefficient stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Per {
    column: String,
    number: f64,
    unit: Option<String>,
}

impl std::str::FromStr for Per {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!("`{text}` must have the form COLUMN=NUMBER or \"COLUMN=NUMBER UNIT\", for example age=10 or \"age=10 years\"")
        };
        let (column, value) = text.rsplit_once('=').ok_or_else(form)?;
        let (number, unit) =
            value.trim().split_once(' ').map_or((value.trim(), None), |(number, unit)| (number, Some(unit.trim())));
        let number: f64 = number.parse().map_err(|_| form())?;
        if !(number.is_finite() && number > 0.0) {
            return Err(format!("the number of units of `{}` is {number}; it must be finite and above 0", column.trim()));
        }
        Ok(Self { column: column.trim().to_owned(), number, unit: unit.filter(|unit| !unit.is_empty()).map(str::to_owned) })
    }
}

/// The units of the numeric columns; 1 for a column without a choice.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Units(BTreeMap<String, (f64, Option<String>)>);

impl Units {
    /// Collects the analyst's choices.
    ///
    /// # Errors
    /// A column that is no numeric predictor of the job, or is named twice.
    pub(crate) fn new(chosen: &[Per], spec: &JobSpec) -> Result<Self, Fault> {
        let columns = numeric_predictors(spec);
        let mut units = BTreeMap::new();
        for Per { column, number, unit } in chosen {
            if is_of_spline(column) && has_factor(spec, column) {
                return Err(input(format!(
                    "--per: `{column}` is one term of a spline, whose coefficients have no unit and no meaning one by one: `conclave predict` \
                     shows the curve"
                )));
            }
            if !columns.contains(&column.as_str()) {
                let known = match columns.is_empty() {
                    true => "this job has no numeric predictor".to_owned(),
                    false => format!("its numeric predictors are {}", columns.join(", ")),
                };
                return Err(input(format!("--per: `{column}` is not a numeric predictor of the job; {known}")));
            }
            if units.insert(column.clone(), (*number, unit.clone())).is_some() {
                return Err(input(format!("--per: `{column}` is named twice; name it once")));
            }
        }
        Ok(Self(units))
    }

    /// Returns the number of units of a column.
    pub(super) fn number(&self, column: &str) -> f64 {
        self.0.get(column).map_or(1.0, |(number, _)| *number)
    }

    /// Returns the words of a column's unit: `10 years`, `1 unit`.
    pub(super) fn words(&self, column: &str) -> String {
        match self.0.get(column) {
            Some((number, Some(unit))) => format!("{number} {unit}"),
            Some((number, None)) if *number != 1.0 => format!("{number} units"),
            _ => "1 unit".to_owned(),
        }
    }
}

/// Returns true for a column of a spline's basis: `ns(age)[2]`, `ls(age)[1]`.
pub(super) fn is_of_spline(column: &str) -> bool {
    (column.starts_with("ns(") || column.starts_with("ls(")) && column.ends_with(']')
}

fn has_factor(spec: &JobSpec, column: &str) -> bool {
    let features = spec.model.design().into_iter().flat_map(|design| &design.features);
    features.flat_map(|feature| &feature.factors).any(|factor| factor.column == column)
}

/// Returns the numeric columns that a coefficient multiplies, declared and derived, each once. A spline's terms have no unit.
fn numeric_predictors(spec: &JobSpec) -> Vec<&str> {
    let mut columns = Vec::new();
    for factor in spec.model.design().into_iter().flat_map(|design| &design.features).flat_map(|feature| &feature.factors) {
        let is_numeric = factor.level.is_none()
            && !is_of_spline(&factor.column)
            && !matches!(spec.columns.get(&factor.column), Some(ColumnSpec::Binary));
        if is_numeric && !columns.contains(&factor.column.as_str()) {
            columns.push(factor.column.as_str());
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_term_of_a_spline_has_no_unit() {
        let spec = JobSpec::parse(
            "name = \"j\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nformula = \"y ~ ns(age, knots = [40, 60]) + bmi\"\n\
             family = \"logistic\"\n[columns]\ny = { binary = true }\nage = { min = 0, max = 100 }\nbmi = { min = 10, max = 60 }\n[privacy]\n\
             epsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let units = |text: &str| Units::new(&[text.parse().unwrap()], &spec);
        let fault = units("ns(age)[1]=10").unwrap_err();
        assert!(fault.message.contains("one term of a spline") && fault.code.exit_code() == 2, "{fault}");
        assert!(units("age=10").unwrap_err().message.ends_with("its numeric predictors are bmi"));
        assert_eq!(units("bmi=5").unwrap().number("bmi"), 5.0);
    }

    #[test]
    fn units_are_read_and_wrong_ones_refused_with_the_right_names() {
        let spec = JobSpec::parse(
            "name = \"j\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"age\", \"bmi\", \"sex\", \"w\"]\n[columns]\n\
             y = { binary = true }\nsex = { binary = true }\nage = { min = 0, max = 100 }\nbmi = { min = 10, max = 60 }\n\
             w = { levels = [\"p\", \"q\"] }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let units = |texts: &[&str]| Units::new(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Per>>(), &spec);
        let chosen = units(&["age=10 years", "bmi=5"]).unwrap();
        assert_eq!(
            (chosen.number("age"), chosen.words("age"), chosen.words("bmi"), chosen.words("x")),
            (10.0, "10 years".to_owned(), "5 units".to_owned(), "1 unit".to_owned())
        );
        for (wrong, part) in [("ages=10", "age, bmi"), ("sex=2", "age, bmi"), ("w=2", "age, bmi")] {
            let fault = units(&[wrong]).unwrap_err();
            assert!(fault.message.contains(part) && fault.code.exit_code() == 2, "{fault}");
        }
        assert!(units(&["age=10", "age=5"]).unwrap_err().message.contains("named twice"));
        for wrong in ["age", "age=", "age=ten", "age=0", "age=-1", "age=inf", "age=nan"] {
            assert!(wrong.parse::<Per>().is_err(), "{wrong}");
        }
    }
}
