//! `--interval`: intervals of a result at another level than 90%, from its draws.

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_draws::zarr::DrawStore;
use conclave_draws::{Draws, new_party_intervals};
use conclave_predict::{Interval, Level, interval_of};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::JobStatus;
use conclave_proto::v1::jobs_client::JobsClient;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::ended::{fetch_draws, fetch_spec, interruptible};
use crate::output::note;
use crate::result::read;

/// The level of shown intervals.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct IntervalArgs {
    /// Level of the equal-tailed intervals, from the draws: 0.95 or 95%
    #[arg(long = "interval", value_name = "LEVEL", default_value = "0.9", value_parser = parse)]
    level: Level,
}

impl Default for IntervalArgs {
    fn default() -> Self {
        Self { level: Level::DEFAULT }
    }
}

fn parse(text: &str) -> Result<Level, String> {
    text.parse::<Level>().map_err(|e| e.to_string())
}

impl IntervalArgs {
    pub(crate) fn level(self) -> Level {
        self.level
    }

    /// Returns the level if it is not that of the stored result.
    pub(crate) fn other(self) -> Option<Level> {
        (self.level != Level::DEFAULT).then_some(self.level)
    }
}

/// Replaces a job's result by one with intervals at this level. The draws are fetched for it; without a level or a result nothing is.
///
/// # Errors
/// Those of the coordinator; draws that it no longer holds.
pub(crate) async fn at_level(
    client: &mut JobsClient<Channel>,
    status: JobStatus,
    level: Option<Level>,
) -> Result<JobStatus, Fault> {
    let Some(level) = level.filter(|_| !status.result_json.is_empty()) else { return Ok(status) };
    let job = status.job.clone();
    let (spec, draws) = interruptible(async {
        let (_, spec) = fetch_spec(client, &job).await?;
        Ok((spec, fetch_draws(client, &job).await.map_err(|fault| without_draws(fault, &job))?))
    })
    .await?;
    let mut result: Value = read(&status.result_json)?;
    of_draws(&mut result, &spec, &draws, level);
    Ok(JobStatus { result_json: result.to_string(), ..status })
}

/// Returns the fault of draws that are gone.
pub(crate) fn without_draws(fault: Fault, job: &str) -> Fault {
    if fault.code != ErrorCode::NotFound {
        return fault;
    }
    let message =
        format!("job {job} has no draws at the coordinator any more, so only its 90% intervals are known: leave out --interval");
    Fault::new(ErrorCode::NotFound, message)
}

/// Adds the intervals of fetched draws.
pub(crate) fn of_draws(result: &mut Value, spec: &JobSpec, draws: &Draws, level: Level) {
    let samples: Vec<Vec<&[f64]>> =
        draws.sampling.theta.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    add(result, spec, &samples, level);
}

/// Adds the intervals of draws that this process has made.
pub(crate) fn of_store(result: &mut Value, spec: &JobSpec, draws: &DrawStore, level: Level) {
    let samples: Vec<Vec<&[f64]>> = (0..spec.draw_names().len()).map(|value| draws.samples(value)).collect();
    add(result, spec, &samples, level);
}

