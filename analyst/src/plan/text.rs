//! Text of a plan.

use conclave_common::job::{Algorithm, JobSpec};
use conclave_draws::result::AggregationRow;
use conclave_inference::planner::{AlgorithmPlan, ChainRange, MARGIN, ParameterPlan, PartyPlan, Plan, Range};
use conclave_inference::sampler::Expected;
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::{number, plain, thousands};

use super::plan_input::Withheld;

/// Largest length of a reason.
const REASON: usize = 1000;

/// Formats all algorithms that can fit the job, with the job's own marked and the reason for its choice.
pub(super) fn algorithms(spec: &JobSpec, rows: &[AlgorithmPlan]) -> String {
    let range = |range: Option<Range>, decimals: usize| match range {
        None => "-".to_owned(),
        Some(Range { best, worse }) => {
            let show = |x: f64| if x.is_finite() { format!("{x:.decimals$}") } else { "∞".to_owned() };
            if show(best) == show(worse) { show(best) } else { format!("{} to {}", show(best), show(worse)) }
        }
    };
    let widest = rows.iter().map(|row| row.note.chars().count()).max().unwrap_or(0);
    let note = |row: &AlgorithmPlan| if row.refused { format!("refused: {}", row.note) } else { row.note.clone() };
    let mark = |row: &AlgorithmPlan| if row.algorithm == spec.algorithm.as_str() { "*" } else { " " };
    let columns: [Column<'_, AlgorithmPlan>; 5] = [
        ("  algorithm", &|row| Cell::text(format!("{} {}", mark(row), row.algorithm))),
        ("error (sds)", &|row| Cell::number(range(row.expected_error, 2))),
        ("interval (×)", &|row| Cell::number(range(row.interval_factor, 2))),
        ("rounds", &|row| Cell::number(row.rounds.map_or_else(|| "-".to_owned(), thousands))),
        ("", &|row| Cell::text(format!("{:<widest$}", note(row)))),
    ];
    let why = spec.chosen.map_or_else(|| "the job names it".to_owned(), |why| format!("chosen because {why}"));
    format!(
        "{}* {why}.\n\nerror: of a posterior mean, in posterior sds without privacy, from bounds, priors and record counts only: \
         from the best case\n\
         (predictors uniform over their bounds, uncorrelated) to a worse one (predictors that fill a fifth of them), times {MARGIN} for \
         real data.\n\
         For a chain with a guess of the posterior, it follows from the guess. interval: width relative to an interval \
         without privacy,\n\
         the error included. rounds: messages to every party, at most.\n",
        Table::new("", rows, &columns).text()
    )
}

/// Formats the verdict of a rehearsal that had no adequate answer.
pub(super) fn withheld(Withheld { algorithm, epsilon, reasons }: &Withheld) -> String {
    let reasons: String = reasons.iter().map(|reason| format!("- {}\n", plain(reason, REASON))).collect();
    format!(
        "The rehearsal by {} at epsilon {epsilon} had no adequate answer, and a run on such records will have none, whatever the table \
         below forecasts:\n{reasons}\n",
        plain(algorithm, REASON)
    )
}

/// Formats the gain of masked answers over answers opened separately; `None` for a local job.
pub(super) fn masked(spec: &JobSpec) -> Option<String> {
    let row = AggregationRow::from_spec(spec)?;
    let honest = row.honest;
    let gain = match spec.algorithm.proposes() {
        true => {
            format!("{honest} times as many rounds, and effective draws of a chain that ends by its budget, as mode = \"local\"")
        }
        false => format!("releases with 1/{honest} of the noise variance of mode = \"local\""),
    };
    Some(format!(
        "Answers are masked and only their sum over {} parties is opened: prices use the noise of {honest} of them, with {} of \
         the others colluding\n\
         with the coordinator. The same budget holds {gain}. All figures here are at these prices.\n",
        row.parties, row.colluders
    ))
}

