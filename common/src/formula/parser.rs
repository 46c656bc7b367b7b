//! The reading of formulas by precedence: `^`, then `:`, then `*`, then `+` and `-`.

use super::arithmetic::quoted;
use super::error::FormulaError;
use super::lexer::{Token, words};
use super::limits::{MOST_BYTES, MOST_NESTED};
use super::operands::{Effects, FormulaOffset, Operand, Sum};
use super::span::Span;
use super::terms::{Quantity, Term, TermFactor, Terms};

/// A result of reading.
pub(super) type Read<T> = Result<T, FormulaError>;

/// A formula: an outcome, terms, and what else enters the linear predictor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Formula {
    pub(crate) outcome: (String, Span),
    pub(crate) intercept: bool,
    /// The terms, those with fewer factors first.
    pub(crate) terms: Vec<Term>,
    pub(crate) offset: Option<FormulaOffset>,
    pub(crate) effects: Vec<Effects>,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub(crate) fn parse(text: &str) -> Read<Self> {
        if text.len() > MOST_BYTES {
            let message = format!("the formula has {} bytes; at most {MOST_BYTES}", text.len());
            return Err(FormulaError::new(Span::default(), message));
        }
        let mut parser = Parser { words: words(text)?, at: 0, depth: 0 };
        let outcome = parser.outcome()?;
        let sum = parser.sum()?;
        parser.end()?;
        let mut terms = sum.terms.0;
        terms.sort_by_key(|term| term.factors.len());
        let intercept = sum.intercept.is_none_or(|(stated, _)| stated);
        Ok(Self { outcome, intercept, terms, offset: sum.offset, effects: sum.effects })
    }
}

