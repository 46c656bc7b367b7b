//! The paragraph on the availability of data and code.

use conclave_pages::text::plain;

use crate::report::material::Material;
use crate::report::repeat::digest;

/// Maximum number of named owners.
const NAMES: usize = 6;

/// Writes the paragraph: what stays with the owners, what can be shared, and how the run is checked.
pub(super) fn availability(material: &Material<'_>) -> String {
    let names: Vec<String> = material.spec.parties.iter().map(|party| plain(party, 80)).collect();
    let owners = if names.len() <= NAMES { names.join(", ") } else { format!("{} owners", names.len()) };
    let log = material.log.map(|digest| format!(" (SHA-256 {})", plain(digest, 64))).unwrap_or_default();
    format!(
        "Data availability: the records stay with their owners ({owners}), who decide on access; the authors never held them and cannot share them. The \
         released vectors, noise included, are in the log of job {}{log}, which the coordinator keeps. The draws of the posterior and this report are \
         computed from these releases alone, so sharing them reveals nothing further about a record. Code availability: the software is named in the \
         citation, and the job file (SHA-256 {}) states the whole analysis.",
        plain(&material.status.job, 100),
        digest(material.source)
    )
}
