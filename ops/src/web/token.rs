//! The token that opens a daemon's pages: a file that only the daemon's user reads.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes of a token: 256 bits.
const BYTES: usize = 32;
/// The fewest characters of a token that an operator wrote by hand.
const SHORTEST: usize = 32;
/// The most of a file that is read as a token.
const LONGEST: u64 = 1024;

/// A token, kept as a keyed digest alone, so that comparing takes as long for a near miss as for any other.
#[derive(Debug)]
pub(super) struct Token {
    key: hmac::Key,
    tag: hmac::Tag,
    /// Tells this daemon's cookies from those of another on the same host: cookies know no ports.
    pub(super) mark: String,
}

impl Token {
    /// The token in a file, made where there is none.
    ///
    /// # Errors
    /// A sentence that names the file: it can't be made or read, others may read it, or it holds no token.
    pub(super) fn at(path: &Path) -> Result<Self, String> {
        let named = |what: String| format!("{}: {what}", path.display());
        match make(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(named(format!("the token for the pages can't be kept there ({e})"))),
            Ok(()) => tracing::info!("made {}: it holds the token that opens the pages", path.display()),
        }
        let text = read(path).map_err(|e| named(e.to_string()))?;
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(named(format!(
                "holds no token ({SHORTEST} printable characters or more): delete it, and one is made at the next start"
            )));
        }
        Self::of(text).map_err(named)
    }

    fn of(text: &str) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the operating system gives no random numbers".to_owned())?;
        let tag = hmac::sign(&key, text.as_bytes());
        let mark = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        Ok(Self { key, tag, mark: hex(&mark.as_ref()[..6]) })
    }

    /// Whether this is the token.
    pub(super) fn is(&self, presented: &str) -> bool {
        hmac::verify(&self.key, presented.trim().as_bytes(), self.tag.as_ref()).is_ok()
    }
}

fn make(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(format!("{}\n", random().map_err(std::io::Error::other)?).as_bytes())?;
    file.sync_all()
}

fn read(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(std::io::Error::other(format!(
                "others may read this token (mode {:o}): chmod 600, and delete it if anybody may have",
                mode & 0o777
            )));
        }
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// 256 random bits in hexadecimal.
///
/// # Errors
/// An operating system without random numbers.
pub(super) fn random() -> Result<String, String> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the operating system gives no random numbers".to_owned())?;
    Ok(hex(&bytes))
}

/// In hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_made_once_and_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::at(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 2 * BYTES);
        assert!(token.is(&text) && Token::at(&path).unwrap().is(text.trim()));
        assert_eq!(token.mark, Token::at(&path).unwrap().mark);
        for wrong in ["", "x", &text[1..], &format!("{}0", text.trim())] {
            assert!(!token.is(wrong), "{wrong}");
        }
        let another = Token::at(&folder.path().join("another")).unwrap();
        assert!(!another.is(&text) && another.mark != token.mark);
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_may_read_or_that_is_none_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::at(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Token::at(&path).unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short\n").unwrap();
        assert!(Token::at(&path).unwrap_err().contains("holds no token"));
        assert!(Token::at(&folder.path().join("no/such/folder")).unwrap_err().contains("can't be kept"));
    }
}
