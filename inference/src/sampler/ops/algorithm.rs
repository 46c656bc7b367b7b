//! One posterior sample as a state machine: a search for the mode if the job makes one, then a choice for every draw.

use rand_chacha::ChaCha20Rng;

use super::CandidateLaw;
use super::price::{Choice, ChoicePrice, affordable, choice_too_expensive, generator, most_units};
use crate::sampler::search::Search;
use crate::sampler::{ChoiceDiagnostics, Messages, Next, RunReport, Sampler, SamplerError, Target, Totals, centred_records};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, QueryTerms, Round};
use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter};

/// The sampler of `algorithm = "ops"`.
pub(crate) struct Ops {
    target: Target,
    party: PartyMetadata,
    /// The job's charges, as its party's ledger counts them.
    filter: PrivacyFilter,
    search: Option<Search>,
    /// `None` before the search has ended.
    law: Option<CandidateLaw>,
    rng: ChaCha20Rng,
    messages: Messages,
    /// The pending choice.
    asked: Option<Choice>,
    /// Prices of the choices so far.
    made: Vec<ChoicePrice>,
    by_budget: bool,
    draws: Vec<Draw>,
}

impl Ops {
    /// Returns the sampler before its first round. Errors: the budget is too small for a choice; a search needs a count of
    /// records that is neither public nor guessed; a budget or scale is out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let [party] = parties else { return Err(SamplerError::Records { expected: 1, got: parties.len() }) };
        affordable(spec, *party)?;
        let target = Target::new(spec);
        let search = if spec.sampler.locate_share > 0.0 { Search::new(&target, parties)?.0 } else { None };
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

    /// Prepares the next choice, unless all are made or the budget is too small for another.
    fn choose(&mut self, law: &CandidateLaw) -> Result<(), SamplerError> {
        if self.made.len() as u64 >= self.target.spec.sampler.draws {
            return Ok(());
        }
        let choice = Choice::new(&self.target, self.party, law, &mut self.rng)?;
        let left = most_units(&self.target.spec, self.filter.remaining().units);
        if choice.price.units > left {
            self.by_budget = true;
            return if self.made.is_empty() { Err(choice_too_expensive(choice.price, left)) } else { Ok(()) };
        }
        self.messages.ask(Phase::Sampling, vec![choice.query.clone()]);
        self.asked = Some(choice);
        Ok(())
    }

    /// Adds the cost of a round to the charges.
    fn charge(&mut self, round: &Round) -> Result<(), SamplerError> {
        let Target { spec, model, .. } = &self.target;
        let mut releases = Vec::with_capacity(round.queries.len());
        for query in &round.queries {
            let points = (query.from.as_slice(), query.to.as_slice());
            let terms = QueryTerms::new(model.as_ref(), spec, self.party.unit(), query.kind, points)?;
            releases.push(Priced::new(query.kind, terms.sensitivity(), query.noise, Honest::ALONE));
        }
        // The party has granted the charges, or there would be no answer.
        let _ = self.filter.try_charge(&releases);
        Ok(())
    }

    fn drawn(&mut self, choice: Choice, totals: &Totals) -> Result<(), SamplerError> {
        let theta = choice.drawn(totals)?;
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
            let centred = centred_records(&[self.party]);
            let ratio = |(query, total): (&Query, &[i128])| self.target.log_ratio(centred, query, total.iter().sum());
            let ratios: Vec<f64> = round.queries.iter().zip(totals.by_query()).map(ratio).collect();
            match search.absorb(&self.target, (&round, totals), &ratios)? {
                Some(result) => self.law = Some(CandidateLaw::of_search(result)),
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
        let greatest = |of: fn(&ChoicePrice) -> f64| self.made.iter().map(of).fold(0.0, f64::max);
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
            "an explicit clip limits a record's contribution to each candidate's weight, and its effect is not measured: if it is active, the draws follow \
             another posterior"
                .to_owned()
        });
        clipped.into_iter().collect()
    }
}
