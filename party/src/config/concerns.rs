//! Warnings about settings that the owner may set, and may regret.

use conclave_vault::secure::{Peers, SecureSettings};

/// Returns the warnings for an owner who admits secure jobs.
pub(crate) fn secure_concerns(settings: &SecureSettings) -> Vec<&'static str> {
    let concerns = [
        (
            settings.peers == Peers::Ca,
            "peers is \"ca\": the keeper of the consortium's CA can make up the other parties, and is limited by \
             max_epsilon_if_all_collude alone",
        ),
        (
            settings.peers == Peers::Pinned && settings.pins.is_empty(),
            "peers is \"pinned\" and nobody is pinned: no secure job can open; `conclave-party pin` prints how to pin the others",
        ),
        (
            settings.max_epsilon_if_all_collude.is_none(),
            "sets no max_epsilon_if_all_collude: the loss of your data if all the others collude is not limited",
        ),
    ];
    concerns.into_iter().filter_map(|(holds, concern)| (settings.allow && holds).then_some(concern)).collect()
}
