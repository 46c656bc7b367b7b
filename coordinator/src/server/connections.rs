//! Members' established connections: their limits, and which of them must end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_proto::error::Fault;
use conclave_proto::identity::PeerIdentity;
use rustls_pki_types::CertificateDer;
use tokio::sync::oneshot;

/// Maximum connections of one member: a party needs one, an analyst one for each running command.
const MOST_OF_ONE: usize = 16;
/// Maximum connections in total: three thousand parties, plus analysts and streams that are being replaced. Each takes some sixty
/// kilobytes and a file descriptor.
const MOST: usize = 4096;

/// Register of established connections.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    by_member: HashMap<PeerIdentity, usize>,
}

#[derive(Debug)]
struct Entry {
    member: PeerIdentity,
    chain: Vec<CertificateDer<'static>>,
    /// Dropped to cut the connection.
    _cut: oneshot::Sender<()>,
}

/// A connection's slot in the register; freed when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    /// Resolves when the connection is to be cut.
    pub(super) cut: oneshot::Receiver<()>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change leaves the register usable, at worst miscounted by one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a member's connection. At the member's limit its oldest one is cut: a changed address or a dead router leaves such
    /// connections behind. At the total limit, the oldest one of the member with the most is cut.
    pub(super) fn enter(self: &Arc<Self>, member: PeerIdentity, chain: Vec<CertificateDer<'static>>) -> ConnectionSlot {
        let mut inner = self.lock();
        if inner.by_member.get(&member).is_some_and(|count| *count >= MOST_OF_ONE) {
            inner.cut_oldest_of(&member.clone());
        } else if inner.entries.len() >= MOST {
            let most = inner.by_member.iter().max_by_key(|(_, count)| **count).map(|(member, _)| member.clone());
            most.iter().for_each(|member| inner.cut_oldest_of(member));
        }
        inner.next += 1;
        let id = inner.next;
        let (guard, cut) = oneshot::channel();
        *inner.by_member.entry(member.clone()).or_default() += 1;
        inner.entries.insert(id, Entry { member, chain, _cut: guard });
        ConnectionSlot { connections: Arc::clone(self), id, cut }
    }

    /// Cuts the connections that `check` refuses, and logs their members.
    pub(super) fn sweep(&self, check: impl Fn(&[CertificateDer<'static>]) -> Result<PeerIdentity, Fault>) {
        let mut inner = self.lock();
        let refused: Vec<u64> = inner
            .entries
            .iter()
            .filter_map(|(id, entry)| {
                let fault = check(&entry.chain).err()?;
                tracing::warn!(member = %entry.member, reason = fault.message, "connection cut");
                Some(*id)
            })
            .collect();
        refused.into_iter().for_each(|id| inner.remove(id));
    }
}

impl Inner {
    fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if let Some(count) = self.by_member.get_mut(&entry.member) {
            *count -= 1;
            if *count == 0 {
                self.by_member.remove(&entry.member);
            }
        }
    }

    fn cut_oldest_of(&mut self, member: &PeerIdentity) {
        let oldest = self.entries.iter().find(|(_, entry)| entry.member == *member).map(|(id, _)| *id);
        if let Some(id) = oldest {
            tracing::warn!(%member, "too many connections: the oldest is cut");
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;
    use conclave_proto::identity::Role;

    fn member(name: &str) -> PeerIdentity {
        PeerIdentity::new(Role::Party, name).unwrap()
    }

    fn is_cut(slot: &mut ConnectionSlot) -> bool {
        slot.cut.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn a_members_oldest_connection_makes_room() {
        let connections = Arc::new(Connections::default());
        let mut other = connections.enter(member("b"), Vec::new());
        let mut places: Vec<ConnectionSlot> = (0..=MOST_OF_ONE).map(|_| connections.enter(member("a"), Vec::new())).collect();
        assert!(is_cut(&mut places[0]) && !is_cut(&mut places[1]) && !is_cut(&mut other));
        drop(places);
        assert_eq!(connections.lock().by_member.len(), 1);
        drop(other);
        assert!(connections.lock().entries.is_empty());
    }

    #[test]
    fn the_member_with_the_most_makes_room_for_others() {
        let connections = Arc::new(Connections::default());
        let name = |i: usize| format!("m{i}");
        let mut few: Vec<ConnectionSlot> = (0..(MOST - 2)).map(|i| connections.enter(member(&name(i)), Vec::new())).collect();
        let mut many: Vec<ConnectionSlot> = (0..2).map(|_| connections.enter(member("many"), Vec::new())).collect();
        let _new = connections.enter(member("new"), Vec::new());
        assert!(is_cut(&mut many[0]) && !is_cut(&mut many[1]) && !few.iter_mut().any(is_cut));
    }

    #[test]
    fn who_is_refused_is_cut() {
        let connections = Arc::new(Connections::default());
        let chain = |byte: u8| vec![CertificateDer::from(vec![byte])];
        let (mut a, mut b) = (connections.enter(member("a"), chain(1)), connections.enter(member("b"), chain(2)));
        connections.sweep(|chain| match chain[0].as_ref() {
            [1] => Ok(member("a")),
            _ => Err(Fault::new(ErrorCode::Unauthenticated, "revoked")),
        });
        assert!(!is_cut(&mut a) && is_cut(&mut b));
    }
}
