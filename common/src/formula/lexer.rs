//! The words of a formula and their places.

use super::error::FormulaError;
use super::span::Span;

/// One word of a formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name of a column or a function.
    Name(String),
    /// A name between backticks, which is a column.
    Quoted(String),
    Number(f64),
    Symbol(&'static str),
    End,
}

/// The symbols, each before those that begin it.
const SYMBOLS: [&str; 17] = ["||", "**", "~", "+", "-", "*", "/", "^", ":", "(", ")", "[", "]", ",", "=", "|", "."];

/// Returns the words of a text, of which the last is [`Token::End`].
///
/// # Errors
/// The first character that begins no word, and a number or a quotation that is not complete.
pub(super) fn words(text: &str) -> Result<Vec<(Token, Span)>, FormulaError> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            at += blank;
            continue;
        }
        let (token, length) =
            word(rest).map_err(|(length, message)| FormulaError::new(Span { start: at, end: at + length.max(1) }, message))?;
        words.push((token, Span { start: at, end: at + length }));
        at += length;
    }
    words.push((Token::End, Span { start: text.len(), end: text.len() }));
    Ok(words)
}

/// Returns the first word of a text that begins with no blank, and its length; or the length of what is wrong, and the error.
fn word(rest: &str) -> Result<(Token, usize), (usize, String)> {
    let first = rest.chars().next().unwrap_or(' ');
    let second = rest.chars().nth(1).unwrap_or(' ');
    if first == '`' {
        let (name, _) =
            rest[1..].split_once('`').ok_or((1, "this ` has no second one: write a column's name between two".to_owned()))?;
        return Ok((Token::Quoted(name.to_owned()), name.len() + 2));
    }
    if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
        return number(rest);
    }
    if is_initial(first) || (first == '.' && is_initial(second)) {
        let length = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    symbol.map(|symbol| (Token::Symbol(symbol), symbol.len())).ok_or_else(|| (first.len_utf8(), unknown(first)))
}

fn is_initial(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn number(rest: &str) -> Result<(Token, usize), (usize, String)> {
    let digits = |text: &str| text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let mut length = digits(rest);
    let after = &rest[length..];
    if let Some(exponent) = after.strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let figures = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
        if figures > 0 {
            length += after.len() - unsigned.len() + figures;
        }
    }
    match rest[..length].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), length)),
        _ => Err((length, format!("`{}` is no finite number", &rest[..length]))),
    }
}

fn unknown(c: char) -> String {
    match c {
        '%' => "`%in%` and other operators between percent signs are not available: write interactions as `a:b`".to_owned(),
        '"' | '\'' => "a formula has no texts: write a column's name as it is, or between two `".to_owned(),
        '>' | '<' | '!' | '&' => "a formula has no comparisons: store the result as a binary column".to_owned(),
        '$' | '@' => "a formula names columns alone: write `age`, not `data$age`".to_owned(),
        c => format!("`{}` has no meaning in a formula", crate::text::shown(c)),
    }
}
