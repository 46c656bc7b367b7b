//! Facts about parties that outlast their streams: software, checkpoints, certificates, and lists of retired and revoked members.

use conclave_proto::revoked::RevokedList;

use super::PartyRegistry;

/// Length of a checkpoint: number, hash, MAC.
const CHECKPOINT_BYTES: usize = 72;

impl PartyRegistry {
    /// Notes the software of a party that attaches.
    pub(crate) fn set_software(&self, party: &str, software: &str) {
        self.lock().software.insert(party.to_owned(), software.to_owned());
    }

    /// Returns the software with which the party attached last; empty if none is known.
    pub(crate) fn software(&self, party: &str) -> String {
        self.lock().software.get(party).cloned().unwrap_or_default()
    }

    /// Records a party's checkpoint; returns true if it is newer than the known one.
    pub(crate) fn note_checkpoint(&self, party: &str, checkpoint: &[u8]) -> bool {
        let Some(number) = checkpoint_number(checkpoint) else { return false };
        let mut inner = self.lock();
        if inner.checkpoints.get(party).and_then(|known| checkpoint_number(known)).is_some_and(|known| known >= number) {
            return false;
        }
        inner.checkpoints.insert(party.to_owned(), checkpoint.to_vec());
        true
    }

    /// The newest checkpoint that the party has published; empty if none is known.
    pub(crate) fn checkpoint(&self, party: &str) -> Vec<u8> {
        self.lock().checkpoints.get(party).cloned().unwrap_or_default()
    }

    /// Replaces the list of retired members.
    pub(crate) fn set_retired(&self, list: RevokedList) {
        self.lock().retired = list;
    }

    /// Returns the first retired member among an analyst and the parties of a job.
    pub(crate) fn retired_member(&self, analyst: &str, parties: &[String]) -> Option<String> {
        let inner = self.lock();
        let members = parties.iter().map(|party| format!("party/{party}")).chain([format!("analyst/{analyst}")]);
        members.into_iter().find(|member| inner.retired.has_member(member))
    }

    /// Returns true for a retired party.
    pub(crate) fn is_retired(&self, party: &str) -> bool {
        self.lock().retired.has_member(&format!("party/{party}"))
    }

    /// Replaces the list of revoked certificates.
    pub(crate) fn set_revoked(&self, list: RevokedList) {
        self.lock().revoked = list;
    }

    /// Records the serial number of the certificate with which a party attaches; returns true if it is another than the known one.
    pub(crate) fn note_certificate(&self, party: &str, serial: &str) -> bool {
        self.lock().certificates.insert(party.to_owned(), serial.to_owned()).as_deref() != Some(serial)
    }

    /// Returns true for a party that the coordinator admits no more: the list names it, or the certificate with which it attached
    /// last.
    pub(crate) fn is_revoked(&self, party: &str) -> bool {
        let inner = self.lock();
        let by_serial = inner.certificates.get(party).is_some_and(|serial| inner.revoked.has_serial(serial));
        by_serial || inner.revoked.has_member(&format!("party/{party}"))
    }
}

/// Sequence number of a checkpoint. Its other content is for the party that made it.
fn checkpoint_number(checkpoint: &[u8]) -> Option<u64> {
    let number = (checkpoint.len() == CHECKPOINT_BYTES).then(|| checkpoint.first_chunk::<8>())??;
    Some(u64::from_le_bytes(*number))
}
