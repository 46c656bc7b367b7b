//! The choice between chains on the plain posterior and on a weighted one.

use super::law::{Setup, WalkPlan};
use crate::sampler::hmc::weighting::{ENOUGH, HARDLY_MORE, PLAIN_SHARE, widest};
use crate::sampler::noisy_statistics::ChainFrame;
use crate::sampler::{Allotment, Found, SamplerError, Target, frame_numbers};
use conclave_common::job::Weights;

/// Returns the plan of weighted chains at a search's result: the widest radius with enough effective draws, else that with most.
/// `None` for a result without a frame, where no frame fits, and where plain chains are as good and the job admits them.
pub(super) fn choose(target: &Target, found: &Found, budget: &Allotment) -> Result<Option<WalkPlan>, SamplerError> {
    let Some(frame) = &found.frame else { return Ok(None) };
    let setup = Setup::new(found);
    let plain = {
        let mut left = budget.clone();
        let _ = left.split_off(PLAIN_SHARE);
        setup.plan(target, found, &left, Vec::new())?.planned.ess
    };
    let admitted = if target.spec.weights == Weights::Auto { plain } else { 0.0 };
    if admitted >= ENOUGH {
        return Ok(None);
    }
    let best = widest(
        |plan: &WalkPlan| plan.planned.ess,
        |radius| {
            let Some(shape) = frame.shape(&found.coding, radius) else { return Ok(None) };
            let numbers = frame_numbers(&found.coding, &shape).into_iter().chain([ChainFrame::TRACE]).collect();
            let weighted = frame.weighted(radius, plain.max(1.0).sqrt().recip());
            Ok(Some(WalkPlan { weighted: Some(weighted), ..setup.plan(target, found, budget, numbers)? }))
        },
    )?;
    Ok(best.filter(|best| admitted == 0.0 || HARDLY_MORE * admitted < best.planned.ess))
}