/// Adds `interval`, with `level`, `low` and `high`, to each row of a result; all other keys stay. Warns of a level for which the draws are few. `samples` are the kept draws,
/// `[value][chain][draw]`, of [`JobSpec::draw_names`].
fn add(result: &mut Value, spec: &JobSpec, samples: &[Vec<&[f64]>], level: Level) {
    let written = |Interval { low, high }: Interval| json!({ "level": level.get(), "low": low, "high": high });
    let rows = |result: &mut Value, key: &str, interval: &dyn Fn(usize, &Value) -> Option<Interval>| {
        let rows = result.get_mut(key).and_then(Value::as_array_mut);
        for (at, row) in rows.into_iter().flatten().enumerate() {
            if let Some(interval) = interval(at, row) {
                row["interval"] = written(interval);
            }
        }
    };
    let draws = samples.first().map_or(0, |chains| chains.iter().map(|chain| chain.len()).sum());
    if let Some(warning) = level.few_draws(draws) {
        note!("warning: {warning}");
    }
    let names = spec.draw_names();
    let place = |row: &Value| names.iter().position(|name| row["name"] == name.as_str());
    let values = |chains: &Vec<&[f64]>| chains.iter().flat_map(|chain| chain.iter().copied()).collect::<Vec<f64>>();
    rows(result, "posterior", &|_, row| Some(interval_of(values(samples.get(place(row)?)?), level)));
    let original = spec.in_original_units(samples);
    let in_original = |row: &Value| Some(interval_of(original.get(place(row)?)?.concat(), level));
    rows(result, "posterior_original", &|_, row| in_original(row));
    // The exponential is monotone.
    rows(result, "ratios", &|_, row| {
        in_original(row).map(|interval| Interval { low: libm::exp(interval.low), high: libm::exp(interval.high) })
    });
    let new = new_party_intervals(spec, samples, level.tails());
    rows(result, "new_party", &|at, _| new.get(at).map(|[low, high]| Interval { low: *low, high: *high }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_inference::diagnostics::summarise;

    use super::*;

    const JOB: &str = "name = \"p\"\nparties = [\"a\", \"b\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
        predictors = [\"x\"]\n[columns]\ny = { binary = true }\nx = { min = 0, max = 4 }\n[parameters]\nintercept = { by = \"party\" }\n[privacy]\n\
        epsilon = 1.0\ndelta = 1e-6\n";

    /// A result of two chains, in which x is uniform on [-1, 1] and every other value is 0.5.
    fn result(spec: &JobSpec) -> (Value, Vec<Vec<Vec<f64>>>) {
        let uniform: Vec<f64> = (0..=1000).map(|i| f64::from(i) / 500.0 - 1.0).collect();
        let of = |name: &String| if name == "x" { uniform.clone() } else { vec![0.5; 1001] };
        let samples: Vec<Vec<Vec<f64>>> = spec.draw_names().iter().map(|name| vec![of(name), of(name)]).collect();
        let row = |(name, chains): (&String, &Vec<Vec<f64>>)| {
            let summary = summarise(&[&chains[0], &chains[1]]);
            json!({ "name": name, "q5": summary.q5, "median": summary.median, "q95": summary.q95 })
        };
        let rows: Vec<Value> = spec.draw_names().iter().zip(&samples).map(row).collect();
        let ratios = json!([{ "name": "x", "kind": "odds_ratio", "q5": 0.6, "median": 1.0, "q95": 1.5 }]);
        let new_party = json!([{ "parameter": "intercept", "q5": 0.0, "median": 0.5, "q95": 1.0 }]);
        (json!({ "posterior": rows, "posterior_original": rows, "ratios": ratios, "new_party": new_party }), samples)
    }

    #[test]
    fn each_row_gets_an_interval_and_keeps_its_keys() {
        let spec = JobSpec::parse(JOB).unwrap();
        let (before, samples) = result(&spec);
        let samples: Vec<Vec<&[f64]>> = samples.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
        let at = |level: &str| {
            let mut after = before.clone();
            add(&mut after, &spec, &samples, level.parse().unwrap());
            after
        };
        let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 2e-3;
        let half = at("0.5");
        let x = &half["posterior"][1];
        assert_eq!((&x["name"], &x["interval"]["level"]), (&json!("x"), &json!(0.5)));
        assert!(near(&x["interval"]["low"], -0.5) && near(&x["interval"]["high"], 0.5), "{x:#}");
        // Two units of the data are one unit of the prior's scale.
        let original = &half["posterior_original"][1]["interval"];
        assert!(near(&original["low"], -0.25) && near(&original["high"], 0.25), "{original:#}");
        let ratio = &half["ratios"][0]["interval"];
        assert!(near(&ratio["low"], libm::exp(-0.25)) && near(&ratio["high"], libm::exp(0.25)), "{ratio:#}");
        // N(0.5, 0.5²) at a new party.
        let new = &half["new_party"][0]["interval"];
        assert!(near(&new["low"], 0.5 - 0.5 * 0.674_489_75) && near(&new["high"], 0.5 + 0.5 * 0.674_489_75), "{new:#}");
        // At 90% the ends are those that the result has.
        for row in at("0.9")["posterior"].as_array().unwrap() {
            assert_eq!((&row["interval"]["low"], &row["interval"]["high"]), (&row["q5"], &row["q95"]), "{row:#}");
        }
        let mut without = half;
        for key in ["posterior", "posterior_original", "ratios", "new_party"] {
            for row in without[key].as_array_mut().unwrap() {
                assert!(row.as_object_mut().unwrap().remove("interval").is_some(), "{key}");
            }
        }
        assert_eq!(without, before);
    }

    #[test]
    fn draws_that_are_gone_are_named() {
        let gone = without_draws(Fault::new(ErrorCode::NotFound, "none"), "4f-1");
        assert!(gone.message.contains("4f-1") && gone.message.contains("leave out --interval"), "{gone}");
        let other = Fault::new(ErrorCode::Unreachable, "x");
        assert_eq!(without_draws(other.clone(), "4f-1"), other);
    }
}
