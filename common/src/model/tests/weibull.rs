use super::*;

/// Times from half a day to 2000 days.
pub(super) fn case() -> Case {
    let case = Case::new(
        "weibull",
        "kind = \"weibull\"\noutcome = \"days\"\nevent = \"died\"",
        "days = { min = 0.5, max = 2000 }\ndied = { binary = true }",
        |r, theta| {
            let days = 1000.25 + 999.75 * r.outcome;
            let (shape, time) = (theta[0], days / 2000.0 / theta[1]);
            let death = if r.auxiliary[0] == 1.0 { shape.ln() - theta[1].ln() + (shape - 1.0) * time.ln() } else { 0.0 };
            death - time.powf(shape)
        },
    );
    // Shapes and scales from e^-2 to e^2: beyond them, the cumulative hazard of the longest time is extreme.
    Case { scales: [0.1, 0.5, 1.0, 2.0], ..case }
}

#[test]
fn the_scale_is_in_the_datas_unit_of_time_among_original_values() {
    let case = case();
    assert_eq!(case.model.to_original(&[1.3, 0.25]), [1.3, 500.0]);
    assert_eq!(case.model.parameter_names(), ["shape", "scale"]);
    assert_eq!(case.spec.model.constraints(), [Constraint::Positive; 2]);
}

#[test]
fn the_likelihood_is_highest_near_the_true_values() {
    let case = case();
    let mut rng = ChaCha20Rng::seed_from_u64(51);
    let (shape, scale) = (1.5_f64, 0.2_f64);
    let rows: Vec<Record> = (0..20_000)
        .map(|_| {
            let draw = |rng: &mut ChaCha20Rng, scale: f64| 2000.0 * scale * (-rng.random::<f64>().ln()).powf(1.0 / shape);
            let (death, end) = (draw(&mut rng, scale), draw(&mut rng, 0.4));
            let days = case.column("days").scale(death.min(end));
            Record { outcome: days, auxiliary: vec![f64::from(u8::from(death <= end))], ..Record::default() }
        })
        .collect();
    let data = shard(&rows);
    let at = |shape: f64, scale: f64| case.model.log_likelihood(&data, &[shape, scale]);
    let top = at(shape, scale);
    // About ten standard errors away each way; at the truth the likelihood is within a few units of its maximum.
    for (a, b) in [(1.05, 1.0), (0.95, 1.0), (1.0, 1.06), (1.0, 0.94)] {
        assert!(at(shape * a, scale * b) < top - 10.0, "{a} {b}: {} {top}", at(shape * a, scale * b));
    }
}

#[test]
fn a_time_needs_a_lower_bound_above_zero_and_an_event() {
    let text = |time: &str, event: &str| {
        format!(
            "name = \"s\"\nparties = [\"a\"]\nmodel = {{ kind = \"weibull\", outcome = \"t\"{event} }}\n\
             columns = {{ t = {time}, e = {{ binary = true }}, x = {{ min = 0, max = 1 }} }}\nprivacy = {{ epsilon = 1.0, delta = 1e-6 }}\n"
        )
    };
    let fault = |time: &str, event: &str| JobSpec::parse(&text(time, event)).unwrap_err();
    assert_eq!(fault("{ min = 0, max = 5 }", ", event = \"e\"").key, "columns.t");
    let error = fault("{ min = 4.9e-9, max = 5 }", ", event = \"e\"");
    assert!(error.key == "columns.t" && error.message.contains("1e-9 of max"), "{error}");
    assert!(JobSpec::parse(&text("{ min = 5.1e-9, max = 5 }", ", event = \"e\"")).is_ok());
    assert_eq!(fault("{ min = 1, max = 5 }", "").key, "model.event");
    assert_eq!(fault("{ min = 1, max = 5 }", ", event = \"x\"").key, "columns.x");
    assert_eq!(fault("{ min = 1, max = 5 }", ", event = \"nobody\"").key, "columns.nobody");
    assert_eq!(fault("{ min = 1, max = 5 }", ", event = \"e\", sd = 1.0").key, "model.sd");
}
