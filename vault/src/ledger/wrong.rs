//! Reasons why an entry does not follow from those before it, or a ledger is not whole.

use conclave_privacy::accounting::AccountingError;

/// The defect of an entry, as the rest of a sentence that begins with the entry; the last five are defects of a ledger.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// The first entry and no other makes a ledger.
    #[error("is not where a ledger begins")]
    Beginning,
    /// The chain does not lead here.
    #[error("does not fit the hash that is stored with it")]
    Hash,
    /// Sequence numbers go up by one.
    #[error("stands where entry {0} should be")]
    Place(u64),
    /// A charge names a job by its entry.
    #[error("charges a job that is not entered")]
    ChargedJob,
    /// Sensitivity and noise scale have ranges.
    #[error("has no usable sensitivity or noise")]
    Scales,
    /// The code stands for no kind of query.
    #[error("is of a kind that there is not")]
    Kind,
    /// A release has at least one integer.
    #[error("pays for no integer")]
    NoInteger,
    /// A query's kind determines the number of integers in its answer: one price pays for all, and no release is longer.
    #[error("pays for {paid} integers, and its kind is answered by {length}")]
    Components {
        /// Integers paid for.
        paid: u32,
        /// Integers in an answer of its kind.
        length: usize,
    },
    /// The price follows from the query.
    #[error("has a charge that its kind, sensitivity and noise don't give")]
    Charge,
    /// The job's roster determines the number of parties whose noise protects it.
    #[error("counts on another number of honest parties than its job's roster")]
    Honest,
    /// Masked releases have a separate limit.
    #[error("costs {units} units of mu² if all other parties collude, beyond the {limit} that the owner allows then")]
    AllCollude {
        /// Sum spent, as if each answer were opened by itself.
        units: u64,
        /// The limit.
        limit: u64,
    },
    /// A job has one key for masks, before its first charge.
    #[error("gives job {0} a second key for masks")]
    SecondMaskKey(String),
    /// A job has one roster for ever, and a key before it.
    #[error("gives job {0} a roster without a key, or a second one")]
    SecondRoster(String),
    /// A roster's digest, members and number of honest parties must agree.
    #[error("has an invalid roster: {0}")]
    Roster(String),
    /// A masked job's key is deleted with its end.
    #[error("opens job {0} again, whose answers were masked")]
    Reopened(String),
    /// The slack follows from the noise.
    #[error("has a slack that its noise doesn't give")]
    Slack,
    /// A block that was opened for it pays for a subsampled query.
    #[error("is over a sample, and takes no free place of a block of its job that was opened for such releases")]
    SampledPlace,
    /// A block's terms are usable, and its job is not masked.
    #[error("opens a block of releases that there can't be")]
    BlockTerms,
    /// A block's cost follows from its terms.
    #[error("opens a block at another charge than its terms give")]
    BlockCharge,
    /// A block is opened when there is no free place in one of the same terms.
    #[error("opens a block while another of the same terms has free places")]
    EarlyBlock,
    /// The limit on a job's part of the reserve comes right after its entry.
    #[error("sets aside a reserve of delta for job {0}, and does not follow its entry, or sets aside none")]
    JobReserve(String),
    /// Blocks take no more of delta than is set aside for them.
    #[error("takes {units} units of the reserve of delta where {limit} may be taken")]
    OverReserved {
        /// Units taken with it.
        units: u64,
        /// The limit.
        limit: u64,
    },
    /// 64 bits do not hold the sum.
    #[error("makes the total too large")]
    Overflow,
    /// Charges add up.
    #[error("has a running total that is not the sum of the charges")]
    RunningTotal,
    /// A closed job is not charged.
    #[error("charges job {0}, which is closed")]
    Closed(String),
    /// A charge is paid for by an open block, or by none.
    #[error("names a block that is not open")]
    NamedBlock,
    /// A block holds what it was opened with.
    #[error("takes more than its block holds")]
    BeyondBlock,
    /// A query is charged once.
    #[error("charges chain {chain} of round {iteration} of job {job} a second time")]
    ChargedTwice {
        /// The chain.
        chain: u32,
        /// The round.
        iteration: u64,
        /// The job's id.
        job: String,
    },
    /// A charge has one answer.
    #[error("answers entry {0}, which is no charge or is answered already")]
    Answered(u64),
    /// An answer has the number of integers that its charge pays for.
    #[error("answers entry {charge}, which pays for {paid} integers, with {given}")]
    Length {
        /// Number of the charge.
        charge: u64,
        /// Integers paid for.
        paid: u32,
        /// Integers of the answer.
        given: usize,
    },
    /// A job is entered once.
    #[error("enters job {0} a second time")]
    EnteredTwice(String),
    /// An event is about a job that is entered, or about none.
    #[error("is about a job that is not entered")]
    Job,
    /// A job has one open block.
    #[error("opens a second block for job {0}")]
    SecondBlock(String),
    /// Only an open block is settled.
    #[error("settles a block that is not open")]
    SettledBlock,
    /// A block's forfeits were taken from it.
    #[error("forfeits another amount than its block has left")]
    Forfeit,
    /// An event's particulars are of another shape.
    #[error("is no {kind} that this version reads: {reason}")]
    Body {
        /// The event's kind.
        kind: &'static str,
        /// The defect.
        reason: String,
    },
    /// The first entry states the unit of privacy.
    #[error("names no unit of privacy that this version knows")]
    Unit,
    /// A number is written so that it reads back to the same bits.
    #[error("has {0:?} for a number")]
    Number(String),
    /// A reserve is a part of delta.
    #[error("promises no delta below 1, or adds nothing to it")]
    Reserve,
    /// The budget cannot be accounted for.
    #[error(transparent)]
    Budget(#[from] AccountingError),
    /// Nothing is entered.
    #[error("the ledger has no first entry")]
    Empty,
    /// 64 bits do not hold the sum spent.
    #[error("the total is too large")]
    Total,
    /// Charges exceed the budget.
    #[error("more is spent than the budget holds: {units} units of {limit}")]
    Overspent {
        /// Units spent.
        units: u64,
        /// Units that the budget holds.
        limit: u64,
    },
    /// Noise samples exceed the budget.
    #[error("more noise is drawn than the budget holds: {draws} draws of {limit}")]
    Overdrawn {
        /// Noise samples spent.
        draws: u64,
        /// Noise samples that the budget holds.
        limit: u64,
    },
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.to_string()
    }
}
