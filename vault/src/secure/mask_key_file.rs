//! Encodes the file of a job's mask key.
//!
//! Fields, each with its length in 64 bits before it, little endian; the last is HMAC-SHA256 of all before it, under the ledger's secret
//! key. A file of another party, or a modified one, is invalid.

use conclave_privacy::secagg::{MaskPublic, MaskSecret};
use conclave_proto::v1;
use zeroize::Zeroizing;

use crate::ledger::{Head, Secret};

const FORMAT: &str = "conclave mask key file 1";

/// A party's mask key for a job, with its signature.
pub struct JobKey {
    /// The job.
    pub job: String,
    /// SHA-256 of the job's text.
    pub spec_digest: [u8; 32],
    /// The secret half.
    pub secret: MaskSecret,
    /// The public half with its signature, byte for byte as it is sent at every opening.
    pub signed: v1::MaskKey,
    /// The ledger's head at the last opening: a ledger that does not hold it has been set back.
    pub head: Head,
}

impl JobKey {
    /// Returns the public half.
    pub fn public(&self) -> MaskPublic {
        self.secret.public()
    }

    /// Returns the file's bytes.
    pub(super) fn encode(&self, ledger_secret: &Secret) -> Zeroizing<Vec<u8>> {
        let head = self.head.to_bytes();
        let fields: [&[u8]; 8] = [
            FORMAT.as_bytes(),
            self.job.as_bytes(),
            &self.spec_digest,
            self.secret.bytes(),
            &self.signed.signature,
            self.signed.scheme.as_bytes(),
            self.signed.certificate.as_bytes(),
            &head,
        ];
        // Allocated once: a vector that grows leaves its old contents behind.
        let length = fields.iter().map(|field| 8 + field.len()).sum::<usize>() + 32;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        for field in fields {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field);
        }
        let mac = ledger_secret.mac(FORMAT, [bytes.as_slice()]);
        bytes.extend_from_slice(&mac);
        bytes
    }

    /// Reads the bytes of [`JobKey::encode`] under the same secret; `None` for anything else.
    pub(super) fn decode(bytes: &[u8], ledger_secret: &Secret) -> Option<Self> {
        let (body, mac) = bytes.split_last_chunk::<32>()?;
        if !ledger_secret.verifies(FORMAT, &[body], mac) {
            return None;
        }
        let mut fields = Fields(body);
        if fields.next()? != FORMAT.as_bytes() {
            return None;
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let job = text(fields.next()?)?;
        let spec_digest = fields.next()?.try_into().ok()?;
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(fields.next().filter(|bytes| bytes.len() == 32)?);
        let secret = MaskSecret::from_bytes(secret);
        let signature = fields.next()?.to_vec();
        let (scheme, certificate) = (text(fields.next()?)?, text(fields.next()?)?);
        let head = Head::from_bytes(fields.next()?)?;
        let signed = v1::MaskKey { public: secret.public().bytes().to_vec(), scheme, signature, certificate };
        fields.0.is_empty().then_some(Self { job, spec_digest, secret, signed, head })
    }
}

/// Hides the key.
impl std::fmt::Debug for JobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobKey of {}", self.job)
    }
}

/// Fields that are still to be read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<8>()?;
        let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(field)
    }
}
