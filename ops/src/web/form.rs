//! The fields of a form.

/// The form field with the CSRF token.
pub const CSRF_FIELD: &str = "csrf";

/// The fields of a submitted form, an extension of every `POST` that reaches the pages.
#[derive(Debug, Clone, Default)]
pub struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// Creates fields without a request.
    #[must_use]
    pub fn new(fields: &[(&str, &str)]) -> Self {
        Self(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// Returns the first field with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}
