//! The identifying particulars of a party's documents: software, keys and the ledger's head.

use std::fs;
use std::path::Path;

use conclave_pages::document::{Fact, fact};
use conclave_proto::ca;
use conclave_vault::ledger::events::hex;
use conclave_vault::ledger::schema;
use conclave_vault::secure::Fingerprint;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::link::load_identity;

/// The particulars of a document, as they are when it is written.
#[derive(Debug, Clone)]
pub(crate) struct Papers {
    pub(crate) organisation: String,
    pub(crate) software: &'static str,
    /// SHA-256 of the party's public key, and of its certificate; the reason where they can't be read.
    identity: Result<(String, String), String>,
    /// Number and hash of the ledger's last entry.
    head: (u64, String),
}

impl Papers {
    /// Reads the particulars. An identity that can't be read is stated as such.
    ///
    /// # Errors
    /// Fails if the ledger can't be read.
    pub(crate) fn read(config: &PartyConfig) -> Result<Self, StartError> {
        let connection = schema::connect_read_only(&config.ledger)?;
        let tail = connection.query_row("SELECT seq, hash FROM tail", [], |row| Ok((row.get(0)?, row.get::<_, [u8; 32]>(1)?)));
        let (seq, hash) = tail.map_err(conclave_vault::ledger::LedgerError::from)?;
        let organisation = match &config.organisation {
            Some(organisation) => format!("{organisation} (party {})", config.name),
            None => config.name.clone(),
        };
        Ok(Self {
            organisation,
            software: concat!("conclave-party ", env!("CARGO_PKG_VERSION")),
            identity: identity(config).map_err(|e| e.to_string()),
            head: (seq, hex(&hash)),
        })
    }

    /// Returns the particulars as facts.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let mut facts = vec![fact("software", self.software)];
        match &self.identity {
            Ok((key, certificate)) => {
                facts.push(fact("owner's key", key));
                facts.push(fact("owner's certificate", format!("SHA-256 {certificate}")));
            }
            Err(why) => facts.push(fact("owner's key", format!("not readable: {why}"))),
        }
        let (seq, hash) = &self.head;
        facts.push(fact("ledger head", format!("entry {seq}, SHA-256 {hash}")));
        facts
    }
}

fn identity(config: &PartyConfig) -> Result<(String, String), StartError> {
    let key = own_fingerprint(config)?.to_string();
    let certificate = read(&config.identity.join("certificate.pem"))?;
    Ok((key, ca::fingerprint(&certificate)?))
}

/// Returns the fingerprint of this party's identity key, even before its certificate is signed.
///
/// # Errors
/// Fails if key or certificate can't be read or don't match.
pub(crate) fn own_fingerprint(config: &PartyConfig) -> Result<Fingerprint, StartError> {
    let file = config.identity.join("certificate.pem");
    if !file.exists() {
        // Not signed yet: the certificate will be for the existing key.
        return Ok(Fingerprint(ca::digest_of_key(&read(&config.key)?)?));
    }
    // Loaded as by the daemon, which checks that key, certificate and name match.
    load_identity(&config.identity, &config.key, &config.name)?;
    Ok(Fingerprint(ca::key_digest(&read(&file)?)?))
}

fn read(file: &Path) -> Result<String, StartError> {
    fs::read_to_string(file).map_err(|e| StartError::Input(format!("{}: {e}", file.display())))
}
