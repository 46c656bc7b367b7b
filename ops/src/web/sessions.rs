//! Who has shown the token: sessions of browsers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::token;

/// Sessions at a time; the oldest gives way.
const MOST: usize = 32;
/// How long one lasts.
const LASTS: Duration = Duration::from_secs(12 * 3600);

/// A browser that has shown the token.
#[derive(Debug, Clone)]
struct Session {
    since: Instant,
    csrf: String,
}

/// All sessions, by the value of their cookie.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<String, Session>,
}

impl Sessions {
    /// Opens a session and gives its cookie's value.
    ///
    /// # Errors
    /// An operating system without random numbers.
    pub(super) fn begin(&mut self, now: Instant) -> Result<String, String> {
        self.open.retain(|_, session| now.duration_since(session.since) < LASTS);
        if self.open.len() >= MOST
            && let Some(oldest) = self.open.iter().min_by_key(|(_, session)| session.since).map(|(id, _)| id.clone())
        {
            self.open.remove(&oldest);
        }
        let (id, csrf) = (token::random()?, token::random()?);
        self.open.insert(id.clone(), Session { since: now, csrf });
        Ok(id)
    }

    /// The word that a form of this session must carry. Ids are 256 random bits, so that looking one up tells nothing of others.
    pub(super) fn csrf(&self, id: &str, now: Instant) -> Option<String> {
        let session = self.open.get(id).filter(|session| now.duration_since(session.since) < LASTS);
        session.map(|session| session.csrf.clone())
    }

    /// Ends a session.
    pub(super) fn end(&mut self, id: &str) {
        self.open.remove(id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sessions_end_and_the_oldest_gives_way() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let first = sessions.begin(start).unwrap();
        assert_eq!(sessions.csrf(&first, start).unwrap().len(), 64);
        assert!(sessions.csrf(&first, start + LASTS).is_none() && sessions.csrf("x", start).is_none());
        let later: Vec<String> = (1..=MOST as u64).map(|s| sessions.begin(start + Duration::from_secs(s)).unwrap()).collect();
        let now = start + Duration::from_secs(60);
        assert!(sessions.csrf(&first, now).is_none() && later.iter().all(|id| sessions.csrf(id, now).is_some()));
        sessions.end(&later[0]);
        assert!(sessions.csrf(&later[0], now).is_none());
    }
}
