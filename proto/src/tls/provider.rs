//! The cryptographic provider of this crate, *ring*, and keys loaded through it.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls_pki_types::PrivateKeyDer;

/// Returns the provider.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Loads an identity's key.
pub(super) fn load_key(key: PrivateKeyDer<'static>) -> Result<Arc<dyn rustls::sign::SigningKey>, rustls::Error> {
    provider().key_provider.load_private_key(key)
}
