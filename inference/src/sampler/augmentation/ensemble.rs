//! The chains of a job, given its parties' releases.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::chain::{Chain, Start};
use super::law::Complete;
use super::line_law::{Line, LineLaw};
use super::linear_law::LinearLaw;
use super::logistic_law::LogisticLaw;
use super::noise::GaussianNoise;
use super::table_law::TableLaw;
use super::{Conditional, Count, PartyRelease, RecordLaw, Release, Residuals, Sweep, normal};
use crate::sampler::{Mode, ReleasedStatistic, SamplerError, Target};
use conclave_common::parameter::Prior;
use conclave_common::schema::{ColumnSpec, Family, ModelSpec, Regression};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::StatisticGrid;

/// Best step length of a walk along one coordinate, in sds given the others.
const STEP: f64 = 2.4;
/// Part of a chain's streams that its start uses; see [`super::chain`].
const START_STREAM: u64 = 0xffff_ffff_0000_0000;

/// A party's residuals before any latent record, and its number of records.
type Party = (Residuals<GaussianNoise>, Count);

/// Builds all chains; `release` already holds the totals of these releases. Errors: augmentation does not support the model; the
/// releases do not fit it.
pub(super) fn chains(
    target: &Arc<Target>,
    release: &Release,
    noise: NoiseScale,
    releases: &[PartyRelease],
) -> Result<Vec<Box<dyn Sweep>>, SamplerError> {
    // With only the sum opened, there is one release of all records, with the noise of every party.
    let draws = (target.spec.parties.len() / releases.len().max(1)) as u32;
    let party = |party: &PartyRelease| {
        let start = release.count(party);
        let count = party.records.map_or(Count::Unknown { start }, Count::Known);
        let noise = vec![GaussianNoise { scale: noise.units(), draws }; party.answers.len()];
        let residuals = Residuals::new(&party.answers, &noise).ok_or(SamplerError::Shape("a release of no component"))?;
        Ok((residuals, count))
    };
    let parties = releases.iter().map(party).collect::<Result<Vec<_>, SamplerError>>()?;
    let statistic = match release {
        Release::Tables(tables) => {
            let unit = QueryKind::COUNT_UNIT as i64;
            let law = TableLaw::new(tables.classes(), tables.levels(), concentrations(&target.spec.priors), unit, true);
            let starts = (0..target.spec.sampler.chains).map(|id| at_prior(target, &law, id)).collect();
            return Ok(build(target, law, starts, &parties));
        }
        Release::Statistic(statistic) => statistic,
    };
    let spec = &target.spec;
    let line = |line: Line| -> Result<_, SamplerError> {
        let law = LineLaw::new(line, spec.priors[0], statistic.grids[0], spec.build_model());
        Ok(build(target, law, scattered_starts(target, &statistic.mode(target)?), &parties))
    };
    match &spec.model {
        ModelSpec::Bernoulli { .. } => line(Line::Bernoulli),
        ModelSpec::PoissonMean { outcome } => line(Line::Poisson(column(target, outcome)?)),
        ModelSpec::GaussianMean { outcome, sd } => line(Line::Gaussian { sd: sd / column(target, outcome)?.half_width() }),
        ModelSpec::Regression(regression) => self::regression(target, regression, statistic, (noise, releases), &parties),
        _ => Err(SamplerError::NoRecordLaw(spec.model.kind())),
    }
}

fn regression(
    target: &Arc<Target>,
    regression: &Regression,
    statistic: &ReleasedStatistic,
    (noise, releases): (NoiseScale, &[PartyRelease]),
    parties: &[Party],
) -> Result<Vec<Box<dyn Sweep>>, SamplerError> {
    let refused = || SamplerError::NoRecordLaw(target.spec.model.kind());
    let (grids, priors, intercept) = (&statistic.grids, &target.spec.priors, regression.design.intercept);
    let total = |(j, grid): (usize, &StatisticGrid)| {
        grid.step * releases.iter().filter_map(|release| release.answers.get(j)).map(|units| *units as f64).sum::<f64>()
    };
    let totals: Vec<f64> = grids.iter().enumerate().map(total).collect();
    let widest = grids.iter().map(|grid| grid.step).fold(0.0, f64::max);
    let noise_sd = widest * noise.units() as f64 * statistic.parties.sqrt();
    match regression.family {
        Family::Linear { sd } => {
            let half_width = column(target, &regression.outcome)?.half_width();
            let law = LinearLaw::new(sd.map(|sd| sd / half_width), intercept, priors, grids).ok_or_else(refused)?;
            let rough = law.rough(&totals, statistic.records, noise_sd);
            Ok(build(target, law, scattered_starts(target, &rough), parties))
        }
        Family::Logistic => {
            let law = LogisticLaw::new(priors.len(), intercept, grids).ok_or_else(refused)?;
            let rough = law.rough(&totals, statistic.records, noise_sd);
            Ok(build(target, law, scattered_starts(target, &rough), parties))
        }
        _ => Err(refused()),
    }
}

fn column(target: &Target, name: &str) -> Result<ColumnSpec, SamplerError> {
    target.spec.columns.get(name).cloned().ok_or(SamplerError::NoRecordLaw(target.spec.model.kind()))
}

fn concentrations(priors: &[Prior]) -> Vec<f64> {
    let one = |prior: &Prior| if let Prior::Dirichlet { concentration, .. } = prior { *concentration } else { 1.0 };
    priors.iter().map(one).collect()
}

/// Returns the generator for a chain's start.
fn start_stream(target: &Target, chain: u32) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(target.spec.sampler.seed);
    rng.set_stream(START_STREAM | u64::from(chain));
    rng
}

/// Returns every chain's start: the job's own, or scattered around the mode more widely than the posterior.
fn scattered_starts(target: &Target, mode: &Mode) -> Vec<Start> {
    let steps: Arc<[f64]> = mode.sd.iter().map(|sd| STEP * sd).collect();
    let scattered = |chain: u32| {
        let (mut rng, mut u) = (start_stream(target, chain), mode.u.clone());
        target.space.disperse(&mut u, (&mode.sd, &mode.error_sd), || normal(&mut rng));
        target.space.theta_inside(&target.spec, &u)
    };
    let theta = |chain| target.spec.sampler.start.clone().unwrap_or_else(|| scattered(chain));
    (0..target.spec.sampler.chains).map(|id| Start { id, theta: theta(id), steps: Arc::clone(&steps) }).collect()
}

/// Returns a chain's start: the job's own, or a draw from a conjugate prior, that is, theta given no record.
fn at_prior<L: RecordLaw>(target: &Target, law: &L, id: u32) -> Start {
    let drawn = || {
        let mut theta = target.space.theta_inside(&target.spec, &target.space.location);
        let mut rng = start_stream(target, id);
        let mut conditional = Conditional::new(target, &[], &mut rng);
        let none = Complete { summary: &vec![0.0; law.summary()], records: &[] };
        law.step(&none, &mut theta, &mut law.nuisance(), &mut conditional);
        theta
    };
    Start { id, theta: target.spec.sampler.start.clone().unwrap_or_else(drawn), steps: Arc::from([]) }
}

fn build<L: RecordLaw + 'static>(target: &Arc<Target>, law: L, starts: Vec<Start>, parties: &[Party]) -> Vec<Box<dyn Sweep>> {
    let law = Arc::new(law);
    let chain = |start| Box::new(Chain::new(Arc::clone(&law), Arc::clone(target), start, parties.to_vec())) as Box<dyn Sweep>;
    starts.into_iter().map(chain).collect()
}
