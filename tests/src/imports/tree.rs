//! Loads a workspace: its crates, their modules from the roots down, and the names in every module.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, UseTree};

use super::gate::{Gate, take_gate};

/// An index into [`Workspace::files`].
pub(super) type FileId = usize;
/// An index into [`Workspace::modules`].
pub(super) type ModuleId = usize;

/// The crates of a workspace, except those left out.
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) crates: Vec<Crate>,
    pub(super) modules: Vec<Module>,
    /// Every source file: its path from the root, and its crate's index in [`Self::crates`].
    pub(super) files: Vec<(String, usize)>,
}

/// One crate: a library with its package's binaries, or the binaries of a package without a library.
pub(super) struct Crate {
    /// The package's name.
    pub(super) package: String,
    /// The package's folder, relative to the root.
    pub(super) folder: String,
    /// The workspace's packages among the manifest's `[dependencies]`.
    pub(super) dependencies: Vec<String>,
    /// The root modules of the library and of the binaries.
    pub(super) roots: Vec<ModuleId>,
}

/// One module, in a file of its own or inline.
pub(super) struct Module {
    pub(super) file: FileId,
    pub(super) parent: Option<ModuleId>,
    pub(super) root: ModuleId,
    /// The builds that compile it, enclosing modules considered.
    pub(super) gate: Gate,
    pub(super) names: HashMap<String, Vec<Name>>,
    pub(super) globs: Vec<Vec<String>>,
    /// Its items other than modules, each with its own gate.
    pub(super) items: Vec<(Gate, Item)>,
}

/// One meaning of a name in a module.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Module(ModuleId),
    /// A type or trait; a path may continue below it.
    Type,
    /// A function, constant or macro.
    Value,
    /// A `use` of this path.
    Import(Vec<String>),
}

/// One leaf of a `use` tree.
pub(super) struct Leaf {
    /// The imported name; `None` for a glob.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
}

impl Workspace {
    /// Loads the workspace of `root/Cargo.toml`, without the packages `left_out`.
    ///
    /// # Errors Names a manifest or source file that cannot be read.
    pub(super) fn load(root: &Path, left_out: &[&str]) -> Result<Self, String> {
        let manifest = manifest(&root.join("Cargo.toml"))?;
        let members = manifest.get("workspace").and_then(|w| w.get("members")).and_then(toml::Value::as_array);
        let folders = members.ok_or("no `workspace.members`")?.iter().filter_map(toml::Value::as_str);
        let mut workspace = Self { root: root.to_owned(), crates: Vec::new(), modules: Vec::new(), files: Vec::new() };
        for folder in folders {
            workspace.load_crate(folder, left_out)?;
        }
        let packages = workspace.crates.iter().map(|c| c.package.clone()).collect::<Vec<_>>();
        for one in &mut workspace.crates {
            one.dependencies.retain(|d| packages.contains(d));
        }
        Ok(workspace)
    }

    /// Returns the library that other crates import as `name`.
    pub(super) fn library(&self, name: &str) -> Option<ModuleId> {
        let found = self.crates.iter().find(|c| c.package.replace('-', "_") == name)?;
        found.roots.first().copied()
    }

    /// Returns a file's path from the root.
    pub(super) fn path(&self, file: FileId) -> &str {
        &self.files[file].0
    }

    /// Returns a file's crate.
    pub(super) fn crate_of(&self, file: FileId) -> &Crate {
        &self.crates[self.files[file].1]
    }

    fn load_crate(&mut self, folder: &str, left_out: &[&str]) -> Result<(), String> {
        let manifest = manifest(&self.root.join(folder).join("Cargo.toml"))?;
        let package = manifest.get("package").and_then(|p| p.get("name")).and_then(toml::Value::as_str);
        let package = package.ok_or_else(|| format!("{folder}/Cargo.toml: no `package.name`"))?.to_owned();
        if left_out.contains(&package.as_str()) {
            return Ok(());
        }
        let keys = manifest.get("dependencies").and_then(toml::Value::as_table);
        let dependencies = keys.map(|t| t.keys().cloned().collect()).unwrap_or_default();
        let place = self.crates.len();
        self.crates.push(Crate { package, folder: folder.to_owned(), dependencies, roots: Vec::new() });
        for name in ["lib.rs", "main.rs"] {
            let path = format!("{folder}/src/{name}");
            if self.root.join(&path).is_file() {
                let root = self.load_file(&path, place, None, Gate::Always)?;
                self.crates[place].roots.push(root);
            }
        }
        Ok(())
    }

