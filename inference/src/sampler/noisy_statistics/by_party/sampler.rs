//! The sampler of jobs with parameters by party: rounds in which every party is asked at points of its own, then draws.

use std::collections::VecDeque;

use super::checks::Released;
use super::factor::Factor;
use super::hierarchy::Hierarchy;
use super::posterior::Posterior;
use super::site::Site;
use crate::sampler::error::SamplerError;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::noisy_statistics::answer::{Inference, Stage};
use crate::sampler::noisy_statistics::refit::{RefitError, Refitted, RetainedCoefficients};
use crate::sampler::noisy_statistics::refittable::Refittable;
use crate::sampler::noisy_statistics::search::Prospect;
use crate::sampler::report::RunReport;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query};

/// Repetitions by which the parties' factors and what each says of the others agree.
const REPETITIONS: usize = 4;

/// The sampler.
pub(crate) struct ByParty {
    /// The job with the space of the means and the shared parameters.
    target: Target,
    hierarchy: Hierarchy,
    sites: Vec<Site>,
    /// Each party's factor by its releases so far; empty before the first round.
    factors: Vec<Factor>,
    /// Typical sds over the parties, by the releases so far.
    sds: Vec<f64>,
    messages: Messages,
    stages: Vec<Stage>,
    left: f64,
    released: bool,
    draws: VecDeque<Draw>,
    inference: Option<Inference>,
    acceptance: Option<f64>,
}

impl ByParty {
    /// Returns the sampler before its first round; `parties` in the job's order.
    ///
    /// # Errors
    /// The model has no scores; a budget is out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let hierarchy = Hierarchy::new(&target.space, spec.varying());
        let sds = hierarchy.central_sds();
        let prior = hierarchy.beside(std::iter::empty(), &sds);
        let site = |(at, metadata): (usize, &PartyMetadata)| Site::new(spec, at, *metadata, &prior);
        let sites = parties.iter().enumerate().map(site).collect::<Result<_, _>>()?;
        Ok(Self {
            messages: Messages::new(spec),
            target,
            hierarchy,
            sites,
            factors: Vec::new(),
            sds,
            stages: Vec::new(),
            left: 1.0,
            released: false,
            draws: VecDeque::new(),
            inference: None,
            acceptance: None,
        })
    }

    /// Joins the parties' factors, and gives each party's search the prior that the others' imply.
    fn join(&mut self) -> Result<(), SamplerError> {
        let factors: Option<Vec<Factor>> = self.sites.iter().map(Site::factor).collect::<Result<_, _>>()?;
        let Some(factors) = factors else { return Ok(()) };
        self.sds = Posterior { hierarchy: &self.hierarchy, factors: &factors }.typical_sds();
        for (at, site) in self.sites.iter_mut().enumerate() {
            let others = factors.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, factor)| factor);
            site.set_prior(&self.hierarchy.beside(others, &self.sds))?;
        }
        self.factors = factors;
        Ok(())
    }

    /// Chooses every party's next stage. All parties continue together: none has its last stage before every other may.
    fn choose(&mut self) -> Result<(), SamplerError> {
        let prospects: Option<Vec<Prospect>> = self.sites.iter().map(Site::prospect).collect::<Result<_, _>>()?;
        let Some(prospects) = prospects else { return Ok(()) };
        let found = prospects.iter().all(Prospect::is_found);
        for (site, prospect) in self.sites.iter_mut().zip(prospects) {
            site.follow(if found { prospect } else { prospect.unfound() });
        }
        Ok(())
    }

    /// Records the means and shared parameters after a stage.
    fn record(&mut self, last: bool) {
        let given = self.hierarchy.given(self.factors.iter(), &self.sds);
        let left = self.sites.iter().map(Site::left).fold(1.0, f64::min);
        let sd = given.precision.inverse().diagonal_entries().into_iter().map(|v| v.max(0.0).sqrt()).collect();
        let mean = self.target.space.theta_inside(&self.target.spec, &given.mean);
        self.stages.push(Stage { theta: Vec::new(), share: self.left - left, mean, sd, last });
        self.left = left;
    }

    fn draw(&mut self) -> Result<(), SamplerError> {
        let posterior = Posterior { hierarchy: &self.hierarchy, factors: &self.factors };
        let (draws, acceptance) = posterior.draw(&self.target, self.messages.last()).ok_or(SamplerError::NoPlace)?;
        let released = Released {
            spec: &self.target.spec,
            hierarchy: &self.hierarchy,
            sites: &self.sites,
            factors: &self.factors,
            sds: &self.sds,
        };
        self.inference = released.inference(self.stages.clone());
        self.draws.extend(draws);
        self.acceptance = Some(acceptance);
        Ok(())
    }
}

