//! Holds the ledger's secret key: 256 bits that never leave the owner's machine and are not in the ledger's file.
//!
//! With it the party recognises its own heads when others show them, and fingerprints its data so that the hashes reveal nothing. It lies
//! in the identity folder, so that restoring an old ledger does not restore it too.

use std::path::Path;

use conclave_ops::files::check_regular;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::error::LedgerError;
use super::events::{hex, unhex};
use conclave_ops::private_files::{self, with_suffix};

/// Name of the key's file in the identity folder.
pub const SECRET_FILE: &str = "ledger-secret.key";

/// A keyed hash function.
#[derive(Clone)]
pub struct Secret {
    key: hmac::Key,
}

/// Hides the key.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Reads the key's file.
    ///
    /// # Errors
    /// [`LedgerError::Secret`] where it is missing or no key.
    pub fn load(path: &Path) -> Result<Self, LedgerError> {
        let bad = |reason: String| LedgerError::Secret { file: path.to_owned(), reason };
        let text = Zeroizing::new(check_regular(path).and_then(|()| std::fs::read_to_string(path)).map_err(|e| {
            bad(format!("cannot be read ({e}): it was made with the ledger by `init`; restore it from where you keep your keys"))
        })?);
        let bytes = unhex::<32>(text.trim_end()).map(Zeroizing::new);
        let bytes = bytes.ok_or_else(|| bad("is not the key that `init` made: 64 hexadecimal digits on one line".into()))?;
        Ok(Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes.as_slice()) })
    }

    /// Reads the key's file, or makes a key where there is none: durable before anything depends on it.
    ///
    /// # Errors
    /// As [`Secret::load`], and where the file can't be written.
    pub fn load_or_make(path: &Path) -> Result<Self, LedgerError> {
        if !path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
            let mut bytes = Zeroizing::new([0; 32]);
            let filled = SystemRandom::new().fill(bytes.as_mut_slice());
            filled.map_err(|_| LedgerError::io(path, &std::io::Error::other("the system gives no random numbers")))?;
            let text = Zeroizing::new(hex(bytes.as_slice()) + "\n");
            write_private(path, text.as_bytes()).map_err(|e| LedgerError::io(path, &e))?;
        } else {
            // A process that made it may have been killed before its name was on disk.
            private_files::sync_folder(conclave_ops::files::parent_folder(path)).map_err(|e| LedgerError::io(path, &e))?;
        }
        Self::load(path)
    }

    /// Returns the HMAC-SHA256 of the parts, each preceded by its length, under this key's domain.
    pub fn mac<'a>(&self, domain: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        Pieces(self.context(domain, parts)).finish()
    }

    /// Returns the [`Secret::mac`] of a name and a part of `length` bytes that comes in pieces.
    pub(crate) fn mac_in_pieces(&self, domain: &str, name: &[u8], length: u64) -> Pieces {
        let mut context = self.context(domain, [name]);
        context.update(&length.to_le_bytes());
        Pieces(context)
    }

    /// Returns true where `mac` is that of the parts; takes the same time for every other value.
    pub(crate) fn verifies(&self, domain: &str, parts: &[&[u8]], mac: &[u8; 32]) -> bool {
        let expected = self.mac(domain, parts.iter().copied());
        expected.iter().zip(mac).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
    }

    fn context<'a>(&self, domain: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.key);
        for part in std::iter::once(domain.as_bytes()).chain(parts) {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        context
    }
}

/// A hash in progress.
pub struct Pieces(hmac::Context);

impl Pieces {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let mut mac = [0; 32];
        mac.copy_from_slice(self.0.sign().as_ref());
        mac
    }
}

/// Writes a file that only its owner may read, under another name until it is whole and synced, and syncs its folder.
fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let folder = conclave_ops::files::parent_folder(path);
    std::fs::create_dir_all(folder)?;
    let draft = with_suffix(path, ".new");
    if draft.exists() {
        // A crash has left it half made.
        std::fs::remove_file(&draft)?;
    }
    private_files::create(&draft, text)?;
    std::fs::rename(&draft, path)?;
    private_files::sync_folder(folder)
}
