//! `algorithm = "penalty"`: chains on noisy log likelihood ratios.

use super::declaration::{ANY_MODEL, Declaration, RATIO_QUERIES, ReleasedQuantity, SEARCH_BY_SCORES};

pub(super) const PENALTY: Declaration = Declaration {
    name: "penalty",
    releases: |spec| if spec.locates_by_gradients() { vec!["score", "ratio"] } else { vec!["ratio"] },
    walks_on_ratios: true,
    own_keys: &["locate"],
    query_description: |spec| match spec.locates_by_gradients() {
        true => format!("{SEARCH_BY_SCORES}; then {RATIO_QUERIES}. {ANY_MODEL}"),
        false => RATIO_QUERIES.to_owned(),
    },
    released_quantity: |spec| if spec.locates_by_gradients() { LOCATED } else { ReleasedQuantity::RATIO },
    ..Declaration::OF_RATIOS
};

const LOCATED: ReleasedQuantity = ReleasedQuantity {
    words: "the slope or the curvature of the log likelihood at a setting of the model, or of how much better one setting explains a record \
           than another",
    fits_any_model: true,
};