/// Formats the forecast for a job that releases once.
pub(super) fn released_once(spec: &JobSpec, records: &[u64], expected: Option<&Expected>) -> String {
    if spec.algorithm == Algorithm::Ops {
        return "After an optional search, each draw is one choice among public candidates, charged by the largest change of its \
                log odds by one\n\
                record: `conclave account --ops R` prints the price of a range R, and `conclave rehearse` the job's cost on your \
                own records."
            .to_owned();
    }
    let Some(e) = expected else {
        return "The whole budget is released in one round; the width of the posterior depends on the records: run `conclave \
                rehearse`."
            .to_owned();
    };
    format!(
        "At (epsilon, delta) = ({}, {}) and {} records in total, the noise will shift each mean by {:.2} posterior sds and make \
         intervals {:.2} times as\n\
         wide as without privacy, in the best case. An error of half a posterior sd would take epsilon {:.1}, or {} records in \
         total.{}",
        spec.privacy.budget.epsilon,
        spec.privacy.budget.delta,
        thousands(records.iter().sum::<u64>()),
        e.expected_error,
        e.interval_factor,
        e.epsilon_for_half,
        thousands(e.records_for_half as u64),
        if e.refused { "\n\nThe job will be refused before any query: no usable posterior is expected." } else { "" }
    )
}

/// Explains how to forecast a chain that has no guess of the posterior.
pub(super) fn without_a_guess(spec: &JobSpec, range: Option<&ChainRange>) -> String {
    let between = |Range { best, worse }: Range| {
        let [worse, best] = [worse, best].map(|figure| thousands(figure.round() as u64));
        if worse == best { best } else { format!("{worse} to {best}") }
    };
    let forecast = range.map_or_else(String::new, |range| {
        format!(
            "There is no guess of the posterior. From bounds, priors and record counts only, between the worse case and the best \
             one, with independent\n\
             parameters: {} rounds, {} kept draws per chain, {} effective draws of the parameter that gets the fewest.\n\n",
            between(range.rounds),
            between(range.draws),
            between(range.effective)
        )
    });
    let name = spec.model.parameter_names().into_iter().next().unwrap_or_default();
    format!(
        "{forecast}The rounds that each party can afford and the effective draws of each parameter need a guess of the \
         posterior: write\n\
         posterior.{name:?} = {{ mean = …, sd = … }} and so on for every parameter under [plan], or pass --rehearsal FILE from \
         `conclave rehearse`."
    )
}

pub(super) fn chain(spec: &JobSpec, plan: &Plan) -> String {
    let budget = &spec.privacy.budget;
    let columns: [Column<'_, PartyPlan>; 5] = [
        ("party", &|party| Cell::name(&party.name)),
        ("Gaussian DP", &|party| Cell::number(thousands(party.iterations_gdp))),
        ("zCDP", &|party| Cell::number(thousands(party.iterations_zcdp))),
        ("penalty paper", &|party| Cell::number(thousands(party.iterations_advanced))),
        ("its Theorem 1", &|party| Cell::number(thousands(party.iterations_theorem_1))),
    ];
    let mut text = format!(
        "Rounds of {} chains that (epsilon, delta) = ({}, {}) affords at each party, under each accounting (ledgers use the \
         first):\n{}\n",
        plan.chains,
        budget.epsilon,
        budget.promised_delta(),
        Table::new("", &plan.parties, &columns).text()
    );
    text += &format!(
        "The run: {} rounds, {} kept draws per chain, ended by {}; {:.0}% of the budget spent, {:.0}% before the first kept draw.\n\
         {}\n\n",
        thousands(plan.iterations),
        thousands(plan.draws),
        if plan.stopped_by == "budget" { "the budget" } else { "its last draw" },
        100.0 * plan.budget_share,
        100.0 * plan.warmup_share,
        accepted(spec, plan)
    );
    let known = |x: f64, text: String| if x.is_finite() { text } else { "–".to_owned() };
    let columns: [Column<'_, ParameterPlan>; 3] = [
        ("parameter", &|row| Cell::name(&row.name)),
        ("effective draws", &|row| Cell::number(known(row.ess, format!("{:.0}", row.ess)))),
        ("kappa", &|row| Cell::number(known(row.kappa, number(row.kappa)))),
    ];
    text += &Table::new("", &plan.ess, &columns).text();
    for sentence in &plan.advice {
        text += &format!("\n- {sentence}");
    }
    text
}

