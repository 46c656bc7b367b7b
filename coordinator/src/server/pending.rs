//! Pending handshakes: their limits, and which of them makes room.

use std::collections::{BTreeMap, HashMap};

use conclave_ops::source::SourceHost;
use tokio::task::AbortHandle;

/// Maximum pending handshakes in total: each takes a file descriptor and some ten kilobytes.
const MOST: usize = 512;
/// Maximum pending handshakes from one address: a site behind one router has several members.
const MOST_FROM_ONE: usize = 128;

/// Table of handshakes. When it is full the oldest makes room: an honest peer finishes in a moment, so an old entry is not one.
#[derive(Debug, Default)]
pub(super) struct Pending {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    by_source: HashMap<SourceHost, usize>,
}

#[derive(Debug)]
struct Entry {
    source: SourceHost,
    task: Option<AbortHandle>,
}

impl Pending {
    /// Adds a handshake from `source`; the flag is true if another one was dropped for it.
    pub(super) fn enter(&mut self, source: SourceHost) -> (u64, bool) {
        let crowded = self.by_source.get(&source).is_some_and(|count| *count >= MOST_FROM_ONE);
        let oldest = match crowded {
            true => self.entries.iter().find(|(_, entry)| entry.source == source).map(|(id, _)| *id),
            false if self.entries.len() >= MOST => self.entries.keys().next().copied(),
            false => None,
        };
        oldest.into_iter().for_each(|id| self.drop_handshake(id));
        self.next += 1;
        self.entries.insert(self.next, Entry { source, task: None });
        *self.by_source.entry(source).or_default() += 1;
        (self.next, oldest.is_some())
    }

    /// Sets the task of a handshake, which may have ended already.
    pub(super) fn set_task(&mut self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Removes a handshake that has ended, successfully or not.
    pub(super) fn leave(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if let Some(count) = self.by_source.get_mut(&entry.source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&entry.source);
            }
        }
    }

    /// Drops the oldest handshakes when the machine has no file descriptors left.
    pub(super) fn drop_oldest(&mut self, many: usize) {
        let oldest: Vec<u64> = self.entries.keys().take(many).copied().collect();
        oldest.into_iter().for_each(|id| self.drop_handshake(id));
    }

    fn drop_handshake(&mut self, id: u64) {
        if let Some(task) = self.entries.get(&id).and_then(|entry| entry.task.as_ref()) {
            task.abort();
        }
        self.leave(id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::IpAddr;

    use super::*;

    fn source(address: &str) -> SourceHost {
        SourceHost::at(address.parse().unwrap())
    }

    #[test]
    fn the_oldest_of_the_same_source_makes_room_and_then_the_oldest_of_all() {
        let mut pending = Pending::default();
        let first = pending.enter(source("10.0.0.1")).0;
        let crowd: Vec<u64> = (0..MOST_FROM_ONE).map(|_| pending.enter(source("10.0.0.2")).0).collect();
        assert_eq!(pending.entries.len(), MOST_FROM_ONE + 1);
        assert!(pending.enter(source("::ffff:10.0.0.2")).1, "the same host, mapped");
        assert!(pending.entries.contains_key(&first) && !pending.entries.contains_key(&crowd[0]));
        for host in 0..(MOST - MOST_FROM_ONE - 1) as u128 {
            assert!(!pending.enter(SourceHost::at(IpAddr::V6((host << 64).into()))).1);
        }
        assert!(pending.enter(source("10.9.9.9")).1 && !pending.entries.contains_key(&first));
        assert_eq!(pending.entries.len(), MOST);
    }

    #[test]
    fn who_has_left_counts_no_more() {
        let mut pending = Pending::default();
        let ids: Vec<u64> = (0..MOST_FROM_ONE).map(|_| pending.enter(source("2001:db8::1")).0).collect();
        ids.iter().for_each(|id| pending.leave(*id));
        pending.leave(ids[0]);
        assert!(pending.entries.is_empty() && pending.by_source.is_empty());
        assert!(!pending.enter(source("2001:db8::2")).1);
    }

    #[tokio::test]
    async fn a_dropped_handshake_is_aborted() {
        let mut pending = Pending::default();
        let task = tokio::spawn(std::future::pending::<()>());
        let id = pending.enter(source("10.0.0.1")).0;
        pending.set_task(id, task.abort_handle());
        pending.drop_oldest(16);
        assert!(task.await.unwrap_err().is_cancelled());
    }
}
