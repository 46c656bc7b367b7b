use super::*;

const LEAST_LOG: f64 = -9.210340371976182;

/// Returns the expected counts of `n` records of a Weibull law that is censored at times uniform in (0.2, 1), plus alternating
/// errors of this size.
fn seen((shape, scale): (f64, f64), n: f64, error: f64) -> Histogram {
    let ranges = TimesTable::RANGES;
    let width = -LEAST_LOG / ranges as f64;
    let (mut censored, mut events) = (vec![0.0; ranges], vec![0.0; ranges]);
    let survivors = |t: f64| (-(t / scale).powf(shape)).exp();
    let watched = |t: f64| ((1.0 - t) / 0.8).clamp(0.0, 1.0);
    // Fine steps of log time; what is before the first counts there.
    let steps = 20_000;
    events[0] += n * (1.0 - survivors(LEAST_LOG.exp()));
    for step in 0..steps {
        let log = |at: f64| (LEAST_LOG * (1.0 - at / f64::from(steps))).exp();
        let (from, to) = (log(f64::from(step)), log(f64::from(step) + 1.0));
        let range = ((f64::from(step) + 0.5) / f64::from(steps) * ranges as f64) as usize;
        events[range] += n * (survivors(from) - survivors(to)) * watched(from);
        censored[range] += n * (watched(from) - watched(to)) * survivors(from);
    }
    assert!(width > 0.0);
    let off = |at: usize| if at.is_multiple_of(2) { error } else { -error };
    (0..ranges).for_each(|at| (censored[at], events[at]) = (censored[at] + off(at / 2), events[at] + off(at)));
    Histogram { least_log: LEAST_LOG, censored, events, variance: error.max(0.1).powi(2) }
}

fn prior() -> GaussianPrior {
    GaussianPrior::independent(vec![0.0, 0.0], vec![0.2, 0.16])
}

/// Without noise the start is the law's own within the width of a range, wherever it lies; with noise it is near.
#[test]
fn the_start_is_near_the_law() {
    for (law, error, within) in [
        ((1.3, 0.4), 0.0, 0.05),
        ((0.51, 10.0), 0.0, 0.25),
        ((2.5, 0.1), 0.0, 0.1),
        ((0.51, 10.0), 10.0, 0.7),
        ((1.3, 0.4), 10.0, 0.2),
    ] {
        let start = seen(law, 2_000.0, error).start(&prior());
        let off = [start[0] - f64::ln(law.0), start[1] - f64::ln(law.1)];
        assert!(off.iter().all(|off| off.abs() < within), "{law:?} {error}: {off:?}");
    }
}

/// Times in whole years, of which the least are a seventh of all: most narrow ranges of early times are empty. The law is the fit
/// to such times. Without merged ranges the start is off by 1.2 and more in the logarithm of the scale.
#[test]
fn rounded_times_do_not_mislead_the_start() {
    let (shape, scale, least_log) = (0.943, 6.1 / 50.0, f64::ln(0.01));
    let ranges = TimesTable::RANGES;
    for error in [2.0, 6.0, 12.0] {
        let (mut censored, mut events) = (vec![0.0; ranges], vec![0.0; ranges]);
        let survivors = |year: f64| (-(year / 50.0 / scale).powf(shape)).exp();
        for year in 1..=50 {
            let year = f64::from(year);
            let range = (((year / 50.0).ln() - least_log) / -least_log * ranges as f64).floor().min(ranges as f64 - 1.0) as usize;
            let ended = 1800.0 * (survivors(year - 0.7) - survivors(year + 0.3));
            events[range] += 0.8 * ended;
            censored[range] += 0.2 * ended;
        }
        let off = |at: usize| if at.is_multiple_of(2) { error } else { -error };
        (0..ranges).for_each(|at| (censored[at], events[at]) = (censored[at] + off(at / 2), events[at] + off(at)));
        let start = Histogram { least_log, censored, events, variance: f64::powi(error, 2) }.start(&prior());
        // A fifth of the records is censored, so the scale of events is longer by a fourth or so.
        let off = [start[0] - f64::ln(shape), start[1] - f64::ln(1.25 * scale)];
        assert!(off.iter().all(|off| off.abs() < 0.5), "{error}: {off:?}");
    }
}

/// A histogram that says nothing leaves the prior's own location, and numbers of any kind a finite start.
#[test]
fn a_histogram_of_noise_alone_is_no_trap() {
    let ranges = TimesTable::RANGES;
    let of = |value: f64, variance: f64| Histogram {
        least_log: LEAST_LOG,
        censored: vec![value; ranges],
        events: vec![value; ranges],
        variance,
    };
    for (value, variance) in [(0.0, 1e6), (-5.0, 100.0), (1e12, 1.0), (-1e12, 1.0), (0.0, 0.0)] {
        let histogram = of(value, variance);
        let start = histogram.start(&prior());
        assert!(start.iter().all(|x| x.is_finite()) && (0.0..=1.0).contains(&histogram.event_share()), "{value}: {start:?}");
    }
}