impl Refittable for ByParty {
    fn released(&self) -> bool {
        self.released
    }

    /// Repeats the join of the releases under other priors, or of fewer parties.
    fn refit(&self, spec: &JobSpec) -> Result<Refitted, RefitError> {
        let own = &self.target.spec;
        let kept = RetainedCoefficients::of(own, &JobSpec { parties: own.parties.clone(), ..spec.clone() })?;
        if !kept.all {
            return Err(RefitError::DroppedFromScores);
        }
        let varying = |spec: &JobSpec| spec.varying().iter().map(|site| site.index).collect::<Vec<_>>();
        let place = |party: &String| own.parties.iter().position(|name| name == party);
        let places: Vec<usize> = spec.parties.iter().map(place).collect::<Option<_>>().ok_or(RefitError::OtherModel)?;
        if varying(own) != varying(spec) || self.factors.is_empty() {
            return Err(if self.factors.is_empty() { RefitError::NothingReleased } else { RefitError::OtherModel });
        }
        let target = Target::new(spec);
        let mut refitted = Self {
            hierarchy: Hierarchy::new(&target.space, spec.varying()),
            sites: places.iter().map(|at| self.sites[*at].again()).collect(),
            factors: places.iter().map(|at| self.factors[*at].clone()).collect(),
            sds: self.sds.clone(),
            messages: self.messages.again(),
            stages: self.stages.clone(),
            left: self.left,
            released: self.released,
            draws: VecDeque::new(),
            inference: None,
            acceptance: None,
            target,
        };
        let same =
            own.parties == spec.parties && own.priors == spec.priors && own.support == spec.support && own.sites == spec.sites;
        if !same {
            for _ in 0..REPETITIONS {
                refitted.join()?;
            }
            refitted.stages.truncate(0);
            refitted.record(true);
        }
        refitted.draw()?;
        let mut inference = refitted.inference.ok_or(RefitError::NothingReleased)?;
        if !self.released {
            inference.end_early();
        }
        Ok(Refitted { draws: refitted.draws.into(), inference })
    }
}

impl Sampler for ByParty {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if self.released {
            return Ok(Next::Done);
        }
        if self.messages.pending().is_none() {
            let apart: Vec<Vec<Query>> = self.sites.iter_mut().map(Site::ask).collect::<Result<_, _>>()?;
            self.messages.ask_apart(Phase::Locate, apart)?;
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        for (at, site) in self.sites.iter_mut().enumerate() {
            site.take(&round, round.queries_of(at), totals.opened(at))?;
        }
        self.join()?;
        self.choose()?;
        self.released = self.sites.iter().all(Site::is_done);
        if self.released {
            for _ in 0..REPETITIONS {
                self.join()?;
            }
        }
        let is_stage = round.queries.len() > 1;
        if is_stage || self.released {
            self.record(self.released);
        }
        if self.released { self.draw() } else { Ok(()) }
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        self.draws.drain(..).collect()
    }

    fn phase(&self) -> Phase {
        if self.released { Phase::Sampling } else { Phase::Locate }
    }

    fn acceptance_rate(&self) -> Option<f64> {
        self.acceptance
    }

    fn conclude(&mut self) -> Result<(), SamplerError> {
        if self.released || self.factors.is_empty() {
            return Ok(());
        }
        self.released = true;
        self.draw()?;
        if let Some(inference) = &mut self.inference {
            inference.end_early();
        }
        Ok(())
    }

    fn report(&self) -> RunReport {
        RunReport { inference: self.inference.clone(), ..RunReport::default() }
    }
}
