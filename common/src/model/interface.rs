//! The interface of a statistical model: public bounds on one record's log ratio, and the kernels of its sums.

use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::life_table::LifeTable;
use super::outcome_table::OutcomeTable;
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::table::Tables;
use super::times_table::TimesTable;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::data::ModelData;

/// A statistical model whose log likelihood ratios can be summed on the lattice. It gives kernels to passes and sees no sum.
pub trait Model: Send + Sync {
    /// Returns the parameter names in the order of `theta`.
    fn parameter_names(&self) -> &[String];

    /// Returns the range of one record's log ratio over the declared column bounds. Swapping the arguments negates it bit for
    /// bit.
    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange;

    /// Returns the public bound on one record's `|log p(y | to) - log p(y | from)|` over the declared column bounds, in
    /// log-likelihood units.
    ///
    /// It is rounded outward, and symmetric in its arguments bit for bit. `+inf` if there is none.
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).bound()
    }

    /// Returns the public centre of one record's log ratio, in log-likelihood units; 0 if there is no bound.
    ///
    /// It is antisymmetric bit for bit: swapping the arguments negates it.
    fn centre(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).centre()
    }

    /// Returns the public bound on one record's `|log p(y | to) - log p(y | from) - centre|`; as [`Model::bound`].
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).half_range()
    }

    /// Returns the model as an exponential family, if it is one (Algorithm 3).
    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        None
    }

    /// Returns the bounded statistic that a job of this model may release: that of the exponential family, or sums from which whole
    /// records are imputed.
    fn statistic(&self) -> Option<&dyn BoundedStatistic> {
        self.exponential_family().map(|family| family as &dyn BoundedStatistic)
    }

    /// Returns the model's gradients, information and second moments, if they can be released.
    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        None
    }

    /// Returns the contingency tables that are sufficient for theta, if all columns of the model are categorical.
    fn tables(&self) -> Option<Tables> {
        None
    }

    /// Returns the table of outcome and predictors if it determines the likelihood given the predictors, and if it has at most
    /// `most` cells and [`OutcomeTable::MOST_CELLS`].
    fn outcome_table(&self, _most: usize) -> Option<OutcomeTable> {
        None
    }

    /// Returns the model's life table, if it is one: the counts that determine its likelihood.
    fn life_table(&self) -> Option<&LifeTable> {
        None
    }

    /// Returns the histogram of times and events, if the model is of survival times.
    fn times_table(&self) -> Option<TimesTable> {
        None
    }

    /// Returns, for each parameter, the largest Fisher information of one record within the declared column bounds.
    ///
    /// The information is about the parameter on its unconstrained scale: the parameter itself if it is real, its log if it is
    /// positive, its log odds if it is a probability, a log ratio if it is part of a simplex (see
    /// [`crate::parameter::Constraint`]). It sizes the search for the mode. If the information is unbounded, a generous value is
    /// used, which the model's documentation states.
    fn information_bound(&self) -> Vec<f64>;

    /// Gives a pass the kernel of the log ratios of its steps.
    ///
    /// A step's clamp bounds each record's lattice value. If the data have persons, it bounds each person's sum instead, and a
    /// record's value is clamped to its share, the sensitivity divided by the maximum number of records per person.
    ///
    /// Each unit's contribution is odd in the step: swapping `from` and `to` negates it exactly.
    ///
    /// # Panics
    /// If the data lack the model's columns, or if [`conclave_privacy::mechanism::sum_fits`] does not hold for the whole shard.
    /// Callers check both, and both depend on public values only.
    fn ratio_kernel(&self, pass: BlockPass<'_>);

    /// Returns the log likelihood of a shard in floating point, for references without privacy.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64;

    /// Returns a draw, mapped from the scale of the priors to the data's units.
    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        theta.to_vec()
    }
}
