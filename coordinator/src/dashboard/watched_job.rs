//! Progress of jobs that are being viewed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use conclave_common::job::JobSpec;
use conclave_common::query::Phase;
use conclave_pages::forecast::{Forecast, Pace, ProgressPoint};
use conclave_pages::target::Target;
use conclave_privacy::accounting::{PrivacyFilter, gaussian_dp, mu_squared};
use conclave_proto::v1::ParameterFigure;
use maud::Markup;

use crate::live::{Cached, CachedByKey, Live, traces};
use crate::status::{State, Status, phase_name};

/// Window of the pace estimate, in seconds.
const WINDOW: f64 = 60.0;

/// Viewed jobs: by id, page of parameters, and whether the job has ended.
pub(super) type WatchedJobs = CachedByKey<(String, usize, bool), WatchedJob>;

/// A viewed job.
#[derive(Debug)]
pub(super) struct WatchedJob {
    pub(super) drawn: Cached<Markup>,
    mixing: Cached<Mixing>,
    pace: Mutex<Pace>,
    begun: Instant,
}

impl Default for WatchedJob {
    fn default() -> Self {
        Self { drawn: Cached::default(), mixing: Cached::default(), pace: Mutex::new(Pace::new(WINDOW)), begun: Instant::now() }
    }
}

/// Pace of a job since it was first viewed; empty if the job is not running.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RunPace {
    /// Recent kept draws per chain and second.
    pub(super) draws_per_second: Option<f64>,
    /// Forecast of the end at the current pace.
    pub(super) forecast: Option<Forecast>,
    /// Effective draws, where they are the rule that will end the run.
    pub(super) target: Option<Target>,
    pub(super) delta: f64,
}

/// The worst figures of all parameters: least effective sample size and largest R-hat; `NaN` if not known.
type Mixing = (f64, f64);

impl WatchedJob {
    /// Returns how far the kept draws are from the job's own target; `None` for a job without one, or before its sampling.
    pub(super) async fn target(&self, status: &Status, spec: Option<&JobSpec>, live: Option<&Arc<Live>>) -> Option<Target> {
        let (spec, live) = (spec?, live?);
        let until = spec.sampler.until.filter(|_| status.state == State::Running && status.phase == Some(Phase::Sampling))?;
        let (live, names) = (Arc::clone(live), spec.draw_names());
        let mixing = self.mixing.get(move || {
            let reply = traces(&live, &names);
            let known = |figure: Option<ParameterFigure>| figure.filter(|_| !reply.warmup).map_or(f64::NAN, |of| of.value);
            (known(reply.ess.clone()), known(reply.rhat.clone()))
        });
        let (ess, rhat) = mixing.await.map_or((f64::NAN, f64::NAN), |mixing| *mixing);
        Some(Target { ess, rhat, ess_wanted: until.ess, rhat_wanted: until.rhat })
    }

    /// Records the job's progress and estimates its pace. `target` has the effective draws that will end the run.
    pub(super) fn progress(&self, status: &Status, spec: Option<&JobSpec>, target: Option<Target>) -> RunPace {
        let Some(budget) = spec.map(|spec| spec.privacy.budget) else { return RunPace::default() };
        let limit = PrivacyFilter::new(&budget).map_or(f64::INFINITY, |filter| mu_squared(filter.limit_units()));
        let spent = status.parties.iter().map(|party| party.spent.mu_squared()).collect();
        let phase = status.phase.filter(|_| status.state == State::Running).map(phase_name);
        let moment = ProgressPoint {
            at: self.begun.elapsed().as_secs_f64(),
            rounds: status.iteration,
            draws: status.draws,
            mu_squared: spent,
        };
        // Each point is added in one step, so a poisoned lock is harmless.
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.observe(phase, moment);
        let asked = target.map_or(status.draws_asked, |target| target.draws(status.draws, status.draws_asked));
        RunPace {
            target,
            draws_per_second: pace.draws_per_second(),
            forecast: pace.forecast(asked, &vec![limit; status.parties.len()]),
            delta: budget.delta,
        }
    }
}

impl RunPace {
    /// Forecast of a party's epsilon at the end of the job, if available.
    pub(super) fn epsilon_at_end(&self, party: usize) -> Option<f64> {
        self.forecast.as_ref()?.epsilon_at_end(party, |mu| gaussian_dp::epsilon(mu, self.delta))
    }
}
