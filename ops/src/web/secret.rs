//! Secret texts: random ones, those of a file, and their comparison in constant time.

use std::io::Read;
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Number of random bytes of a secret: 256 bits.
const BYTES: usize = 32;
/// Maximum number of bytes read from a token file.
const MAX_FILE_BYTES: u64 = 1024;

/// Reads a token file, which only its user may read.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(std::io::Error::other(format!(
                "others may read this token (mode {:o}): chmod 600, and delete it if somebody may have read it",
                mode & 0o777
            )));
        }
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Draws 256 random bits in hexadecimal.
///
/// # Errors
/// A failure of the system's random number generator.
pub(super) fn random() -> Result<String, String> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system's random number generator failed".to_owned())?;
    Ok(hex(&bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Compares two texts in constant time.
pub(super) fn equal(one: &str, other: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, other.as_bytes());
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}
