//! Topics beyond the guarantee: accuracy and bias, security of stored data, evaluation by others.

use conclave_pages::document::fact;

use super::topic::Topic;

pub(super) fn topics() -> Vec<Topic> {
    vec![accuracy(), security(), evaluation()]
}

fn accuracy() -> Topic {
    Topic {
        heading: "Accuracy and bias",
        facts: vec![
            fact("before a job", "the planner states the error that privacy adds to each coefficient, without a query"),
            fact(
                "after a job",
                "each result states its intervals with and without the noise, or says that it is not usable, and why",
            ),
            fact(
                "small groups",
                "the noise does not depend on a group's size, so its share of the error is larger where records are few: compare groups \
                 only by their own intervals",
            ),
            fact(
                "extreme records",
                "a value outside the declared bounds counts as the bound: bounds that are too narrow change the answer",
            ),
        ],
        checks: &["conclave plan JOB.toml", "conclave rehearse JOB.toml", "conclave summary JOB"],
    }
}

fn security() -> Topic {
    Topic {
        heading: "Security of stored data",
        facts: vec![
            fact("on the network", "mutual TLS, 1.2 or 1.3, with certificates of the study's own authority; no reply without it"),
            fact("identification", "by certificate and by the analyst's signature; the software asks for no second factor"),
            fact("files", "keys are readable by the daemon's user alone, the ledger by its group too, for auditors"),
            fact("on the disk", "not encrypted by this software: the file system of this machine has to do it"),
        ],
        checks: &["conclave-party doctor", "conclave-party fingerprint"],
    }
}

fn evaluation() -> Topic {
    Topic {
        heading: "Independent evaluation",
        facts: vec![
            fact("on this machine", "the audit releases made-up neighbouring records many times, and bounds epsilon from below"),
            fact("a finished job", "its log is replayed bit for bit and compared with this party's own ledger"),
            fact("the code", "open source; the privacy promise rests on few crates with written proofs, which a person can read"),
            fact("by an outside body", "none is known to this software: name yours here"),
        ],
        checks: &["conclave-party audit --config party.toml", "conclave-party verify JOB", "conclave verify-ledger"],
    }
}
