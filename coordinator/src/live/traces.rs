//! Chains of a job as its analyst follows them in a terminal.

use conclave_inference::diagnostics::worst_mixing;
use conclave_pages::plot::evenly_spaced;
use conclave_proto::v1::{ChainTrace, ParameterFigure, ParameterTraces, TracesReply};

use super::chains::{Live, ParameterView};

/// Maximum number of parameters with traces, and of chains for each.
const TRACED: usize = 8;
/// Draws per trace.
const DRAWS: usize = 64;

/// Builds the current traces; `names` are the job's parameters. Slow: call it on a thread that may block.
pub(crate) fn traces(live: &Live, names: &[String]) -> TracesReply {
    loop {
        // The warm-up ends only once; what was read of it is then discarded.
        if let Some(reply) = of_one_phase(live, names) {
            return reply;
        }
    }
}

/// Reads all parameters; `None` if the warm-up ended meanwhile.
fn of_one_phase(live: &Live, names: &[String]) -> Option<TracesReply> {
    let mut reply = TracesReply { parameters: u32::try_from(names.len()).unwrap_or(u32::MAX), ..TracesReply::default() };
    let mut all = Vec::new();
    // A few at a time, so that little is copied at once and writers do not wait long.
    for from in (0..names.len()).step_by(TRACED) {
        let Some(view) = live.view(from..from + TRACED) else { return Some(TracesReply::default()) };
        if from > 0 && view.warmup != reply.warmup {
            return None;
        }
        (reply.warmup, reply.every) = (view.warmup, view.every);
        all.extend(names[from..].iter().zip(&view.parameters).map(|(name, parameter)| of_parameter(name, parameter)));
    }
    reply.rhat = greatest(&all, |of| of.rhat);
    reply.ess = greatest(&all, |of| -of.ess_bulk.min(of.ess_tail)).map(|least| ParameterFigure { value: -least.value, ..least });
    reply.traces = worst(all);
    Some(reply)
}

fn of_parameter(name: &str, parameter: &ParameterView) -> ParameterTraces {
    let summary = parameter.summary();
    let thinned = |sample: &Vec<f64>| evenly_spaced(sample, DRAWS).into_iter().map(|draw| draw as f32).collect();
    ParameterTraces {
        parameter: name.to_owned(),
        mean: summary.mean,
        sd: summary.sd,
        rhat: summary.rhat,
        ess_bulk: summary.ess_bulk,
        ess_tail: summary.ess_tail,
        chains: parameter.samples.iter().take(TRACED).map(|sample| ChainTrace { draws: thinned(sample) }).collect(),
    }
}

/// Finds the parameter with the greatest known `figure`. R-hat is infinite if chains are stuck at different values.
fn greatest(all: &[ParameterTraces], figure: impl Fn(&ParameterTraces) -> f64) -> Option<ParameterFigure> {
    let known = all.iter().map(|of| (of, figure(of))).filter(|(_, value)| !value.is_nan());
    let (of, value) = known.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(ParameterFigure { parameter: of.parameter.clone(), value })
}

/// Selects the parameters that mix worst, in the job's order.
fn worst(mut all: Vec<ParameterTraces>) -> Vec<ParameterTraces> {
    let places = worst_mixing(all.iter().map(|of| of.rhat), TRACED);
    places.into_iter().map(|place| std::mem::take(&mut all[place])).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_common::query::Draw;

    use super::*;

    /// Two chains of twelve parameters; the chains differ in parameter 10 and in no other.
    fn live(draws: u32) -> Live {
        let live = Live::new(2, 1);
        let noise = |i: u32, p: u32| f64::from((i * 7919 + p * 104_729) % 1000) / 500.0 - 1.0;
        let theta =
            |i: u32, chain: u32| (0..12).map(move |p| noise(2 * i + chain, p) + f64::from(3 * chain * u32::from(p == 10)));
        for i in 0..draws {
            live.take(&[0, 1].map(|chain| Draw {
                chain,
                warmup: false,
                theta: theta(i, chain).collect(),
                accepted: true,
                log_alpha: 0.0,
                iteration: u64::from(i),
            }));
        }
        live
    }

    #[test]
    fn the_parameters_that_mix_worst_are_reported_with_a_bounded_trace_of_each_chain() {
        let names: Vec<String> = (0..12).map(|p| format!("p{p}")).collect();
        let reply = traces(&live(3000), &names);
        assert_eq!((reply.parameters, reply.traces.len(), reply.warmup), (12, TRACED, false));
        let worst = reply.rhat.clone().unwrap();
        assert!(worst.parameter == "p10" && worst.value > 1.5, "{worst:?}");
        let least = reply.ess.clone().unwrap();
        assert!(least.parameter == "p10" && least.value > 0.0 && least.value < 20.0, "{least:?}");
        let shown: Vec<&str> = reply.traces.iter().map(|of| of.parameter.as_str()).collect();
        assert!(shown.contains(&"p10") && shown.is_sorted_by_key(|name| name[1..].parse::<u32>().unwrap()), "{shown:?}");
        for of in &reply.traces {
            assert!(of.chains.len() == 2 && of.chains.iter().all(|chain| chain.draws.len() == DRAWS));
        }
        let apart = reply.traces.iter().find(|of| of.parameter == "p10").unwrap();
        assert!((apart.mean - 1.5).abs() < 0.1 && apart.sd > 1.4, "{apart:?}");
    }

    #[test]
    fn little_is_known_of_few_draws() {
        assert_eq!(traces(&Live::new(2, 1), &["a".to_owned()]), TracesReply::default());
        let reply = traces(&live(1), &["a".to_owned()]);
        assert_eq!((reply.rhat, reply.ess, reply.traces.len()), (None, None, 1));
        assert!(reply.traces[0].rhat.is_nan() && reply.traces[0].mean.is_finite() && reply.traces[0].chains[0].draws.len() == 1);
    }
}
