//! Stage 2, priced: a message that passed the request checks and the owner's policy, with the public numbers that price each query.
//!
//! A query's price follows from its kind, its sensitivity and its noise scale. The ledger computes the charge from them in stage 3. No check
//! reads a record, so no refusal depends on one.

use conclave_common::job::JobSpec;
use conclave_common::model::Summand;
use conclave_common::query::{Query, QueryTerms};
use conclave_privacy::accounting::{Adjacency, Honest, PrivacyUnit, units_under_noise};
use conclave_privacy::mechanism::{Points, QueryKind, Sensitivity};
use conclave_proto::convert::AnswerStatus;

use super::masking::RoundMasks;
use super::received::{Message, Received, Resources};
use crate::config::Policy;
use crate::data::MAX_UNPUBLISHED_UNITS;
use crate::ledger::{QueryContent, QueryKey};

/// A query with the constants of its sum, and the key under which the ledger charges it.
pub(super) struct PricedQuery {
    query: Query,
    terms: QueryTerms,
    key: QueryKey,
}

/// A message whose queries passed every check before the charge.
pub(super) struct Priced<'j> {
    message: Message<'j>,
    queries: Vec<PricedQuery>,
}

impl<'j> Received<'j> {
    /// Checks and prices each query, then applies the owner's policy.
    ///
    /// # Errors
    /// [`AnswerStatus::Invalid`] for queries that this job may not ask, [`AnswerStatus::Policy`] for those that the owner does not admit.
    pub(super) fn price(self, resources: &Resources<'_>) -> Result<Priced<'j>, AnswerStatus> {
        let (message, queries) = self.into_parts();
        // Rounds are counted from 0; the ledger's integers are signed.
        if message.iteration > i64::MAX as u64 {
            return Err(AnswerStatus::Invalid);
        }
        if queries.len() > 1 && queries.iter().any(|query| query.kind.candidates().is_some()) {
            message.warn("a choice is asked by itself: its reply's delay is that of one");
            return Err(AnswerStatus::Invalid);
        }
        let price = |query| PricedQuery::new(query, &message, resources.unit);
        let queries = queries.into_iter().map(price).collect::<Result<Vec<_>, _>>()?;
        check_rounds(&message, &queries)?;
        check_policy(&message, &queries, resources.policy, resources.unit)?;
        Ok(Priced { message, queries })
    }
}

impl<'j> Priced<'j> {
    pub(super) fn into_parts(self) -> (Message<'j>, Vec<PricedQuery>) {
        (self.message, self.queries)
    }
}

impl PricedQuery {
    /// Checks a query against its job (dimension, parameter box, bound) and prices it.
    fn new(query: Query, message: &Message<'_>, unit: PrivacyUnit) -> Result<Self, AnswerStatus> {
        let Message { job, id, iteration, attempt, masks } = message;
        let (spec, chain) = (&job.spec, query.chain);
        let Query { kind, from, to, noise, .. } = &query;
        if !is_inside(spec, &query) {
            tracing::warn!(job = %id, iteration, chain, "outside the job's parameter box");
            return Err(AnswerStatus::Invalid);
        }
        let terms = QueryTerms::new(job.model.as_ref(), spec, unit, *kind, (from, to)).map_err(|e| {
            tracing::warn!(job = %id, iteration, chain, "{e}");
            AnswerStatus::Invalid
        })?;
        // The number of units is public under replacement. Under add-remove adjacency it is secret, and no refusal may depend on it.
        let units = if unit.adjacency == Adjacency::AddRemove { MAX_UNPUBLISHED_UNITS } else { job.records.blocks().units() };
        // The sum over all parties of a masked job is opened in 64 bits like one party's sum, so it has to fit, too.
        if !terms.sum_fits(units.saturating_mul(job.masking.members())) {
            tracing::warn!(job = %id, iteration, chain, "the step is too wide for a sum over the shard");
            return Err(AnswerStatus::Invalid);
        }
        let (k_t, s, iteration) = (terms.sensitivity(), *noise, *iteration);
        let masked = masks.as_ref().map(RoundMasks::masked);
        let content = QueryContent { job: id, spec_digest: &job.digest, iteration, chain, from, to, kind: *kind, k_t, s, masked };
        // The block that pays for a subsampled query; `None` for any other, which pays for itself.
        let block = spec.block_terms(*kind, unit, (k_t, s));
        let key = QueryKey { block, ..content.key(*attempt) };
        Ok(Self { query, terms, key })
    }

    pub(super) fn query(&self) -> &Query {
        &self.query
    }

    pub(super) fn terms(&self) -> &QueryTerms {
        &self.terms
    }