    fn load_file(&mut self, path: &str, place: usize, parent: Option<ModuleId>, gate: Gate) -> Result<ModuleId, String> {
        let text = std::fs::read_to_string(self.root.join(path)).map_err(|e| format!("{path}: {e}"))?;
        let parsed = syn::parse_file(&text).map_err(|e| format!("{path}:{}: {e}", e.span().start().line))?;
        let file = self.files.len();
        self.files.push((path.to_owned(), place));
        let folder = match path.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder.to_owned(),
            _ => path.trim_end_matches(".rs").to_owned(),
        };
        self.load_module(file, parent, gate.within(Gate::of(&parsed.attrs)), &folder, parsed.items)
    }

    fn load_module(
        &mut self,
        file: FileId,
        parent: Option<ModuleId>,
        gate: Gate,
        folder: &str,
        items: Vec<Item>,
    ) -> Result<ModuleId, String> {
        let id = self.modules.len();
        let root = parent.map_or(id, |p| self.modules[p].root);
        self.modules.push(Module { file, parent, root, gate, names: HashMap::new(), globs: Vec::new(), items: Vec::new() });
        for mut item in items {
            let own = attributes(&mut item).map(take_gate).unwrap_or_default();
            if let Item::Mod(inner) = item {
                let name = bare(&inner.ident);
                let gate = own.within(gate);
                let child = match inner.content {
                    Some((_, items)) => self.load_module(file, Some(id), gate, &format!("{folder}/{name}"), items)?,
                    None => {
                        let found = match path_of(&inner.attrs) {
                            Some(path) => {
                                format!("{}/{path}", self.files[file].0.rsplit_once('/').map_or("", |(folder, _)| folder))
                            }
                            None => self.file_of(folder, &name)?,
                        };
                        self.load_file(&found, self.files[file].1, Some(id), gate)?
                    }
                };
                self.modules[id].names.entry(name).or_default().push(Name::Module(child));
            } else {
                self.record(id, &item);
                self.modules[id].items.push((own, item));
            }
        }
        Ok(id)
    }

    fn file_of(&self, folder: &str, module: &str) -> Result<String, String> {
        let places = [format!("{folder}/{module}.rs"), format!("{folder}/{module}/mod.rs")];
        places.iter().find(|p| self.root.join(p).is_file()).cloned().ok_or_else(|| format!("{} is missing", places[0]))
    }

    /// Records the names that an item adds to its module.
    fn record(&mut self, id: ModuleId, item: &Item) {
        let (ident, name) = match item {
            Item::Struct(i) => (&i.ident, Name::Type),
            Item::Enum(i) => (&i.ident, Name::Type),
            Item::Union(i) => (&i.ident, Name::Type),
            Item::Trait(i) => (&i.ident, Name::Type),
            Item::TraitAlias(i) => (&i.ident, Name::Type),
            Item::Type(i) => (&i.ident, Name::Type),
            Item::Fn(i) => (&i.sig.ident, Name::Value),
            Item::Const(i) => (&i.ident, Name::Value),
            Item::Static(i) => (&i.ident, Name::Value),
            Item::Macro(i) => match &i.ident {
                Some(ident) => (ident, Name::Value),
                None => return,
            },
            Item::Use(i) => return leaves(&i.tree).into_iter().for_each(|leaf| self.record_leaf(id, leaf)),
            _ => return,
        };
        self.modules[id].names.entry(bare(ident)).or_default().push(name);
    }

    fn record_leaf(&mut self, id: ModuleId, leaf: Leaf) {
        match leaf.name {
            Some(name) => self.modules[id].names.entry(name).or_default().push(Name::Import(leaf.path)),
            None => self.modules[id].globs.push(leaf.path),
        }
    }
}

/// Returns an identifier's name without `r#`.
pub(super) fn bare(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// Returns the leaves of a `use` tree.
pub(super) fn leaves(tree: &UseTree) -> Vec<Leaf> {
    fn walk(tree: &UseTree, before: &[String], found: &mut Vec<Leaf>) {
        let joined = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => walk(&path.tree, &joined(bare(&path.ident)), found),
            UseTree::Group(group) => group.items.iter().for_each(|t| walk(t, before, found)),
            UseTree::Glob(_) => found.push(Leaf { name: None, path: before.to_vec() }),
            UseTree::Name(name) if name.ident == "self" => {
                found.push(Leaf { name: before.last().cloned(), path: before.to_vec() });
            }
            UseTree::Name(name) => found.push(Leaf { name: Some(bare(&name.ident)), path: joined(bare(&name.ident)) }),
            UseTree::Rename(name) => {
                let path = if name.ident == "self" { before.to_vec() } else { joined(bare(&name.ident)) };
                found.push(Leaf { name: Some(bare(&name.rename)), path });
            }
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

fn manifest(path: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.parse().map_err(|e| format!("{}: {e}", path.display()))
}

/// Returns the file named by a module's `#[path]`, relative to the folder of the declaring file.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Returns an item's attributes.
fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(i) => &mut i.attrs,
        Item::Enum(i) => &mut i.attrs,
        Item::ExternCrate(i) => &mut i.attrs,
        Item::Fn(i) => &mut i.attrs,
        Item::ForeignMod(i) => &mut i.attrs,
        Item::Impl(i) => &mut i.attrs,
        Item::Macro(i) => &mut i.attrs,
        Item::Mod(i) => &mut i.attrs,
        Item::Static(i) => &mut i.attrs,
        Item::Struct(i) => &mut i.attrs,
        Item::Trait(i) => &mut i.attrs,
        Item::TraitAlias(i) => &mut i.attrs,
        Item::Type(i) => &mut i.attrs,
        Item::Union(i) => &mut i.attrs,
        Item::Use(i) => &mut i.attrs,
        _ => return None,
    })
}
