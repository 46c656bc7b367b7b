//! Collects the imports of every file, and the places where tests change or reach into production code.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItem, Item, Meta, Stmt};

use super::gate::{self, Gate};
use super::names::{Scopes, resolve};
use super::tree::{FileId, ModuleId, Workspace, bare, leaves};

/// Names of modules that replace parts of the environment in tests: never production code, whatever compiles them.
const HOOKS: [&str; 3] = ["simulated", "held", "testing"];

/// Keys of serde's attributes whose value is a path as text.
const SERDE_PATHS: [&str; 9] =
    ["default", "deserialize_with", "from", "into", "remote", "serialize_with", "skip_serializing_if", "try_from", "with"];

/// Attributes whose words are not paths.
const PLAIN: [&str; 6] = ["allow", "cfg", "cfg_attr", "expect", "inline", "must_use"];

/// The fault of an item that tests do not compile.
const OTHER: &str = "tests compile something else in place of this item";

/// Imports between files: the imported items, each with the line of its first mention.
pub(super) type Arrows = BTreeMap<(FileId, FileId), BTreeMap<String, usize>>;

/// The result of reading all sources.
#[derive(Default)]
pub(super) struct Read {
    /// The imports of production code, over all crates.
    pub(super) arrows: Arrows,
    /// Descriptions of test code in production code.
    pub(super) faults: Vec<String>,
}

/// Reads every module that a production build compiles.
pub(super) fn collect(workspace: &Workspace) -> Read {
    let mut read = Read::default();
    for (id, module) in workspace.modules.iter().enumerate() {
        if is_hook(workspace, id) {
            continue;
        }
        for (gate, item) in &module.items {
            let gate = gate.within(module.gate);
            Visitor { workspace, module: id, gate, scopes: Vec::new(), read: &mut read }.item(item);
        }
    }
    read
}

/// Returns true for a module of test code: compiled for tests only, or a test hook by its own or an ancestor's name.
fn is_hook(workspace: &Workspace, id: ModuleId) -> bool {
    let module = &workspace.modules[id];
    let path = workspace.path(module.file);
    module.gate == Gate::Tests || path.split('/').any(|part| HOOKS.contains(&part.trim_end_matches(".rs")))
}

struct Visitor<'a> {
    workspace: &'a Workspace,
    module: ModuleId,
    gate: Gate,
    scopes: Scopes,
    read: &'a mut Read,
}

impl Visitor<'_> {
    fn item(&mut self, item: &Item) {
        if self.gate == Gate::NotTests {
            self.fault(item.span(), OTHER);
        }
        match item {
            Item::Use(one) => {
                let is_export = !matches!(one.vis, syn::Visibility::Inherited);
                for leaf in leaves(&one.tree) {
                    self.mention(&leaf.path, one.span(), is_export);
                }
            }
            item => self.visit_item(item),
        }
    }

    fn fault(&mut self, span: proc_macro2::Span, what: &str) {
        let path = self.workspace.path(self.workspace.modules[self.module].file);
        self.read.faults.push(format!("test code in production code: {path}:{}: {what}", span.start().line));
    }

    /// Records the target of `path`: an import, and a fault where the target is a test hook.
    fn mention(&mut self, path: &[String], span: proc_macro2::Span, is_export: bool) {
        let from = self.workspace.modules[self.module].file;
        let gated = self.gate == Gate::Tests;
        for target in resolve(self.workspace, self.module, &self.scopes, path) {
            if is_hook(self.workspace, target.module()) {
                if !(gated && is_export) {
                    self.fault(span, &format!("imports the test hook {}", path.join("::")));
                }
                continue;
            }
            let Some((to, name)) = target.item(self.workspace).filter(|(to, _)| *to != from) else { continue };
            if !gated {
                let names = self.read.arrows.entry((from, to)).or_default();
                names.entry(name.to_owned()).or_insert(span.start().line);
            }
        }
    }

    /// Records the paths within the tokens of a macro or an attribute.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let (mut colons, mut after_dot) = (0, false);
        let mut last = proc_macro2::Span::call_site();
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) if colons == 2 || path.is_empty() => {
                    if after_dot {
                        after_dot = false;
                        continue;
                    }
                    path.push(bare(ident));
                    (colons, last) = (0, ident.span());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                token => {
                    self.end_of_path(&mut path, last);
                    (colons, after_dot) = (0, false);
                    match token {
                        TokenTree::Ident(ident) => (path, last) = (vec![bare(ident)], ident.span()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Punct(punct) => after_dot = punct.as_char() == '.',
                        TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        self.end_of_path(&mut path, last);
    }

    fn end_of_path(&mut self, path: &mut Vec<String>, span: proc_macro2::Span) {
        if !path.is_empty() {
            self.mention(&std::mem::take(path), span, false);
        }
    }

    /// Records the paths that serde's attributes hold as text.
    fn serde(&mut self, tokens: TokenStream) {
        let mut key = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => key = ident.to_string(),
                TokenTree::Group(group) => self.serde(group.stream()),
                TokenTree::Literal(text) if SERDE_PATHS.contains(&key.as_str()) => {
                    let span = text.span();
                    let text = text.to_string();
                    let path = text.trim_matches('"').split("::").map(str::to_owned).collect::<Vec<_>>();
                    self.mention(&path, span, false);
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    /// Treats a method as an item, which may be compiled for tests only as a whole.
    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let mut item = item.clone();
        let attributes = match &mut item {
            ImplItem::Const(i) => &mut i.attrs,
            ImplItem::Fn(i) => &mut i.attrs,
            ImplItem::Type(i) => &mut i.attrs,
            _ => return,
        };
        let own = gate::take_gate(attributes);
        let scopes = self.scopes.clone();
        let mut within = Visitor { gate: own.within(self.gate), scopes, read: self.read, ..*self };
        if own == Gate::NotTests {
            within.fault(item.span(), OTHER);
        }
        visit::visit_impl_item(&mut within, &item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if gate::predicate(attribute).is_some_and(|p| gate::mentions_tests(&p)) {
            if self.gate != Gate::Tests {
                self.fault(attribute.span(), "a part of this item depends on tests: only whole items may be for tests");
            }
            return;
        }
        let path = attribute.path();
        match &attribute.meta {
            Meta::List(list) if path.is_ident("serde") => self.serde(list.tokens.clone()),
            Meta::List(list) if PLAIN.iter().all(|p| !path.is_ident(p)) => self.tokens(list.tokens.clone()),
            _ => {}
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_block(&mut self, block: &'ast Block) {
        let (mut names, mut globs) = (Vec::new(), Vec::new());
        for statement in &block.stmts {
            let Stmt::Item(Item::Use(one)) = statement else { continue };
            for leaf in leaves(&one.tree) {
                self.mention(&leaf.path, one.span(), false);
                match leaf.name {
                    Some(name) => names.push((name, leaf.path)),
                    None => globs.push(leaf.path),
                }
            }
        }
        self.scopes.push((names, globs));
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_item_use(&mut self, one: &'ast syn::ItemUse) {
        one.attrs.iter().for_each(|a| self.visit_attribute(a));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|s| bare(&s.ident)).collect::<Vec<_>>();
        self.mention(&names, path.span(), false);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.is_ident("cfg") && call.parse_body().is_ok_and(|p: Meta| gate::mentions_tests(&p)) {
            self.fault(call.span(), "this function takes another branch in tests");
        }
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
