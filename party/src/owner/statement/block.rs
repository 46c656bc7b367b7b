//! The blocks of a statement, independent of its output format.

/// A part of a document. Text is plain; each format escapes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// The document's title.
    Title(String),
    /// A section's heading.
    Heading(&'static str),
    /// A paragraph.
    Text(String),
    /// Points.
    Points(Vec<String>),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    /// Text shown verbatim.
    Verbatim(String),
}