    /// Returns the integers that one unit contributes to the query's sum, bounded as `charged`, the sensitivity that was charged, allows.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] if the charged sensitivity is not that of the sum.
    pub(super) fn summand(&self, charged: Sensitivity) -> Result<Summand<'_>, AnswerStatus> {
        self.terms.summand(&self.query.from, &self.query.to, charged).map_err(|why| {
            tracing::error!("{why}");
            AnswerStatus::Halted
        })
    }

    /// Returns the identity of the query in the ledger, and the numbers that price it.
    pub(super) fn key(&self) -> &QueryKey {
        &self.key
    }
}

impl Message<'_> {
    fn warn(&self, why: &str) {
        tracing::warn!(job = %self.id, iteration = self.iteration, "{why}");
    }
}

/// Checks that a query's points lie in the job's parameter box.
fn is_inside(spec: &JobSpec, query: &Query) -> bool {
    let Query { kind, from, to, .. } = query;
    // The midpoint of a gradient-driven step may lie slightly outside the box, even if both end points lie inside.
    let may_lie_outside = spec.algorithm.follows_gradients();
    let near = |theta: &[f64]| spec.in_support(theta) || (may_lie_outside && spec.in_wider_support(theta));
    match kind.points() {
        Points::None => true,
        Points::OneOrNone => from.is_empty() || near(from),
        Points::One | Points::Candidates => near(from),
        Points::Three => match from.chunks_exact(spec.dimension()).collect::<Vec<_>>()[..] {
            [theta, between, to] => spec.in_support(theta) && near(between) && spec.in_support(to),
            _ => false,
        },
        // The weights of records may follow theta'.
        Points::Two => spec.in_support(from) && spec.in_support(&to[..to.len().min(from.len())]),
    }
}

/// Checks a job that releases once against the limits that its owner approved: a number of rounds, and each kind of query once in a
/// round, a table whatever its size.
/// The reply delay was measured on such rounds. Any other job passes.
fn check_rounds(message: &Message<'_>, queries: &[PricedQuery]) -> Result<(), AnswerStatus> {
    let Some(most) = message.job.most_rounds else { return Ok(()) };
    if message.iteration >= most {
        message.warn(&format!("the job asks in {most} rounds at most"));
        return Err(AnswerStatus::Invalid);
    }
    let mut kinds = queries.iter().enumerate().map(|(at, priced)| (at, priced.query.kind));
    let is_same = |a: QueryKind, b: QueryKind| a == b || matches!((a, b), (QueryKind::Table { .. }, QueryKind::Table { .. }));
    if let Some((_, twice)) = kinds.find(|(at, kind)| queries[..*at].iter().any(|earlier| is_same(earlier.query.kind, *kind))) {
        message.warn(&format!("a {twice} is asked twice in one round"));
        return Err(AnswerStatus::Invalid);
    }
    Ok(())
}

/// Checks a message against the owner's policy: the number of rounds, the least noise, the kinds of release.
fn check_policy(message: &Message<'_>, queries: &[PricedQuery], policy: &Policy, unit: PrivacyUnit) -> Result<(), AnswerStatus> {
    let honest = message.job.trusted;
    if policy.max_iterations_per_job.is_some_and(|most| message.iteration >= most) {
        message.warn("the job has made the rounds that max_iterations_per_job allows");
        return Err(AnswerStatus::Policy);
    }
    let highest_cost = units_under_noise(policy.min_noise_multiplier);
    let has_too_little_noise = |priced: &PricedQuery| {
        let PricedQuery { query, key, .. } = priced;
        match query.kind.has_minimum_noise() {
            true => protecting_sd(query.kind.noise_sd(query.noise), honest) < policy.min_noise_sd,
            // A cost beyond the ledger's integers exceeds every limit.
            false => !key.priced.under(honest).cost(unit).is_ok_and(|cost| cost.units <= highest_cost),
        }
    };
    if queries.iter().any(has_too_little_noise) {
        message.warn("asked with less noise than min_noise_sd or min_noise_multiplier admits");
        return Err(AnswerStatus::Policy);
    }
    if let Some(priced) = queries.iter().find(|priced| !policy.admits(priced.query.kind)) {
        message.warn(&format!("policy.releases does not admit a {}", priced.query.kind));
        return Err(AnswerStatus::Policy);
    }
    Ok(())
}

/// Returns the standard deviation of the noise in an opened sum to which `honest` parties each add noise of standard deviation `sd`.
pub(super) fn protecting_sd(sd: f64, honest: Honest) -> f64 {
    sd * f64::from(honest.get()).sqrt()
}
