//! Evaluates `cfg` predicates: whether production builds compile an item, and whether tests replace it.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Lit, Meta, Token};

/// The feature that exposes test hooks of a crate.
const TEST_FEATURE: &str = "test-util";

/// The builds that compile an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gate {
    /// Production builds and tests alike.
    #[default]
    Always,
    /// Tests only.
    Tests,
    /// Production builds but not tests: the tested code is not the production code.
    NotTests,
}

impl Gate {
    /// Returns the gate set by attributes.
    pub(super) fn of(attributes: &[Attribute]) -> Self {
        let gates = attributes.iter().filter_map(predicate).map(|p| Self::judge(&p)).collect::<Vec<_>>();
        let first = |gate| gates.contains(&gate).then_some(gate);
        first(Self::NotTests).or(first(Self::Tests)).unwrap_or_default()
    }

    fn judge(predicate: &Meta) -> Self {
        match (holds(predicate, false), holds(predicate, true)) {
            (Some(false), _) => Self::Tests,
            (_, Some(false)) => Self::NotTests,
            _ if mentions_tests(predicate) => Self::NotTests,
            _ => Self::Always,
        }
    }

    /// Returns the gate of an item inside another one with gate `outer`.
    pub(super) fn within(self, outer: Self) -> Self {
        if self == Self::Always { outer } else { self }
    }
}

/// Returns the gate set by attributes and removes these attributes.
pub(super) fn take_gate(attributes: &mut Vec<Attribute>) -> Gate {
    let gate = Gate::of(attributes);
    attributes.retain(|a| predicate(a).is_none());
    gate
}

/// Returns the predicate of `#[cfg(…)]`, and of `#[cfg_attr(…)]` where it switches more than lints.
pub(super) fn predicate(attribute: &Attribute) -> Option<Meta> {
    let path = attribute.path();
    let parts = || attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok();
    if path.is_ident("cfg") {
        parts()?.into_iter().next()
    } else if path.is_ident("cfg_attr") {
        let mut parts = parts()?.into_iter();
        let condition = parts.next()?;
        let lint = |m: &Meta| m.path().is_ident("allow") || m.path().is_ident("expect");
        (!parts.all(|m| lint(&m))).then_some(condition)
    } else {
        None
    }
}

/// Returns true if a predicate mentions tests anywhere.
pub(super) fn mentions_tests(predicate: &Meta) -> bool {
    match predicate {
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => is_test_feature(predicate),
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(mentions_tests)),
    }
}

fn is_test_feature(predicate: &Meta) -> bool {
    let Meta::NameValue(pair) = predicate else { return false };
    let Expr::Lit(value) = &pair.value else { return false };
    matches!(&value.lit, Lit::Str(name) if pair.path.is_ident("feature") && name.value() == TEST_FEATURE)
}

/// Evaluates a predicate with or without tests; `None` where the value depends on other switches.
fn holds(predicate: &Meta, tests: bool) -> Option<bool> {
    match predicate {
        Meta::Path(path) => path.is_ident("test").then_some(tests),
        Meta::NameValue(_) => is_test_feature(predicate).then_some(tests),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            let mut values = parts.iter().map(|p| holds(p, tests)).collect::<Vec<_>>();
            let name = list.path.get_ident()?.to_string();
            match name.as_str() {
                "not" => values.pop()?.map(|v| !v),
                "all" if values.contains(&Some(false)) => Some(false),
                "any" if values.contains(&Some(true)) => Some(true),
                "all" | "any" if values.contains(&None) => None,
                "all" => Some(true),
                "any" => Some(false),
                _ => None,
            }
        }
    }
}
