//! Finds outcomes and events that are coded otherwise than the model reads them, and names the recoding.

use conclave_common::job::JobSpec;
use conclave_common::schema::{Auxiliary, ColumnSpec, Family, ModelSpec};

use super::concern::Concern;
use super::records::Records;
use conclave_vault::data::DataError;

/// Words for 1 and for 0, in lower case.
const YES_NO: [[&str; 2]; 4] = [["yes", "no"], ["y", "n"], ["true", "false"], ["t", "f"]];

/// Returns the concern about a column of numbers that a job can't use as its outcome or event.
///
/// # Errors
/// Fails if the shard is streamed and can't be read.
pub(super) fn concern(shard: &dyn Records, spec: &JobSpec, name: &str) -> Result<Option<Concern>, DataError> {
    let is_outcome = name == spec.model.outcome();
    if is_outcome && counts(&spec.model) {
        let fractional = share(shard, name, |v| v.fract() != 0.0 && !v.is_nan())?;
        let what = format!("{:.1}% of the counts in {name} are no whole numbers", 100.0 * fractional);
        let remedy = "store the counts themselves: for rates, multiply by the time or the population, and ask the analyst to declare that \
                      column as `exposure`";
        return Ok((fractional > 0.0).then(|| Concern::grave(what, remedy)));
    }
    if !(is_outcome || is_event(&spec.model, name)) || !matches!(spec.columns.get(name), Some(ColumnSpec::Binary)) {
        return Ok(None);
    }
    let odd = share(shard, name, |v| !v.is_nan() && v != 0.0 && v != 1.0)?;
    if odd == 0.0 {
        return Ok(None);
    }
    let other = share(shard, name, |v| !v.is_nan() && v != 1.0 && v != 2.0)?;
    Ok(Some(match other == 0.0 {
        true => Concern::grave(
            format!("{name} is coded 1 and 2, and the job reads 0 and 1: every value would count as 1"),
            "recode it in the file: the value that stands for the event to 1, the other to 0",
        ),
        false => Concern::grave(
            format!("{:.1}% of {name} are neither 0 nor 1; values of at least 0.5 count as 1", 100.0 * odd),
            "recode it in the file to 0 and 1, or ask the analyst to declare the column by bounds or levels",
        ),
    }))
}

/// Returns the concern about a column of texts that the job declares binary, where all its words are one pair of yes and no.
pub(super) fn yes_no(spec: &JobSpec, name: &str, words: &[String]) -> Option<Concern> {
    let binary = matches!(spec.columns.get(name), Some(ColumnSpec::Binary));
    let is_of = |pair: &[&str; 2]| words.iter().all(|word| pair.contains(&word.trim().to_lowercase().as_str()));
    let [yes, no] = YES_NO.into_iter().find(|pair| binary && !words.is_empty() && is_of(pair))?;
    let found = format!("{name} holds the texts {yes:?} and {no:?}, and the job reads the numbers 0 and 1");
    Some(Concern::grave(
        found,
        "recode it in the file, yes or true to 1 and no or false to 0, and take it out of `text` in [data]",
    ))
}

fn counts(model: &ModelSpec) -> bool {
    match model {
        ModelSpec::PoissonMean { .. } => true,
        ModelSpec::Regression(regression) => matches!(regression.family, Family::Poisson | Family::NegativeBinomial),
        _ => false,
    }
}

/// Returns true for the column that says which times of a survival model ended with the event.
fn is_event(model: &ModelSpec, name: &str) -> bool {
    matches!(model, ModelSpec::Weibull { .. } | ModelSpec::PiecewiseExponential(_) | ModelSpec::LifeTable(_))
        && model.auxiliary().iter().any(|a| matches!(a, Auxiliary::Scaled(event) if *event == name))
}

/// Returns the share of a column's values that are odd.
pub(super) fn share(shard: &dyn Records, name: &str, odd: impl Fn(f64) -> bool) -> Result<f64, DataError> {
    let mut count = 0_usize;
    shard.look(name, &mut |values| count += values.iter().filter(|v| odd(**v)).count())?;
    Ok(count as f64 / shard.records().max(1) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::screening::screen_job;
    use conclave_vault::data::{BadRows, DataConfig, Shard};
    use conclave_vault::testing::{data, write};

    fn job(model: &str, columns: &str) -> JobSpec {
        let text = format!(
            "name = \"t\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
        );
        JobSpec::parse(&text).unwrap()
    }

    /// The grave concerns about a file.
    fn grave(csv: &str, text: &[&str], spec: &JobSpec) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let text = text.iter().map(|name| (*name).to_owned()).collect();
        let config = DataConfig { text, ..data(write(folder.path(), "a.csv", csv), BadRows::Stop) };
        let shard = Shard::load(&config, None).unwrap();
        let found = screen_job(&shard, spec).unwrap().into_iter().filter(|concern| concern.grave);
        found.map(|concern| concern.to_string()).collect()
    }

    #[test]
    fn an_outcome_in_another_code_is_an_error_with_its_recoding() {
        let share = job("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }");
        let found = |csv: &str, text: &[&str]| grave(csv, text, &share);
        assert!(found("y\n0\n1\n1\n", &[]).is_empty());
        let [one_two] = found("y\n1\n2\n1\n", &[]).try_into().unwrap();
        assert!(one_two.contains("coded 1 and 2") && one_two.contains("recode it in the file"), "{one_two}");
        let [other] = found("y\n0\n1\n9\n", &[]).try_into().unwrap();
        assert!(other.contains("33.3% of y are neither 0 nor 1"), "{other}");
        for words in ["yes\nno\nNo", "True\nFALSE\ntrue"] {
            let [texts] = found(&format!("y\n{words}\n"), &["y"]).try_into().unwrap();
            assert!(texts.contains("recode it in the file, yes or true to 1"), "{texts}");
        }
        let [texts] = found("y\nyes\nmaybe\n", &["y"]).try_into().unwrap();
        assert!(texts.contains("declare its levels"), "{texts}");
    }

    #[test]
    fn an_event_in_another_code_is_an_error() {
        let model = "kind = \"weibull\"\noutcome = \"days\"\nevent = \"died\"";
        let spec = job(model, "days = { min = 0.5, max = 2000 }\ndied = { binary = true }");
        assert!(grave("days,died\n1,0\n200,1\n1900,1\n", &[], &spec).is_empty());
        let [found] = grave("days,died\n1,1\n200,2\n1900,2\n", &[], &spec).try_into().unwrap();
        assert!(found.contains("died is coded 1 and 2"), "{found}");
    }

    #[test]
    fn fractional_counts_and_a_clamped_outcome_are_errors() {
        let spec = job("kind = \"poisson_mean\"\noutcome = \"count\"", "count = { min = 0, max = 10 }");
        assert!(grave("count\n0\n3\n9\n10\n8\n", &[], &spec).is_empty());
        let [found] = grave("count\n0\n3\n9.5\n8\n1\n", &[], &spec).try_into().unwrap();
        assert!(found.contains("20.0% of the counts in count are no whole numbers") && found.contains("`exposure`"), "{found}");
        // One of five is clamped, which is tolerated.
        assert!(grave("count\n0\n3\n90\n8\n1\n", &[], &spec).is_empty());
        let [found] = grave("count\n0\n30\n90\n8\n1\n", &[], &spec).try_into().unwrap();
        assert!(found.contains("40.0% of count lie outside 0 to 10"), "{found}");
    }
}
