//! `conclave-party init`.

use super::{Common, load, print, print_json};
use crate::daemon::{StartError, init_identity, init_ledger};
use crate::ledger::LedgerError;

pub(super) fn init(common: &Common) -> Result<(), StartError> {
    let config = load(common)?;
    // Before the key, so that a refusal leaves nothing behind.
    if config.ledger.exists() {
        return Err(LedgerError::Exists(config.ledger).into());
    }
    let request = init_identity(&config)?;
    init_ledger(&config)?;
    if common.json {
        return print_json(&serde_json::json!({
            "ledger": config.ledger, "identity": config.identity, "request": request,
        }));
    }
    let budget = config.budget;
    print(&format!(
        "{}: ledger made for epsilon = {}, delta = {}, for ever",
        config.ledger.display(),
        budget.epsilon,
        budget.delta
    ))?;
    let folder = config.identity.display();
    match request {
        Some(request) => print(&format!(
            "{}: private key made, it never leaves its folder\n{}: signing request made\n\nNext: send the request to \
             whoever keeps the consortium's CA, who runs\n    conclave ca sign {} --ca ca/\nand returns certificate.pem and \
             ca.pem. Put both into {folder}, then\n    conclave-party run --config {}",
            config.key.display(),
            request.display(),
            request.file_name().unwrap_or_default().display(),
            common.config.display()
        )),
        None => {
            print(&format!("{folder}: has a key already\n\nNext:\n    conclave-party run --config {}", common.config.display()))
        }
    }
}
