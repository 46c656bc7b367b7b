//! The result of an account.

use serde_json::Value;

/// An account: the JSON object, and its text.
pub(crate) type Account = (Value, String);
