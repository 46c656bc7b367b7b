//! The posterior without privacy, as expected before the first query: its possible locations, and its width in each coordinate
//! given the others.

use super::design::{Case, FIFTH, predictor_moments};
use super::expected_family::place;
use super::family::Family;
use super::family_strategy::family;
use super::starting_point::log_of_middle;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::schema::{Family as Regressions, ModelSpec, Regression};

/// Step of the numerical derivative of the shares with respect to a coordinate.
const MOVED: f64 = 1e-4;

/// A possible location of the posterior, and its width there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Beforehand {
    pub(crate) theta: Vec<f64>,
    /// Sd of the posterior in each coordinate given the others, on the unconstrained scale.
    pub(crate) sd: Vec<f64>,
}

/// Returns one or two expected locations for this number of records. The first is the prior's centre. For counts in the best
/// case, the second has the mean in the middle of the declared range, where a count carries more information.
pub(crate) fn beforehand(spec: &JobSpec, records: f64, case: Case) -> Vec<Beforehand> {
    let target = Target::new(spec);
    let centre = target.space.theta_inside(spec, &target.space.location);
    let at = |theta: Vec<f64>| {
        let information = information(&target, &theta, case).into_iter().zip(&target.space.precision);
        let sd = information.map(|(one, prior)| (spec.power * records * one + prior).max(f64::MIN_POSITIVE).sqrt().recip());
        Beforehand { sd: sd.collect(), theta }
    };
    match &spec.model {
        ModelSpec::Regression(regression) => {
            let start = with_scatter(&target, regression, centre, case);
            let middle = log_of_middle(spec).filter(|_| case == Case::Best);
            let moved = middle.map(|middle| std::iter::once(middle).chain(start[1..].iter().copied()).collect::<Vec<f64>>());
            let inside = |theta: Vec<f64>| target.space.theta_inside(spec, &target.space.coordinates(&theta));
            std::iter::once(start).chain(moved.map(inside)).map(at).collect()
        }
        _ => vec![at(family(&target).map_or(centre, |law| place(&target, law, case)))],
    }
}

/// Returns one record's information about each coordinate given the others.
fn information(target: &Target, theta: &[f64], case: Case) -> Vec<f64> {
    match &target.spec.model {
        ModelSpec::Regression(regression) => of_regression(target, regression, theta, case),
        _ => match family(target) {
            Some(Family::Bernoulli) => vec![theta[0] * (1.0 - theta[0])],
            Some(Family::PoissonMean { .. }) => vec![theta[0]],
            Some(Family::GaussianMean { sd, .. }) => vec![1.0 / (sd * sd)],
            Some(Family::Multinomial) => of_shares(target, theta),
            None => {
                let part = if case == Case::Best { 1.0 } else { FIFTH * FIFTH };
                let bound = target.model.information_bound();
                // A tempered model's bound includes its power, which the caller multiplies in.
                target.space.parameters.iter().map(|parameter| part * bound[*parameter] / target.spec.power).collect()
            }
        },
    }
}

fn of_regression(target: &Target, regression: &Regression, theta: &[f64], case: Case) -> Vec<f64> {
    let moments = predictor_moments(&regression.design, &target.spec.columns, case).diagonal_entries();
    let [of_predictor, of_own] = match (regression.family, theta.last(), target.model.scores()) {
        (Regressions::Linear { sd: None }, Some(sigma), _) => [1.0 / (sigma * sigma), 2.0],
        (Regressions::Linear { sd: Some(sd) }, ..) => {
            let sigma = sd / half_width(target, regression);
            [1.0 / (sigma * sigma), 0.0]
        }
        // A tempered model's scores include its power, which the caller multiplies in.
        (_, _, Some(scores)) => scores.most_expected(theta).map(|most| most / target.spec.power),
        (_, _, None) => [1.0; 2],
    };
    let own = theta.len() - moments.len();
    moments.into_iter().map(|square| of_predictor * square).chain(std::iter::repeat_n(of_own, own)).collect()
}

/// Returns the shares' information about each stick, with all the others fixed.
fn of_shares(target: &Target, theta: &[f64]) -> Vec<f64> {
    let u = target.space.coordinates(theta);
    let one = |j: usize| {
        let moved = |by: f64| {
            let mut moved = u.clone();
            moved[j] += by;
            target.space.theta(&moved)
        };
        let (up, down) = (moved(MOVED), moved(-MOVED));
        let slopes = up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * MOVED));
        slopes.zip(theta).map(|(slope, share)| slope * slope / share).sum()
    };
    (0..u.len()).map(one).collect()
}

/// Sets the scatter of the case in theta. For a linear regression with unknown scatter it is the largest that the outcome's
/// bounds allow, or a fifth of it.
fn with_scatter(target: &Target, regression: &Regression, mut theta: Vec<f64>, case: Case) -> Vec<f64> {
    let half = target.model.scores().and_then(|scores| scores.moments_outcome()).map_or(1.0, |(_, half)| half);
    if let (Regressions::Linear { sd: None }, Some(sigma), Some(within)) =
        (regression.family, theta.last_mut(), target.spec.support.last())
    {
        let most = within.max.min(half);
        *sigma = if case == Case::Best { most } else { sigma.min(FIFTH * most) }.clamp(within.min, within.max);
    }
    theta
}

fn half_width(target: &Target, regression: &Regression) -> f64 {
    target.spec.columns.get(&regression.outcome).map_or(1.0, conclave_common::schema::ColumnSpec::half_width)
}
