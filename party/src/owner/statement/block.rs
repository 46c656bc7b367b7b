//! A statement is made of blocks, whatever format it is written in.

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
    /// Names and what belongs to them.
    Facts(Vec<(String, String)>),
    /// Text to be shown as it stands.
    Verbatim(String),
}
