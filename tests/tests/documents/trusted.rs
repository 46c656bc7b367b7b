//! Checks that the crate that reads records and charges the ledger links no network, TLS, metrics or command-line code.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages that the vault's tree must not contain.
const FORBIDDEN: [&str; 10] =
    ["axum", "clap", "conclave-inference", "hyper", "maud", "prometheus-client", "rcgen", "rustls", "tonic", "tower"];

#[test]
fn the_vault_links_no_network_code() {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["tree", "-p", "conclave-vault", "-e", "normal", "--offline", "--prefix", "none"])
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let packages: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(packages.contains("conclave-privacy"), "not a dependency tree: {text}");
    let found: Vec<&str> = FORBIDDEN.into_iter().filter(|name| packages.contains(name)).collect();
    assert!(found.is_empty(), "conclave-vault depends on {found:?}; find the path with `cargo tree -p conclave-vault -i NAME`");
}
