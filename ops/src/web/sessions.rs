//! Sessions of browsers that presented the token.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::secret;

/// Maximum number of sessions; a new one displaces the oldest.
const MAX_SESSIONS: usize = 32;
/// Lifetime of a session.
const LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// The session of one browser.
#[derive(Debug, Clone)]
struct Session {
    start: Instant,
    csrf: String,
}

/// All sessions by their cookie's value.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<String, Session>,
}

impl Sessions {
    /// Opens a session and returns its cookie's value.
    ///
    /// # Errors
    /// A failure of the system's random number generator.
    pub(super) fn begin(&mut self, now: Instant) -> Result<String, String> {
        self.open.retain(|_, session| now.duration_since(session.start) < LIFETIME);
        if self.open.len() >= MAX_SESSIONS
            && let Some(oldest) = self.open.iter().min_by_key(|(_, session)| session.start).map(|(id, _)| id.clone())
        {
            self.open.remove(&oldest);
        }
        let (id, csrf) = (secret::random()?, secret::random()?);
        self.open.insert(id.clone(), Session { start: now, csrf });
        Ok(id)
    }

    /// Returns the CSRF token of a session. Ids are 256 random bits, so the timing of a lookup reveals nothing about others.
    pub(super) fn csrf(&self, id: &str, now: Instant) -> Option<String> {
        let session = self.open.get(id).filter(|session| now.duration_since(session.start) < LIFETIME);
        session.map(|session| session.csrf.clone())
    }

    pub(super) fn end(&mut self, id: &str) {
        self.open.remove(id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sessions_end_and_the_oldest_is_displaced() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let first = sessions.begin(start).unwrap();
        assert_eq!(sessions.csrf(&first, start).unwrap().len(), 64);
        assert!(sessions.csrf(&first, start + LIFETIME).is_none() && sessions.csrf("x", start).is_none());
        let later: Vec<String> =
            (1..=MAX_SESSIONS as u64).map(|s| sessions.begin(start + Duration::from_secs(s)).unwrap()).collect();
        let now = start + Duration::from_secs(60);
        assert!(sessions.csrf(&first, now).is_none() && later.iter().all(|id| sessions.csrf(id, now).is_some()));
        sessions.end(&later[0]);
        assert!(sessions.csrf(&later[0], now).is_none());
    }
}
