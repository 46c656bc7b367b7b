//! The chains of a job on what its parties have released.

use std::sync::Arc;

use super::chain::{Chain, Start, Sweep};
use super::conditional::Conditional;
use super::law::RecordLaw;
use super::line_law::{Line, LineLaw};
use super::linear_law::{Covariates, LinearLaw};
use super::noise::{Noise, Residuals};
use super::records::Count;
use super::release::{PartyRelease, Release};
use super::start;
use super::table_law::TableLaw;
use crate::mechanism::{NoiseScale, QueryKind};
use crate::parameter::Prior;
use crate::sampler::error::SamplerError;
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;
use crate::schema::{ColumnSpec, Family, ModelSpec, Regression};

/// A party's release, of no record yet, and its number of records.
type Party = (Residuals, Count);

/// All chains; `release` has learnt the totals of these releases.
///
/// # Errors
/// A model that augmentation is not for; releases that do not fit it.
pub(super) fn chains(
    target: &Arc<Target>,
    release: &Release,
    noise: NoiseScale,
    parties: &[PartyRelease],
) -> Result<Vec<Box<dyn Sweep>>, SamplerError> {
    let party = |party: &PartyRelease| {
        let start = release.count(party);
        let count = party.records.map_or(Count::Unknown { start }, Count::Known);
        let noise = vec![Noise::DiscreteGaussian { scale: noise.units() }; party.answers.len()];
        let residuals = Residuals::new(&party.answers, &noise).ok_or(SamplerError::Shape("a release of no component"))?;
        Ok((residuals, count))
    };
    let parties = parties.iter().map(party).collect::<Result<Vec<_>, SamplerError>>()?;
    let statistic = match release {
        Release::Tables(tables) => {
            let unit = QueryKind::COUNT_UNIT as i64;
            let law = TableLaw::new(tables.classes(), tables.levels(), concentrations(&target.spec.priors), unit, true);
            return Ok(build_at_prior(target, law, 0.0, &parties));
        }
        Release::Statistic(statistic) => statistic,
    };
    let spec = &target.spec;
    let line = |line: Line| -> Result<_, SamplerError> {
        let law = LineLaw::new(line, spec.priors[0], statistic.grids[0], spec.build_model());
        Ok(build(target, law, start::around(target, &statistic.mode(target)?), &parties))
    };
    match &spec.model {
        ModelSpec::Bernoulli { .. } => line(Line::Bernoulli),
        ModelSpec::PoissonMean { outcome } => line(Line::Poisson(column(target, outcome)?)),
        ModelSpec::GaussianMean { outcome, sd } => line(Line::Gaussian { sd: sd / column(target, outcome)?.half_width() }),
        ModelSpec::Regression(regression) => linear(target, regression, statistic, &parties),
        _ => Err(SamplerError::NoRecordLaw(spec.model.kind())),
    }
}

/// Chains of a linear regression of known error.
fn linear(
    target: &Arc<Target>,
    regression: &Regression,
    statistic: &ReleasedStatistic,
    parties: &[Party],
) -> Result<Vec<Box<dyn Sweep>>, SamplerError> {
    let refused = || SamplerError::NoRecordLaw(target.spec.model.kind());
    let Family::Linear { sd: Some(sd) } = regression.family else { return Err(refused()) };
    let sd = sd / column(target, &regression.outcome)?.half_width();
    let law = LinearLaw::new(sd, regression.design.intercept, &target.spec.priors, Covariates::Unknown, &statistic.grids);
    // About the information of n records of variance 1/4.
    let information = 0.25 * statistic.records / (sd * sd);
    Ok(build_at_prior(target, law.ok_or_else(refused)?, information, parties))
}

/// The concentrations of dirichlet priors.
fn concentrations(priors: &[Prior]) -> Vec<f64> {
    let one = |prior: &Prior| if let Prior::Dirichlet { concentration, .. } = prior { *concentration } else { 1.0 };
    priors.iter().map(one).collect()
}

fn column(target: &Target, name: &str) -> Result<ColumnSpec, SamplerError> {
    target.spec.columns.get(name).cloned().ok_or(SamplerError::NoRecordLaw(target.spec.model.kind()))
}

/// Chains that start as the job gives it, or at draws of their prior; `information` is about what the records hold on a coordinate.
fn build_at_prior<L: RecordLaw + 'static>(
    target: &Arc<Target>,
    law: L,
    information: f64,
    parties: &[Party],
) -> Vec<Box<dyn Sweep>> {
    let sd = |j: usize| (information + target.space.precision[j]).max(f64::MIN_POSITIVE).sqrt().recip();
    let steps = start::steps((0..target.space.dimension()).map(|j| sd(j).min(target.space.scale[j])));
    let starts = (0..target.spec.sampler.chains).map(|id| at_prior(target, &law, id, &steps)).collect();
    build(target, law, starts, parties)
}

/// A chain's start as given, or where theta moves from the prior's centre given no record: at a draw of a prior that is conjugate.
fn at_prior<L: RecordLaw>(target: &Target, law: &L, id: u32, steps: &Arc<[f64]>) -> Start {
    let drawn = || {
        let (mut theta, mut rng) = (start::centre(target), start::stream(target, id));
        let mut conditional = Conditional::new(target, steps, &mut rng);
        law.step(&vec![0.0; law.summary()], &mut theta, &mut law.nuisance(), &mut conditional);
        theta
    };
    Start { id, theta: start::given(target).unwrap_or_else(drawn), steps: Arc::clone(steps) }
}

fn build<L: RecordLaw + 'static>(target: &Arc<Target>, law: L, starts: Vec<Start>, parties: &[Party]) -> Vec<Box<dyn Sweep>> {
    let law = Arc::new(law);
    let chain = |start| Box::new(Chain::new(Arc::clone(&law), Arc::clone(target), start, parties.to_vec())) as Box<dyn Sweep>;
    starts.into_iter().map(chain).collect()
}
