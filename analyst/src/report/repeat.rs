//! Everything needed to check and repeat the run.

use conclave_common::text::{is_plain, json};
use conclave_pages::table::facts;
use conclave_pages::text::{name, plain};
use conclave_proto::v1::PartyStatus;
use maud::{Markup, html};
use sha2::{Digest, Sha256};

use super::material::Material;
use crate::job_status::moment;

/// Maximum length of the object in the page; a longer one (last states of many chains) is available from `conclave summary`.
const LONGEST: usize = 300_000;

/// Returns the SHA-256 of a job file in hexadecimal digits.
pub(super) fn digest(source: &str) -> String {
    Sha256::digest(source.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names the program that writes the report, with the commit that it was built from.
pub(super) fn build() -> Markup {
    html! { "conclave " (env!("CARGO_PKG_VERSION")) ", commit " code { (env!("BUILD_COMMIT")) } "," }
}

/// States the digest of the job's log, and how an owner obtains its own.
pub(super) fn log_words(log: Option<&str>) -> Markup {
    html! {
        @match log {
            Some(digest) => {
                "SHA-256 of the job’s log: " code { (plain(digest, 64)) } ". " code { "conclave-party verify" } " prints the same at every owner who was shown the same log"
            }
            None => { "not known: the coordinator does not send the job’s whole log" }
        }
    }
}

/// States the software of each party, with those of one version together.
pub(super) fn party_software(parties: &[PartyStatus]) -> Markup {
    let mut versions: Vec<(&str, Vec<&str>)> = Vec::new();
    for PartyStatus { name, software, .. } in parties {
        match versions.iter_mut().find(|(version, _)| *version == software.as_str()) {
            Some((_, names)) => names.push(name),
            None => versions.push((software, vec![name])),
        }
    }
    html! {
        @for (at, (version, names)) in versions.iter().enumerate() {
            @if at > 0 { "; " }
            @if version.is_empty() { "not known" } @else { (plain(version, 60)) } " at "
            @for (at, party) in names.iter().enumerate() { @if at > 0 { ", " } (name(party)) }
        }
        @if versions.is_empty() { "not known" } @else { ", when they attached last" }
    }
}

pub(super) fn section(material: &Material<'_>) -> Markup {
    let Material { status, source, spec, .. } = *material;
    let made_by = material.draws.map(|draws| plain(&draws.created_by, 100)).filter(|text| !text.is_empty());
    // Escaped as on a terminal, so that a program still reads the same value.
    let object = json(status.result_json.trim());
    html! {
        (facts(&[
            ("job", html! { code { (plain(&status.job, 100)) } " (derived from the analyst’s signature)" }),
            ("analyst", name(&status.analyst)),
            ("submitted", html! { (moment(status.submitted_unix_ms)) " UTC" }),
            // Without its scheme, so that nothing in the page looks like a link.
            ("coordinator", name(material.coordinator.trim_start_matches("https://"))),
            ("software", html! {
                @if let Some(made_by) = &made_by { (made_by) " ran the job; " } (build()) " wrote this report"
            }),
            ("parties", party_software(&status.parties)),
            ("seed", html! { (spec.sampler.seed) ", of proposals and decisions. The noise has no seed: a second run spends budget again and yields other draws of the same posterior" }),
            ("digest", html! { "SHA-256 of the job file: " code { (digest(source)) } }),
            ("log", log_words(material.log)),
        ]))
        p {
            "Every owner can replay the run: " code { "conclave-party verify " (plain(&status.job, 100)) } " compares every query, decision, "
            "draw and summary with the published releases and with the owner’s own ledger. " code { "conclave verify-ledger" } " checks an exported ledger on any machine. The draws: "
            code { "conclave draws " (plain(&status.job, 100)) " --format zarr --out draws.zarr" } ". To run it again, save the job file below and use "
            code { "conclave submit job.toml" } "."
        }
        details.fold { summary { "The job file, byte for byte" } pre tabindex="0" { (source) } }
        @if !source.lines().all(|line| is_plain(&line.replace('\t', " "))) {
            p.note { "Characters that act on the display are replaced here: the digest is that of the file with them." }
        }
        @if object.len() <= LONGEST {
            details.fold { summary { "The result, as " code { "conclave summary --json" } " prints it" } pre tabindex="0" id="result" { (object) } }
        } @else {
            p { "The result’s object is too long for this page: " code { "conclave summary " (plain(&status.job, 100)) " --json" } " prints it." }
        }
        p.note { "This page was made from that object, the job file and the draws. The same job gives the same page, except for the versions of the software." }
    }
}