fn accepted(spec: &JobSpec, plan: &Plan) -> String {
    if spec.is_polished() {
        return format!(
            "Steps have no acceptance test, and the draws come from {} penalty sweeps after them: {:.0}% of the sweeps' \
             proposals accepted.",
            spec.sampler.stochastic.polish,
            100.0 * plan.acceptance_rate
        );
    }
    if spec.algorithm.is_unadjusted() {
        return "Steps have no acceptance test: every one is accepted, and the draws have a bias that `conclave rehearse` \
                estimates as far as possible."
            .to_owned();
    }
    if plan.acceptance_rate.is_nan() {
        return "Acceptance and effective draws depend on the records' statistics: run `conclave rehearse`.".to_owned();
    }
    let (rate, small) = (100.0 * plan.acceptance_rate, 100.0 * plan.acceptance_small_steps);
    format!("Proposals accepted: {rate:.0}% ({small:.0}% in the limit of small steps).")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_inference::planner;
    use conclave_inference::planner::Guess;

    const JOB: &str = "name = \"m\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
        [columns]\ny = { min = -3, max = 5 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";

    #[test]
    fn figures_unknown_for_algorithm_3_are_left_out() {
        let text = JOB.replace("name = \"m\"", "name = \"m\"\nalgorithm = \"penalty-exp-family\"");
        let spec = JobSpec::parse(&format!("{text}[sampler]\ndraws = 500\nwarmup = 5\n")).unwrap();
        let plan = planner::plan(&spec, &Guess::independent(vec![800, 800], vec![0.1], &[0.1])).unwrap();
        assert_eq!((plan.stopped_by, plan.draws), ("draws", 500));
        let text = chain(&spec, &plan);
        assert!(!text.contains("NaN") && text.contains("conclave rehearse") && text.contains('–'), "{text}");
        let json: serde_json::Value = serde_json::to_value(&plan).unwrap();
        assert!(json["acceptance_rate"].is_null() && json["ess"][0]["ess"].is_null(), "{json}");
        let rows = planner::compare(&spec, &[800, 800], &[(spec.algorithm, plan)]).unwrap();
        let text = algorithms(&spec, &rows);
        let own = text.lines().find(|line| line.starts_with("* penalty-exp-family")).unwrap();
        assert!(own.contains(" - ") && text.contains("  noisy-statistics") && text.contains("* the job names it."), "{text}");
    }

    #[test]
    fn a_masked_job_says_what_its_prices_are_made_of_and_what_they_buy() {
        // More draws than any of the two budgets holds.
        let five = JOB.replace(r#""a", "b""#, r#""a", "b", "c", "d", "e""#)
            + "[sampler]\ndraws = 1000000\nwarmup = 2\nstart = { mean = 0.1 }\nproposal = { kind = \"guided\", radius = 0.0002 }\n[aggregation]\nmode = \"secure\"\ncolluders = 2\n";
        let spec = JobSpec::parse(&five).unwrap();
        let words = masked(&spec).unwrap();
        assert!(
            words.contains("noise of 3 of them, with 2 of the others") && words.contains("3 times as many rounds"),
            "{words}"
        );
        assert_eq!(masked(&JobSpec::parse(JOB).unwrap()), None);
        // The plan uses these prices: three times the rounds of the same job without masks, for equal step lengths.
        let rounds = |spec: &JobSpec| {
            let guess = Guess::independent(vec![200_000; 5], vec![0.1], &[0.001]);
            planner::plan(spec, &guess).unwrap().parties[0].iterations_gdp as f64
        };
        let local = JobSpec::parse(five.split("[aggregation]").next().unwrap()).unwrap();
        let ratio = rounds(&spec) / rounds(&local);
        assert!((ratio / 3.0 - 1.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn each_algorithm_has_a_row_and_the_jobs_own_is_marked() {
        let spec = JobSpec::parse(&JOB.replace("name = \"m\"", "name = \"m\"\nalgorithm = \"auto\"")).unwrap();
        let rows = planner::compare(&spec, &[800, 800], &[]).unwrap();
        let text = algorithms(&spec, &rows);
        let starts: Vec<&str> = text.lines().take(4).map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(starts, ["algorithm", "*", "augmentation", "penalty"], "{text}");
        assert!(text.contains("* chosen because one release of the sufficient statistic contains all the information"), "{text}");
        let row = AlgorithmPlan { expected_error: Some(Range { best: 0.1, worse: f64::INFINITY }), ..rows[2].clone() };
        assert!(algorithms(&spec, &[row]).contains("0.10 to ∞"));
    }
}
