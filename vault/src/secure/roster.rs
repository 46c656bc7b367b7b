//! Checks a roster that the coordinator sends, once, before it is entered in the ledger; from then on the entered one counts.

use std::time::SystemTime;

use conclave_privacy::secagg::{MaskPublic, Member, Roster, RosterError};
use conclave_proto::revoked::RevokedList;
use conclave_proto::{ca, mask_key, v1};

use super::pins::{Fingerprint, Pins};
use super::settings::{Peers, SecureSettings};

/// The facts that a roster is checked against. None depends on a record.
pub struct RosterCheck<'a> {
    /// The job.
    pub job: &'a str,
    /// SHA-256 of its text.
    pub spec_digest: &'a [u8; 32],
    /// Its parties, in its order.
    pub parties: &'a [String],
    /// Number of them that may collude with the coordinator.
    pub colluders: u32,
    /// The fingerprints that the job file names.
    pub members: &'a Pins,
    /// This party's name and mask key.
    pub own: (&'a str, MaskPublic),
    /// The party's own copy of the consortium's CA, PEM.
    pub ca_pem: &'a str,
    /// Revoked certificates.
    pub revoked: Option<&'a RevokedList>,
    /// The owner's settings.
    pub settings: &'a SecureSettings,
    /// The party's clock.
    pub moment: SystemTime,
}

/// A roster that passed the check.
#[derive(Debug)]
pub struct CheckedRoster {
    /// The roster.
    pub roster: Roster,
    /// The other facts that the ledger keeps of each member, in the roster's order.
    pub standing: Vec<MemberStanding>,
}

/// The evidence for a member's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStanding {
    /// True where the owner has pinned its identity key, and for this party itself.
    pub pinned: bool,
    /// The serial number of its certificate, in hexadecimal, by which it may be revoked later.
    pub serial: String,
}

/// The reason for refusing a roster: one fixed sentence each, which repeats neither pins nor any other setting of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RosterRefusal {
    /// Other members, or in another order.
    #[error("the roster's members are not the job's parties in their order")]
    Members,
    /// A key that its party has not signed for this job.
    #[error("a mask key of the roster is not signed by its party for this job")]
    Signature,
    /// A certificate that this party's CA has not signed, or that is not valid now.
    #[error("a certificate of the roster is not of the consortium's CA, or not valid now")]
    Certificate,
    /// A certificate that is revoked here.
    #[error("a certificate of the roster is revoked here")]
    Revoked,
    /// Another identity key than the job file names.
    #[error("an identity key of the roster is not the one that the job file names")]
    NotTheJobs,
    /// Another identity key than the owner has pinned, or none pinned where all must be.
    #[error("an identity key of the roster is not one that the owner has pinned")]
    NotPinned,
    /// Another mask key at this party's own place.
    #[error("the roster does not have this party's own mask key")]
    NotOwn,
    /// Two members that are one, or numbers that no roster has.
    #[error("the roster has too few or too many members or colluders, or two members with one key")]
    NoRoster,
}

impl From<RosterError> for RosterRefusal {
    fn from(_: RosterError) -> Self {
        Self::NoRoster
    }
}

impl RosterCheck<'_> {
    /// Checks the entries of a roster.
    ///
    /// # Errors
    /// [`RosterRefusal`]: the first defect of the first member with one.
    pub fn check(&self, entries: &[v1::RosterEntry]) -> Result<CheckedRoster, RosterRefusal> {
        let names = entries.iter().map(|entry| &entry.name);
        if !names.eq(self.parties) || !self.parties.iter().any(|party| party == self.own.0) {
            return Err(RosterRefusal::Members);
        }
        let checked = entries.iter().map(|entry| self.member(entry)).collect::<Result<Vec<_>, _>>()?;
        let (members, standing) = checked.into_iter().unzip();
        let roster = Roster::new(self.job, *self.spec_digest, self.colluders, members)?;
        Ok(CheckedRoster { roster, standing })
    }

    fn member(&self, entry: &v1::RosterEntry) -> Result<(Member, MemberStanding), RosterRefusal> {
        let name = &entry.name;
        let key = entry.key.as_ref().ok_or(RosterRefusal::Signature)?;
        let signed = mask_key::check(key, self.job, self.spec_digest, name).map_err(|_| RosterRefusal::Signature)?;
        mask_key::check_signer(key, self.ca_pem, self.moment).map_err(|_| RosterRefusal::Certificate)?;
        if self.revoked.is_some_and(|revoked| revoked.check_pem(&key.certificate).is_err()) {
            return Err(RosterRefusal::Revoked);
        }
        let fingerprint = Fingerprint(signed.identity);
        if self.members.of(name).is_some_and(|named| !named.contains(&fingerprint)) {
            return Err(RosterRefusal::NotTheJobs);
        }
        let own = name == self.own.0;
        if own && signed.public != self.own.1 {
            return Err(RosterRefusal::NotOwn);
        }
        let pinned = match self.settings.pins.of(name) {
            _ if own => true,
            Some(pins) if pins.contains(&fingerprint) => true,
            None if self.settings.peers == Peers::Ca => false,
            Some(_) | None => return Err(RosterRefusal::NotPinned),
        };
        let serial = ca::summarise(&key.certificate).map_err(|_| RosterRefusal::Certificate)?.serial;
        Ok((Member { name: name.clone(), identity: signed.identity, public: signed.public }, MemberStanding { pinned, serial }))
    }
}
