//! The fields of a form.

/// The form field that carries a session's word.
pub const CSRF_FIELD: &str = "csrf";

/// The fields of a form that was sent, as an extension of every `POST` that reaches the pages.
#[derive(Debug, Clone, Default)]
pub struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// These fields, as if they had been sent.
    #[must_use]
    pub fn of(fields: &[(&str, &str)]) -> Self {
        Self(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}
