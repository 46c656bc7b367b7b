//! `algorithm = "penalty"`: chains on noisy log likelihood ratios.

use super::declaration::{ANY_MODEL, Declaration, RATIO_BY_RATIO, Summand, TO_BEGIN_WITH};

pub(super) const PENALTY: Declaration = Declaration {
    name: "penalty",
    releases: |spec| if spec.locates_by_gradients() { vec!["score", "ratio"] } else { vec!["ratio"] },
    walks_on_ratios: true,
    own_keys: &["locate"],
    asked_for: |spec| match spec.locates_by_gradients() {
        true => format!("{TO_BEGIN_WITH}; then {RATIO_BY_RATIO}. {ANY_MODEL}"),
        false => RATIO_BY_RATIO.to_owned(),
    },
    summand: |spec| if spec.locates_by_gradients() { LOCATED } else { Summand::RATIO },
    ..Declaration::OF_RATIOS
};

const LOCATED: Summand = Summand {
    what: "the slope or the curvature of the log likelihood at a setting of the model, or of how much better one setting explains a record \
           than another",
    fits_any_model: true,
};
