//! Shared, rate-limited cache of values that are slow to compute for a page: computed once for all viewers, in a small share of a
//! thread's time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two computations; see also [`REST_FACTOR`].
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Factor by which the pause after a computation exceeds its duration.
const REST_FACTOR: u32 = 100;
/// Time after its last view at which an entry is dropped.
const ABANDONED_AFTER: Duration = Duration::from_secs(120);

/// A value that is recomputed only when due.
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
    /// Returns the last value, recomputed if due on a thread that may block. `None` if the computation failed.
    ///
    /// A caller that stops waiting does not stop the computation, whose value is there for the next caller. Asking and leaving
    /// thus costs no more than waiting.
    pub(crate) async fn get(&self, compute: impl FnOnce() -> T + Send + 'static) -> Option<Arc<T>> {
        let mut kept = Arc::clone(&self.0).lock_owned().await;
        if let Some(last) = kept.as_ref().filter(|last| last.at.elapsed() < MIN_INTERVAL.max(last.took * REST_FACTOR)) {
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

/// Values by key, kept while they are viewed.
#[derive(Debug)]
pub(crate) struct CachedByKey<K, V>(Mutex<HashMap<K, (Arc<V>, Instant)>>);

impl<K, V> Default for CachedByKey<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Default> CachedByKey<K, V> {
    /// Returns the value for `key`, and notes that it is being viewed.
    pub(crate) fn at(&self, key: K) -> Arc<V> {
        let now = Instant::now();
        // Entries are added in one step, so a poisoned lock is harmless.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (_, last_viewed)| now.duration_since(*last_viewed) < ABANDONED_AFTER);
        let (kept, last_viewed) = all.entry(key).or_insert_with(|| (Arc::default(), now));
        *last_viewed = now;
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
        let (last_viewed, runs): (CachedByKey<&str, Cached<u32>>, _) = (CachedByKey::default(), Arc::new(AtomicU32::new(0)));
        for _ in 0..50 {
            let runs = Arc::clone(&runs);
            let content = last_viewed.at("j").get(move || runs.fetch_add(1, Ordering::Relaxed)).await.unwrap();
            assert_eq!(*content, 0);
        }
        assert_eq!(*last_viewed.at("other").get(|| 7).await.unwrap(), 7);
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
        // Polled once, so that the computation has started, then dropped.
        tokio::select! { biased; _ = asked => unreachable!("the computation is still blocked"), () = std::future::ready(()) => {} }
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
