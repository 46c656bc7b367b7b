//! Errors of a ledger.

use std::path::{Path, PathBuf};

use conclave_ops::place::{LockFault, PlaceFault};
use conclave_privacy::accounting::AccountingError;

/// A ledger that cannot be made, opened or used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// `init` where a ledger is.
    #[error("{}: a ledger is here already; it holds what the data has spent and is never replaced", .0.display())]
    Exists(PathBuf),
    /// There is no ledger where the configuration names one.
    #[error(
        "{}: there is no ledger here. If it has been moved, restore it; only if this data has never answered a job, \
         make one with `conclave-party init --config …`", .0.display()
    )]
    Missing(PathBuf),
    /// Another process holds it.
    #[error("{}: another process holds this ledger; stop that one first", .0.display())]
    Locked(PathBuf),
    /// The file is no ledger, or not one that this version reads.
    #[error("{}: {reason}", .file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The ledger has the previous format, which the party converts when it starts.
    #[error(
        "{}: is a ledger of format {former}, which the party converts when it starts: start it once with this version",
        .0.display(), former = super::format::FORMER
    )]
    Former(PathBuf),
    /// Made for another party.
    #[error(
        "{}: this is the ledger of party {found:?}, and the configuration's name is {expected:?}; point `ledger` at the \
         right file", .file.display()
    )]
    Party {
        /// The file.
        file: PathBuf,
        /// The ledger's party.
        found: String,
        /// The configuration's.
        expected: String,
    },
    /// Made for another budget.
    #[error(
        "{}: this ledger was made for epsilon = {}, delta = {}, and [budget] says epsilon = {}, delta = {}; write the \
         ledger's budget into [budget]: what the data may spend is fixed when its ledger is made",
        .file.display(), .found.0, .found.1, .expected.0, .expected.1
    )]
    Budget {
        /// The file.
        file: PathBuf,
        /// The ledger's epsilon and delta, as it holds them.
        found: (String, String),
        /// The configuration's.
        expected: (String, String),
    },
    /// The reserve of delta differs from the configuration's.
    #[error("{}: {reason}", .file.display())]
    Reserve {
        /// The file.
        file: PathBuf,
        /// The two reserves, with the remedy.
        reason: String,
    },
    /// Made to protect another unit of privacy.
    #[error(
        "{}: this ledger was made to protect one {found}, and [data] says one {expected}; charges of the one are no charges of \
         the other: put [data] back, or begin a ledger for new data", .file.display()
    )]
    Unit {
        /// The file.
        file: PathBuf,
        /// The ledger's unit of privacy.
        found: String,
        /// The configuration's.
        expected: String,
    },
    /// Its secret key is missing, or another ledger's.
    #[error("{}: the ledger's secret key {reason}", .file.display())]
    Secret {
        /// The key's file.
        file: PathBuf,
        /// The problem, with the remedy.
        reason: String,
    },
    /// The party has published a checkpoint that the ledger does not hold.
    #[error(
        "{}: the ledger ends at entry {last} and this party has published the head of entry {lost}, which it does not hold: it \
         was restored from an older copy, or its end is torn. Nothing is answered from it. Stop the party and put the newest \
         ledger back; only if that is lost, `conclave-party unlock --reason \"...\"`", .file.display()
    )]
    Behind {
        /// The file.
        file: PathBuf,
        /// Number of the published checkpoint.
        lost: u64,
        /// Number of the ledger's last entry.
        last: u64,
    },
    /// `unlock` where nothing is locked.
    #[error("the ledger holds every head that this party is known to have published; there is nothing to unlock")]
    NotBehind,
    /// An act of the owner's without a reason.
    #[error("--reason is empty: say why in a few words; it is entered in the ledger for good")]
    NoReason,
    /// The data differ from those that the ledger has met.
    #[error(
        "the data have changed (columns {0}): no job is answered from them. Put the data back as they were, or, if they were \
         refreshed on purpose, stop the party and say so with `conclave-party refresh --reason \"...\"`; jobs that are open then \
         have to be submitted again"
    )]
    Data(String),
    /// Writes go into another file than the one at the ledger's path.
    #[error(
        "{}: the ledger's file {how} while the party was writing to it, so that what is answered would be recorded nowhere: nothing is answered \
         any more. Before you stop the party, copy what it has written out of it (docs/how-to/operator/back-up-and-restore.md, Recover a deleted ledger)",
        .file.display()
    )]
    Moved {
        /// The file.
        file: PathBuf,
        /// The state of that file.
        how: String,
    },
    /// `init` where an earlier ledger has left something.
    #[error(
        "{}: {what}. A new ledger would forget what those data have spent, so none is made. If the ledger was lost, put it back from a backup. Only \
         if this is for data that no job was ever answered from, {remedy}",
        .file.display()
    )]
    Earlier {
        /// Path of the remains.
        file: PathBuf,
        /// Description of the remains.
        what: &'static str,
        /// Act that the owner has to choose.
        remedy: &'static str,
    },
    /// An entry does not follow from those before it.
    #[error("{0}")]
    Wrong(String),
    /// Its sums do not hold.
    #[error("{}: the ledger is damaged: {reason}; restore it from a copy that is not older than it", .file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// The violated sum.
        reason: String,
    },
    /// A job id that stands for another job.
    #[error("{0}")]
    Job(String),
    /// A release of another ledger, or of an earlier opening.
    #[error("a release that this ledger has not charged")]
    NotCharged,
    /// The budget cannot be accounted for.
    #[error("{0}")]
    Accounting(#[from] AccountingError),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// The file system failed.
    #[error("{}: {reason}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The cause.
        reason: String,
    },
    /// An earlier failure was final.
    #[error("the ledger failed earlier and answers no more until the party is restarted: {0}")]
    Halted(String),
}

impl LedgerError {
    /// Names the file on which the operating system failed.
    pub fn io(file: &Path, error: &std::io::Error) -> Self {
        Self::Io { file: file.to_owned(), reason: error.to_string() }
    }

    /// Names the reason why the ledger is not locked for this process.
    pub(super) fn lock(path: &Path, fault: LockFault) -> Self {
        match fault {
            LockFault::Held => Self::Locked(path.to_owned()),
            LockFault::Io(error) => Self::io(path, &error),
            LockFault::Names(names) => Self::Foreign {
                file: path.to_owned(),
                reason: format!(
                    "has {names} names (hard links), and a ledger must have one: under two it would have two logs; remove the others, \
                     and make backups by copying"
                ),
            },
        }
    }

    /// Names a damaged file, with the damage.
    pub fn corrupt(file: &Path, reason: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), reason: reason.into() }
    }
}

impl From<PlaceFault> for LedgerError {
    fn from(fault: PlaceFault) -> Self {
        match fault {
            PlaceFault::Moved { file, how } => Self::Moved { file, how },
            PlaceFault::Io(file, error) => Self::io(&file, &error),
        }
    }
}
