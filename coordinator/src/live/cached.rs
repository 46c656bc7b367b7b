//! A shared, rate-limited cache of what takes a moment to compute for a page: computed once for all who look, in a small
//! share of a thread's time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nothing is computed anew before this time has passed, nor before [`REST`] times as long as it took.
const LEAST: Duration = Duration::from_secs(1);
/// One part in so many of a thread's time goes into it.
const REST: u32 = 100;
/// Nobody looks any more.
const LEFT: Duration = Duration::from_secs(120);

/// Something that is computed anew only where that is due.
#[derive(Debug)]
pub(crate) struct Cached<T>(Arc<tokio::sync::Mutex<Option<Computed<T>>>>);

#[derive(Debug)]
struct Computed<T> {
    at: Instant,
    took: Duration,
    content: Arc<T>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + Sync + 'static> Cached<T> {
    /// What was computed last, computed anew where that is due, on a thread that may block. `None` where that failed.
    ///
    /// Who stops waiting stops nothing: what was begun is there for the next, so that asking and leaving costs no more than staying.
    pub(crate) async fn get(&self, compute: impl FnOnce() -> T + Send + 'static) -> Option<Arc<T>> {
        let mut kept = Arc::clone(&self.0).lock_owned().await;
        if let Some(last) = kept.as_ref().filter(|last| last.at.elapsed() < LEAST.max(last.took * REST)) {
            return Some(Arc::clone(&last.content));
        }
        let computed = tokio::task::spawn_blocking(move || {
            let begin = Instant::now();
            let content = Arc::new(compute());
            *kept = Some(Computed { at: Instant::now(), took: begin.elapsed(), content: Arc::clone(&content) });
            content
        });
        computed.await.ok()
    }
}

/// What is kept of things while somebody looks at them.
#[derive(Debug)]
pub(crate) struct CachedByKey<K, V>(Mutex<HashMap<K, (Arc<V>, Instant)>>);

impl<K, V> Default for CachedByKey<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Default> CachedByKey<K, V> {
    /// What is kept of one that somebody looks at now.
    pub(crate) fn at(&self, key: K) -> Arc<V> {
        let now = Instant::now();
        // Entries are added whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (_, looked)| now.duration_since(*looked) < LEFT);
        let (kept, looked) = all.entry(key).or_insert_with(|| (Arc::default(), now));
        *looked = now;
        Arc::clone(kept)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn many_who_look_are_shown_one_computation() {
        let (looked, runs): (CachedByKey<&str, Cached<u32>>, _) = (CachedByKey::default(), Arc::new(AtomicU32::new(0)));
        for _ in 0..50 {
            let runs = Arc::clone(&runs);
            let content = looked.at("j").get(move || runs.fetch_add(1, Ordering::Relaxed)).await.unwrap();
            assert_eq!(*content, 0);
        }
        assert_eq!(*looked.at("other").get(|| 7).await.unwrap(), 7);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn who_leaves_before_it_is_computed_leaves_it_to_the_next() {
        let (cached, go) = (Cached::default(), Arc::new(std::sync::Barrier::new(2)));
        let wait = Arc::clone(&go);
        let asked = cached.get(move || {
            wait.wait();
            1
        });
        // Polled once, so that it is under way, and dropped.
        tokio::select! { biased; _ = asked => unreachable!("nothing has let it go on"), () = std::future::ready(()) => {} }
        tokio::task::spawn_blocking(move || go.wait()).await.unwrap();
        assert_eq!(*cached.get(|| 2).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn what_can_not_be_computed_can_be_tried_again() {
        let cached = Cached::default();
        assert!(cached.get(|| panic!("a test's")).await.is_none());
        assert_eq!(*cached.get(|| 3).await.unwrap(), 3);
    }
}
