//! One posterior sample as a state machine: a search for the mode where the job makes one, then a choice for every draw.

use rand_chacha::ChaCha20Rng;

use super::candidates::CandidateLaw;
use super::price::{Choice, affordable, generator, most_units, too_dear};
use super::search::Search;
use crate::sampler::choices::ChoiceDiagnostics;
use crate::sampler::error::SamplerError;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::report::RunReport;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, Phase, Round};
use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter};

/// The sampler of `algorithm = "ops"`.
pub(crate) struct Ops {
    target: Target,
    party: PartyMetadata,
    /// What the job has spent, as its party's ledger counts it.
    filter: PrivacyFilter,
    search: Option<Search>,
    /// None before the search is over.
    law: Option<CandidateLaw>,
    rng: ChaCha20Rng,
    messages: Messages,
    /// The places of the choice being asked.
    asked: Option<Choice>,
    /// Of the choices made so far.
    made: Vec<super::price::ChoicePrice>,
    by_budget: bool,
    draws: Vec<Draw>,
}

impl Ops {
    /// The sampler at its start.
    ///
    /// # Errors
    /// A budget that holds no choice; a count that a search needs and nobody gives; a budget or scale out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let [party] = parties else { return Err(SamplerError::Records { expected: 1, got: parties.len() }) };
        affordable(spec, *party)?;
        let target = Target::new(spec);
        let search = Search::new(&target, parties)?;
        Ok(Self {
            party: *party,
            filter: PrivacyFilter::new(&spec.privacy.budget.of(party.unit()))?,
            law: search.is_none().then(|| CandidateLaw::of_prior(&target)),
            search,
            rng: generator(spec),
            messages: Messages::new(spec),
            asked: None,
            made: Vec::new(),
            by_budget: false,
            draws: Vec::new(),
            target,
        })
    }

    /// Makes the next choice ready to ask, unless all are made or the budget holds no more.
    fn choose(&mut self, law: &CandidateLaw) -> Result<(), SamplerError> {
        if self.made.len() as u64 >= self.target.spec.sampler.draws {
            return Ok(());
        }
        let choice = Choice::new(&self.target, self.party, law, &mut self.rng)?;
        let left = most_units(&self.target.spec, self.filter.remaining_units());
        if choice.price.units > left {
            self.by_budget = true;
            return if self.made.is_empty() { Err(too_dear(choice.price, left)) } else { Ok(()) };
        }
        self.messages.ask(Phase::Sampling, vec![choice.query.clone()]);
        self.asked = Some(choice);
        Ok(())
    }

    /// Takes note of what a round has cost.
    fn charge(&mut self, round: &Round) -> Result<(), SamplerError> {
        let Target { spec, model, .. } = &self.target;
        let mut releases = Vec::with_capacity(round.queries.len());
        for query in &round.queries {
            let points = (query.from.as_slice(), query.to.as_slice());
            let terms = QueryTerms::new(model.as_ref(), spec, self.party.unit(), query.kind, points)?;
            releases.push(Priced::new(query.kind, terms.sensitivity(), query.noise, Honest::ALONE));
        }
        // Its party has granted them, or there would be no answer.
        let _ = self.filter.try_charge(&releases);
        Ok(())
    }

    fn drawn(&mut self, choice: Choice, totals: &Totals) -> Result<(), SamplerError> {
        let answer = totals.components().first().and_then(|number| usize::try_from(*number).ok());
        let theta = answer.and_then(|number| choice.places.get(number));
        let theta = theta.ok_or(SamplerError::Shape("no candidate has the number that was answered"))?.clone();
        self.made.push(choice.price);
        let iteration = self.messages.last();
        self.draws.push(Draw { chain: 0, warmup: false, theta, accepted: true, log_alpha: 0.0, iteration });
        Ok(())
    }
}

impl Sampler for Ops {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if self.messages.pending().is_none() && !self.by_budget {
            match (self.law.take(), &mut self.search) {
                (Some(law), _) => {
                    let asked = self.choose(&law);
                    self.law = Some(law);
                    asked?;
                }
                (None, Some(search)) => {
                    let queries = search.queries(&self.target)?;
                    self.messages.ask(Phase::Locate, queries);
                }
                (None, None) => return Err(SamplerError::NoRound),
            }
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        self.charge(&round)?;
        if let Some(choice) = self.asked.take() {
            return self.drawn(choice, totals);
        }
        if let Some(mut search) = self.search.take() {
            match search.absorb(&self.target, self.party, (&round, totals))? {
                Some(law) => self.law = Some(law),
                None => self.search = Some(search),
            }
        }
        Ok(())
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    fn phase(&self) -> Phase {
        if self.law.is_some() { Phase::Sampling } else { Phase::Locate }
    }

    fn ended_by_budget(&self) -> bool {
        self.by_budget
    }

    fn report(&self) -> RunReport {
        let greatest = |of: fn(&super::price::ChoicePrice) -> f64| self.made.iter().map(of).fold(0.0, f64::max);
        let ops = self.made.last().map(|last| ChoiceDiagnostics {
            candidates: last.candidates,
            draws: self.made.len() as u64,
            range: greatest(|price| price.range),
            mu_per_draw: greatest(|price| price.mu),
        });
        RunReport { ops, ..RunReport::default() }
    }

    fn warnings(&self) -> Vec<String> {
        let clipped = self.target.spec.privacy.clip.is_some().then(|| {
            "an explicit clip holds what a record adds to each candidate's weight, and nothing counts what it cuts: where it bites, draws are of \
             another posterior"
                .to_owned()
        });
        clipped.into_iter().collect()
    }
}
