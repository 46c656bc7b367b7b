//! Texts of formulas: their terms, their errors with places, and texts of any kind.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn terms(text: &str) -> Vec<String> {
    Formula::parse(text).map_err(|error| error.render(text)).unwrap().terms.iter().map(terms::Term::text).collect()
}

#[test]
fn operators_bind_as_in_r() {
    for (text, expected) in [
        ("y ~ a + b*c", &["a", "b", "c", "b:c"][..]),
        ("y ~ a*b:c", &["a", "b:c", "a:b:c"]),
        ("y ~ (a + b):c", &["a:c", "b:c"]),
        ("y ~ (a + b + c)^2 - b:a", &["a", "b", "c", "a:c", "b:c"]),
        ("y ~ b:a + a + a:b + b:b", &["a", "b", "b:a"]),
        ("y ~ a*b*c", &["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"]),
        ("y~`blood pressure`:b\n + a.1", &["a.1", "`blood pressure`:b"]),
        ("y ~ I(-a^2*b - 2**-1)/1", &[]),
        ("y ~ I(-a^2*b - (c - 2)) + log( a+1 )", &["I(-a^2 * b - (c - 2))", "log(a + 1)"]),
        ("y ~ I((-a)^2/(b*c)) + I(a-(b+c)-1e-3)", &["I((-a)^2/(b * c))", "I(a - (b + c) - 0.001)"]),
        ("y ~ ls(a, knots=[ -1,2.5 ]) + ns(`b c`, knots = c(1))", &["ls(a, knots = [-1, 2.5])", "ns(`b c`, knots = [1])"]),
    ] {
        if expected.is_empty() {
            assert!(Formula::parse(text).is_err(), "{text}");
        } else {
            assert_eq!(terms(text), expected, "{text}");
        }
    }
}

#[test]
fn the_intercept_and_other_operands_are_read() {
    let intercepts = ["y ~ a", "y ~ 1", "y ~ 0 + a", "y ~ a - 1", "y ~ -1 + a", "y ~ a + 0 + 1", "y ~ a - 0"];
    assert_eq!(intercepts.map(|text| Formula::parse(text).unwrap().intercept), [true, true, false, false, false, true, true]);
    let formula = Formula::parse("y ~ a + offset(log(days)) + (1 + a || party) + (0 + b | party)").unwrap();
    let offset = formula.offset.unwrap();
    assert_eq!((offset.column.as_str(), offset.is_logarithm), ("days", true));
    let effects: Vec<(bool, usize)> = formula.effects.iter().map(|effects| (effects.intercept, effects.terms.len())).collect();
    assert_eq!(effects, [(true, 1), (false, 1)]);
}

/// Each error marks its place: the text between `«` and `»`.
#[test]
fn every_error_has_its_place() {
    for (marked, word) in [
        ("«log»(y) ~ a", "the outcome is a column"),
        ("y «a»", "expected `~`"),
        ("y ~ a + «»", "a term is missing at the end"),
        ("y ~ a «b»", "an operator is missing before `b`"),
        ("y ~ a «/» b", "`a + a:b`"),
        ("y ~ «a^»2", "`I(a^2)`"),
        ("y ~ «2» + a", "`I(…)`"),
        ("y ~ a - «b»", "not among the terms"),
        ("y ~ «.»", "name each predictor"),
        ("y ~ a «%»in% b", "`a:b`"),
        ("y ~ (1 + a «|» party)", "`(1 + age || party)`"),
        ("y ~ a «|» party", "`(1 | party)`"),
        ("y ~ «scale»(a)", "declared bounds"),
        ("y ~ «bs»(a, df = 3)", "ns(age, knots = [40, 60])"),
        ("y ~ «factor»(a)", "{ levels ="),
        ("y ~ «lgo»(a)", "the nearest is `log`"),
        ("y ~ ns(a, «df» = 3)", "knots are public"),
        ("y ~ ns(a«)»", "knots are public"),
        ("y ~ ns(a, knots = [«q»])", "a knot is a number"),
        ("y ~ «a:b:c:d»", "at most 3"),
        ("y ~ a + «offset(a + b)»", "store any other value"),
        ("y ~ offset(a) + «offset(b)»", "a second offset"),
        ("y ~ «offset(a)»:b", "has no interactions"),
        ("y ~ (a + b«»", "to close this parenthesis"),
        ("y ~ a«)»", "never opened"),
        ("y ~ I(a «>» b)", "comparisons"),
        ("é ~ `日本` + «$»x", "data$age"),
        ("y ~ «1e999»", "no finite number"),
    ] {
        let (text, start) = (marked.replace(['«', '»'], ""), marked.find('«').unwrap());
        let error = Formula::parse(&text).expect_err(&text);
        assert_eq!(error.span.start, start, "{marked}: {error:?}");
        assert!(error.message.contains(word), "{marked}: {error:?}");
        let shown = error.render(&text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[lines.len() - 1].find('^'), Some(text[..start].chars().count() + 2), "{shown}");
    }
}

