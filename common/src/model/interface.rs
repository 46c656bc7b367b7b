//! The interface of a statistical model: public bounds on one record's log ratio, and sums of ratios on
//! the lattice.

use super::exponential_family::ExponentialFamily;
use super::outcome_table::OutcomeTable;
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::table::Tables;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::step::Step;

/// A statistical model whose log likelihood ratios can be summed on the lattice.
pub trait Model: Send + Sync {
    /// Parameter names in the order of every `theta`.
    fn parameter_names(&self) -> &[String];

    /// What one record's log ratio can be over the declared column bounds; swapping the arguments
    /// negates it bit for bit.
    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange;

    /// The public bound on one record's `|log p(y | to) - log p(y | from)|` over the declared column
    /// bounds, in log-likelihood units.
    ///
    /// Rounded outward, and symmetric in its arguments bit for bit. `+inf` where there is none.
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).bound()
    }

    /// The public centre of one record's log ratio, in log-likelihood units; 0 where there is no bound.
    ///
    /// Antisymmetric bit for bit: swapping the arguments negates it.
    fn centre(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).centre()
    }

    /// The public bound on one record's `|log p(y | to) - log p(y | from) - centre|`; as [`Model::bound`].
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).half_range()
    }

    /// The model as an exponential family, where it is one (Algorithm 3).
    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        None
    }

    /// The model's gradients, information and second moments, where they can be released.
    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        None
    }

    /// The contingency tables that are sufficient for theta, where the model is of categorical columns alone.
    fn tables(&self) -> Option<Tables> {
        None
    }

    /// The table of outcome and predictors, where it determines the likelihood given the predictors and has so few cells that less
    /// is lost to noise than from gradients.
    fn outcome_table(&self) -> Option<OutcomeTable> {
        None
    }

    /// Per parameter, the largest Fisher information that one record can carry within the declared
    /// column bounds about the parameter on its unconstrained scale: the parameter itself where it is
    /// real, its log where it is positive, its log odds where it is a probability, a log ratio where it
    /// is part of a simplex (see [`crate::parameter::Constraint`]).
    ///
    /// It sizes the search for the mode. Where there is no supremum it is a generous figure, which the
    /// model's document gives.
    fn information_bound(&self) -> Vec<f64>;

    /// The lattice sums of several steps over one block of a shard, in one pass over it.
    ///
    /// A step's clamp holds each record's lattice value. Where the data have persons, it clamps
    /// each person's sum instead, and a record's value is clamped to its share of it, the sensitivity
    /// over the most records of a person.
    ///
    /// Each unit's contribution is odd in the step: swapping `from` and `to` negates it exactly.
    ///
    /// # Panics
    /// When the data do not have the model's columns, or [`conclave_privacy::mechanism::sum_fits`] does not hold.
    /// Both are checked by callers, the second for the shard that the block is of, and depend on public
    /// values only.
    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum>;

    /// The lattice sums of several steps over a shard in memory; see [`Model::block_sums`].
    fn lattice_sums(&self, data: &ModelData, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        if let Some(persons) = &data.persons {
            assert_eq!(persons.records(), data.outcome.len(), "every record is some person's");
        }
        self.block_sums(&Block::lent(data), steps)
    }

    /// The lattice sum of one step; see [`Model::lattice_sums`].
    fn lattice_sum(&self, data: &ModelData, from: &[f64], to: &[f64], k_t: Sensitivity) -> LatticeSum {
        let mut sums = self.lattice_sums(data, &[Step::new(from, to, k_t)]);
        sums.pop().unwrap_or_else(|| unreachable!("one step gives one sum"))
    }

    /// The log likelihood of a shard in plain floating point, for references that need no privacy.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64;

    /// A draw mapped from the scale of the priors to the data's own units.
    fn to_original(&self, theta: &[f64]) -> Vec<f64>;
}