/// A position in the words of a formula.
pub(super) struct Parser {
    words: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> (&Token, Span) {
        self.words.get(self.at).or(self.words.last()).map_or((&Token::End, Span::default()), |(token, span)| (token, *span))
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek().0, Token::Symbol(found) if *found == symbol)
    }

    /// Takes the next word.
    pub(super) fn next(&mut self) -> (Token, Span) {
        let (token, span) = self.peek();
        let next = (token.clone(), span);
        self.at += 1;
        next
    }

    /// Takes one of these symbols, if it is next, and returns its place.
    pub(super) fn take<'s>(&mut self, symbols: &[&'s str]) -> Option<(&'s str, Span)> {
        let found = symbols.iter().find(|symbol| self.is_symbol(symbol))?;
        Some((found, self.next().1))
    }

    pub(super) fn expect(&mut self, symbol: &str, why: &str) -> Read<Span> {
        let span = self.peek().1;
        self.take(&[symbol]).map(|(_, span)| span).ok_or_else(|| FormulaError::new(span, format!("expected `{symbol}` {why}")))
    }

    /// Reads one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == MOST_NESTED {
            return Err(FormulaError::new(self.peek().1, format!("nested in more than {MOST_NESTED} levels")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads the outcome and `~`.
    fn outcome(&mut self) -> Read<(String, Span)> {
        let (token, span) = self.next();
        let (Token::Name(name) | Token::Quoted(name)) = token else {
            return Err(FormulaError::new(span, "a formula begins with the outcome's column: `died ~ age + sex`"));
        };
        if self.is_symbol("(") {
            let message = format!("the outcome is a column: store the values of `{name}(…)` as one and declare its bounds");
            return Err(FormulaError::new(span, message));
        }
        self.expect("~", "after the outcome, as in `died ~ age + sex`")?;
        Ok((name, span))
    }

    fn end(&mut self) -> Read<()> {
        let (token, span) = self.next();
        let message = match token {
            Token::End => return Ok(()),
            Token::Symbol("|" | "||") => "effects by party stand in parentheses: `(1 | party)`".to_owned(),
            Token::Symbol(")") => "this parenthesis was never opened".to_owned(),
            Token::Symbol("~") => "a formula has one `~`".to_owned(),
            Token::Name(name) | Token::Quoted(name) => format!("an operator is missing before `{name}`: `+`, `:` or `*`"),
            Token::Number(_) => "an operator is missing before this number".to_owned(),
            Token::Symbol(symbol) => format!("`{symbol}` has no meaning here"),
        };
        Err(FormulaError::new(span, message))
    }

    fn sum(&mut self) -> Read<Sum> {
        let mut sum = Sum::default();
        let mut is_added = self.take(&["+", "-"]).is_none_or(|(sign, _)| sign == "+");
        loop {
            let (operand, span) = self.crossed()?;
            sum.add(operand, is_added, span)?;
            match self.take(&["+", "-"]) {
                Some((sign, _)) => is_added = sign == "+",
                None => return Ok(sum),
            }
        }
    }

    /// Reads operands joined by `*`.
    fn crossed(&mut self) -> Read<(Operand, Span)> {
        let (mut left, mut place) = self.interaction()?;
        while let Some((symbol, at)) = self.take(&["*", "/"]) {
            if symbol == "/" {
                return Err(FormulaError::new(at, "a ratio is `I(a / b)`; for levels within levels write `a + a:b`"));
            }
            let (right, span) = self.interaction()?;
            let (one, other) = (left.terms(place)?, right.terms(span)?);
            place = place.to(span);
            let products = one.times(&other, place)?;
            let mut all = one;
            all.add_all(other)?;
            all.add_all(products)?;
            left = Operand::Terms(all);
        }
        Ok((left, place))
    }

    /// Reads operands joined by `:`.
    fn interaction(&mut self) -> Read<(Operand, Span)> {
        let (mut left, mut place) = self.power()?;
        while self.take(&[":"]).is_some() {
            let (right, span) = self.power()?;
            let (one, other) = (left.terms(place)?, right.terms(span)?);
            place = place.to(span);
            left = Operand::Terms(one.times(&other, place)?);
        }
        Ok((left, place))
    }

    /// Reads an operand, or all interactions of a sum up to an order: `(a + b + c)^2`.
    fn power(&mut self) -> Read<(Operand, Span)> {
        let (operand, span) = self.operand()?;
        let Some((_, at)) = self.take(&["^", "**"]) else { return Ok((operand, span)) };
        let terms = operand.terms(span)?;
        if let [only] = terms.0.as_slice() {
            let text = only.text();
            return Err(FormulaError::new(span.to(at), format!("a power of a column is `I({text}^2)`")));
        }
        let (order, order_span) = self.next();
        let Some(times) = (2..=3_u8).find(|order_of| order == Token::Number(f64::from(*order_of))) else {
            return Err(FormulaError::new(order_span, "the order of interactions is 2 or 3"));
        };
        let place = span.to(order_span);
        let mut all = terms.clone();
        for _ in 1..times {
            let products = all.times(&terms, place)?;
            all.add_all(products)?;
        }
        Ok((Operand::Terms(all), place))
    }

    fn operand(&mut self) -> Read<(Operand, Span)> {
        let (token, span) = self.next();
        match token {
            Token::Number(0.0) => Ok((Operand::Intercept(false), span)),
            Token::Number(1.0) => Ok((Operand::Intercept(true), span)),
            Token::Number(_) => Err(FormulaError::new(
                span,
                "only 0 and 1 are terms, for the intercept: arithmetic stands in `I(…)`, as in `I(age / 10)`",
            )),
            Token::Name(name) if self.is_symbol("(") => self.call(&name, span),
            Token::Name(name) | Token::Quoted(name) => {
                let factor = TermFactor { text: quoted(&name), span, quantity: Quantity::Column(name) };
                Ok((single(factor), span))
            }
            Token::Symbol("(") => self.nested(|parser| parser.in_parentheses(span)),
            Token::Symbol(".") => {
                Err(FormulaError::new(span, "name each predictor: `.` would take whatever columns an owner has"))
            }
            Token::Symbol("-" | "+") => Err(FormulaError::new(span, "two signs in a row")),
            Token::Symbol("^") => {
                Err(FormulaError::new(span, "`^` needs a sum in parentheses before it; a square is `I(age^2)`"))
            }
            Token::End => Err(FormulaError::new(span, "a term is missing at the end")),
            Token::Symbol(symbol) => Err(FormulaError::new(span, format!("a term is missing before `{symbol}`"))),
        }
    }

    /// Reads what follows an opening parenthesis: a sum of terms, or effects by group.
    fn in_parentheses(&mut self, open: Span) -> Read<(Operand, Span)> {
        let sum = self.sum()?;
        let Some((bars, bars_span)) = self.take(&["||", "|"]) else {
            let place = open.to(self.expect(")", "to close this parenthesis")?);
            return Ok((Operand::Terms(sum.only_terms(place)?), place));
        };
        let (token, group_span) = self.next();
        let (Token::Name(group) | Token::Quoted(group)) = token else {
            return Err(FormulaError::new(group_span, "a group is missing after the bar: `(1 | party)`"));
        };
        let place = open.to(self.expect(")", "after the group, as in `(1 | party)`")?);
        let intercept = sum.intercept.is_none_or(|(stated, _)| stated);
        let terms = Sum { intercept: None, ..sum }.only_terms(place)?.0;
        if bars == "|" && usize::from(intercept) + terms.len() > 1 {
            let message = "`|` asks for correlated effects, which are not available: `||` makes them independent, as in `(1 + age || party)`";
            return Err(FormulaError::new(bars_span, message));
        }
        Ok((Operand::Effects(Effects { intercept, terms, group: (group, group_span), span: place }), place))
    }
}

/// Returns the operand of one factor.
pub(super) fn single(factor: TermFactor) -> Operand {
    let span = factor.span;
    Operand::Terms(Terms(vec![Term { factors: vec![factor], span }]))
}
