//! `algorithm = "penalty"`: chains on noisy log likelihood ratios.

use super::declaration::{
    ANY_MODEL, Declaration, PENALTY as METHOD, RATIO_QUERIES, ReleasedQuantity, SEARCH_BY_SCORES, noise_of_answers,
};
use super::weighted_chains;
use crate::job::sampler_spec::{ProposalKind, Radius};
use crate::job::spec::JobSpec;
use conclave_privacy::accounting::SamplingProbability;

pub(super) const PENALTY: Declaration = Declaration {
    name: "penalty",
    releases: |spec| match spec.locates_by_gradients() {
        true => ["score", "ratio"].into_iter().chain(spec.weighs_chains().then_some("table")).collect(),
        false => vec!["ratio"],
    },
    walks_on_ratios: true,
    own_keys: &["locate"],
    query_description: |spec| match spec.locates_by_gradients() {
        true => format!("{SEARCH_BY_SCORES}{}; then {RATIO_QUERIES}. {ANY_MODEL}", weighted_chains::of_search(spec)),
        false => RATIO_QUERIES.to_owned(),
    },
    released_quantity: |spec| if spec.locates_by_gradients() { LOCATED } else { ReleasedQuantity::RATIO },
    noise: |spec, sd| noise_of_answers(sd, "log-likelihood units", METHOD) + weighted_chains::of_noise(spec),
    check: |spec| weighted_chains::check(spec, || obstacle(spec)),
    ..Declaration::OF_RATIOS
};

/// Returns why the chains of a job cannot weight records.
fn obstacle(spec: &JobSpec) -> Option<&'static str> {
    let sampler = &spec.sampler;
    let given = sampler.start.is_some() || sampler.starts.is_some() || sampler.radius != Radius::Auto;
    match () {
        () if !spec.locates_by_gradients() => {
            Some("needs a frame that is released with scores (locate = \"gradients\" under [sampler])")
        }
        () if sampler.proposal != ProposalKind::Guided => Some("applies to guided moves only"),
        () if given => Some("needs chains that start and move by what the search finds (no start, starts or proposal.radius)"),
        () if spec.privacy.clip.is_some() => Some("applies to chains without privacy.clip only"),
        () if sampler.batch != SamplingProbability::ONE => Some("applies to chains over all records only"),
        () => None,
    }
}

const LOCATED: ReleasedQuantity = ReleasedQuantity {
    words: "the slope or the curvature of the log likelihood at a setting of the model, or of how much better one setting explains a record \
           than another",
    fits_any_model: true,
};