#[test]
fn limits_hold() {
    let nested = |depth: usize| format!("y ~ I({}a{})", "(".repeat(depth), ")".repeat(depth));
    assert!(Formula::parse(&nested(20)).is_ok());
    assert!(Formula::parse(&nested(900)).unwrap_err().message.contains("64 levels"));
    assert!(Formula::parse(&format!("y ~ I({}a)", "-".repeat(900))).unwrap_err().message.contains("64 levels"));
    assert!(Formula::parse(&format!("y ~ I(a{})", "^2".repeat(400))).unwrap_err().message.contains("64 levels"));
    assert!(Formula::parse(&format!("y ~ I(a{})", "+a".repeat(400))).unwrap_err().message.contains("256"));
    let many: Vec<String> = (0..60).map(|at| format!("a{at}")).collect();
    assert!(Formula::parse(&format!("y ~ ({})^3", many.join("+"))).unwrap_err().message.contains("256 terms"));
    assert!(Formula::parse(&"a".repeat(2001)).unwrap_err().message.contains("2001 bytes"));
    let long = format!("y ~ {} + zz", many[..30].join(" + "));
    assert!(FormulaError::new(Span { start: long.len() - 2, end: long.len() }, "m").render(&long).ends_with("^^"));
}

/// Words of formulas, in any order.
const WORDS: [&str; 44] = [
    "y",
    "~",
    "age",
    "sex",
    "ward",
    "dose",
    "days",
    "+",
    "-",
    "*",
    ":",
    "/",
    "^",
    "**",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "|",
    "||",
    "0",
    "1",
    "2",
    "2.5",
    "1e3",
    "1e-400",
    "log(",
    "I(",
    "offset(",
    "ls(",
    "ns(",
    "knots = [",
    "party",
    "`",
    "é",
    "日本",
    ".",
    "%",
    " ",
    "\n",
    "exp(",
    "sqrt(",
];

/// Returns a text of random words, of random characters, or a formula with some characters changed.
pub(crate) fn random_text(random: &mut ChaCha8Rng) -> String {
    let length = random.random_range(0..30);
    match random.random_range(0..3) {
        0 => (0..length).map(|_| char::from_u32(random.random_range(0..0x3000)).unwrap_or('x')).collect(),
        1 => format!("y ~ {}", (0..length).map(|_| WORDS[random.random_range(0..WORDS.len())]).collect::<String>()),
        _ => {
            let formula = "died ~ age*sex + ns(age, knots = [40, 60]):ward + offset(log(days)) + I((dose - 2)^2 / 3) - 1 + (0 + age || party)";
            let mut letters: Vec<char> = formula.chars().collect();
            for _ in 0..random.random_range(1..5) {
                let at = random.random_range(0..letters.len());
                match random.random_range(0..3) {
                    0 => drop(letters.remove(at)),
                    1 => letters.insert(at, ['(', ')', '+', ':', '^', 'é', '-', '|', '~'][random.random_range(0..9)]),
                    _ => {
                        let other = random.random_range(0..letters.len());
                        letters.swap(at, other);
                    }
                }
            }
            letters.into_iter().collect()
        }
    }
}

/// Returns the texts of all factors, and the operations of those that are arithmetic.
fn operations(formula: &Formula) -> Vec<(&str, Vec<&Symbol>)> {
    let factors = formula.terms.iter().flat_map(|term| &term.factors);
    factors
        .map(|factor| match &factor.quantity {
            Quantity::Arithmetic(arithmetic) => {
                (factor.text.as_str(), arithmetic.symbols.iter().map(|(symbol, _)| symbol).collect())
            }
            _ => (factor.text.as_str(), Vec::new()),
        })
        .collect()
}

#[test]
fn random_texts_are_read_without_a_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let read = |text: &String| match Formula::parse(text) {
        Ok(formula) => {
            // What is printed is read as the same terms.
            let printed: Vec<String> = formula.terms.iter().map(terms::Term::text).collect();
            if !printed.is_empty() {
                let again = Formula::parse(&format!("y ~ {}", printed.join(" + "))).unwrap();
                assert_eq!(operations(&again), operations(&formula), "{text}");
            }
            true
        }
        Err(error) => {
            assert!(error.render(text).contains('^'));
            false
        }
    };
    let formulas = (0..10_000).map(|_| random_text(&mut random)).filter(read).count();
    assert!(formulas > 200, "{formulas}");
}

proptest! {
    #[test]
    fn any_text_is_a_formula_or_an_error_with_a_place(text in any::<String>(), (start, end) in (0..99_usize, 0..99_usize)) {
        if let Err(error) = Formula::parse(&text) {
            prop_assert!(text.is_char_boundary(error.span.start.min(text.len())));
            error.render(&text);
        }
        FormulaError::new(Span { start, end }, "any place").render(&text);
    }
}
