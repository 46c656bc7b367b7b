//! The token for a daemon's pages, in a file that only the daemon's user may read.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ring::hmac;
use ring::rand::SystemRandom;

use super::once::Links;
use super::secret::{hex, random, read_text};
use crate::clock::Clock;

/// Minimum length of a token written by an operator.
const MIN_LENGTH: usize = 32;

/// A token, stored only as a keyed digest, so that the time of a comparison reveals nothing about it.
#[derive(Debug)]
pub(super) struct Token {
    key: hmac::Key,
    tag: hmac::Tag,
    /// The links made from this token.
    links: Mutex<Links>,
    /// Distinguishes this daemon's cookies from those of another on the same host, since cookies ignore ports.
    pub(super) mark: String,
}

impl Token {
    /// Reads the token from a file, which is created if missing.
    ///
    /// # Errors
    /// A message that names the file: it can't be created or read, others may read it, or it holds no token.
    pub(super) fn load_or_create(path: &Path) -> Result<Self, String> {
        let named = |what: String| format!("{}: {what}", path.display());
        match create(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(named(format!("the token file for the pages can't be created ({e})"))),
            Ok(()) => tracing::info!("created {} with the token for the pages", path.display()),
        }
        let text = read_text(path).map_err(|e| named(e.to_string()))?;
        let text = text.trim();
        if text.len() < MIN_LENGTH || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(named(format!(
                "holds no token (at least {MIN_LENGTH} printable characters): delete the file, and the next start creates one"
            )));
        }
        Self::from_text(text).map_err(named)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system's random number generator failed".to_owned())?;
        let tag = hmac::sign(&key, text.as_bytes());
        let mark = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let links = Mutex::new(Links::new(text, Clock::Coordinator.now_ms()));
        Ok(Self { key, tag, links, mark: hex(&mark.as_ref()[..6]) })
    }

    /// Accepts a link that was made from this token and not used before.
    pub(super) fn accepts(&self, link: &str) -> bool {
        // Every change is atomic, so the links are usable even after a panic of a holder.
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.accept(link, Clock::Coordinator.now_ms())
    }

    pub(super) fn matches(&self, presented: &str) -> bool {
        hmac::verify(&self.key, presented.trim().as_bytes(), self.tag.as_ref()).is_ok()
    }
}

fn create(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(format!("{}\n", random().map_err(std::io::Error::other)?).as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_created_once_and_only_for_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::load_or_create(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 64);
        assert!(token.matches(&text) && Token::load_or_create(&path).unwrap().matches(text.trim()));
        assert_eq!(token.mark, Token::load_or_create(&path).unwrap().mark);
        for wrong in ["", "x", &text[1..], &format!("{}0", text.trim())] {
            assert!(!token.matches(wrong), "{wrong}");
        }
        let another = Token::load_or_create(&folder.path().join("another")).unwrap();
        assert!(!another.matches(&text) && another.mark != token.mark);
    }

    #[cfg(unix)]
    #[test]
    fn a_readable_or_invalid_token_file_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Token::load_or_create(&path).unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short\n").unwrap();
        assert!(Token::load_or_create(&path).unwrap_err().contains("holds no token"));
        assert!(Token::load_or_create(&folder.path().join("no/such/folder")).unwrap_err().contains("can't be created"));
    }
}
