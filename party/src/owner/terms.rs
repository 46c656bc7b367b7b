//! The owner's terms of one job: those of the decision, and those in the ledger's chain of hashes. Where they differ the stricter count.

use conclave_vault::consent::Request;
use conclave_vault::secure::Fingerprint;

use super::permit::{Permit, PermitError, check_stored};
use crate::ledger_views::{Approval, differences};

/// The terms of one job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// The permit in the file of decisions, a JSON object.
    decided: Option<String>,
    /// The signer's key in that file.
    signer: Option<[u8; 32]>,
    /// The approval in the ledger, once the job is entered there.
    entered: Option<Approval>,
}

impl Terms {
    /// Gathers the terms of a job.
    pub(crate) fn new(request: &Request, entered: Option<Approval>) -> Self {
        Self { decided: request.permit.clone(), signer: request.signer, entered }
    }

    fn entered(&self) -> Option<&str> {
        self.entered.as_ref().and_then(|approval| approval.permit.as_deref())
    }

    /// Checks both permits at a moment, Unix time in milliseconds.
    ///
    /// # Errors
    /// [`PermitError::Expired`], [`PermitError::Unreadable`]; [`PermitError::Revoked`] for an approval that the ledger has as revoked.
    pub(crate) fn check(&self, now_ms: i64) -> Result<(), PermitError> {
        if self.entered.as_ref().is_some_and(|approval| approval.is_revoked) {
            return Err(PermitError::Revoked);
        }
        self.decided.as_deref().into_iter().chain(self.entered()).try_for_each(|stored| check_stored(stored, now_ms))
    }

    /// Returns the permit that ends first, if there is one that can be read.
    pub(crate) fn permit(&self) -> Option<Permit> {
        let readable =
            [self.decided.as_deref(), self.entered()].into_iter().flatten().filter_map(|stored| Permit::read(stored).ok());
        readable.reduce(|a, b| match (a.last_day(), b.last_day()) {
            (Some(first), Some(second)) if second < first => b,
            (None, Some(_)) => b,
            _ => a,
        })
    }

    /// Returns the fingerprint of the key that signed the job; the ledger's, where it has one.
    pub(crate) fn signer(&self) -> Option<Fingerprint> {
        self.entered.as_ref().and_then(|approval| approval.signer).or(self.signer).map(Fingerprint)
    }

    /// Names each difference between the file of decisions and the ledger, as a sentence without its full stop.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        let of = |entered| differences(self.decided.as_deref(), self.signer, entered);
        self.entered.as_ref().map(of).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2027-03-31T00:00:00Z.
    const START: i64 = 1_806_451_200_000;
    const DAY_MS: i64 = 86_400_000;

    fn terms(decided: Option<&str>, entered: Option<Option<&str>>) -> Terms {
        let approval = |permit: Option<&str>| Approval { permit: permit.map(str::to_owned), ..Approval::read("{}") };
        Terms { decided: decided.map(str::to_owned), signer: None, entered: entered.map(approval) }
    }

    #[test]
    fn the_stricter_of_both_permits_counts_and_the_difference_is_named() {
        let (long, short) = ("{\"until\":\"2027-12-31\"}", "{\"until\":\"2027-03-31\"}");
        for of in [terms(Some(long), Some(Some(short))), terms(Some(short), Some(Some(long))), terms(None, Some(Some(short)))] {
            assert_eq!(of.check(START + DAY_MS - 1), Ok(()));
            assert!(matches!(of.check(START + DAY_MS), Err(PermitError::Expired(_))), "{of:?}");
            assert_eq!(of.permit().unwrap().words(), "valid through 2027-03-31 (UTC)");
            let named = of.disagreements();
            assert!(named.len() == 1 && named[0].starts_with("permit_differs: ") && named[0].contains("2027-03-31"), "{named:?}");
        }
        let spaced = "{ \"until\": \"2027-03-31\" }";
        for same in [terms(Some(short), None), terms(Some(short), Some(Some(spaced))), terms(None, Some(None)), terms(None, None)]
        {
            assert!(same.disagreements().is_empty(), "{same:?}");
        }
        let unreadable = terms(Some(long), Some(Some("later")));
        assert_eq!((unreadable.check(0), unreadable.disagreements().len()), (Err(PermitError::Unreadable), 1));
    }

    /// A file of decisions that was put back from before a revocation reopens nothing.
    #[test]
    fn a_revocation_in_the_ledger_counts() {
        let revoked = Approval { is_revoked: true, ..Approval::read("{}") };
        let of = Terms { decided: None, signer: None, entered: Some(revoked) };
        assert_eq!(of.check(0), Err(PermitError::Revoked));
    }

    #[test]
    fn the_ledgers_word_on_the_signer_counts() {
        let entered = |signer| Some(Approval { signer, ..Approval::read("{}") });
        let of = |decided, entered| Terms { decided: None, signer: decided, entered };
        let (a, b) = ([1; 32], [2; 32]);
        assert_eq!(of(Some(a), None).signer(), Some(Fingerprint(a)));
        assert_eq!(of(Some(a), entered(None)).signer(), Some(Fingerprint(a)));
        let differ = of(Some(a), entered(Some(b)));
        assert_eq!(differ.signer(), Some(Fingerprint(b)));
        assert!(differ.disagreements()[0].starts_with("signer_differs: "), "{differ:?}");
        assert!(of(Some(a), entered(Some(a))).disagreements().is_empty() && of(None, None).signer().is_none());
    }
}
