//! Resolves a path from a module to the files that define its target, through imports and re-exports.

use super::tree::{FileId, ModuleId, Name, Workspace};

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(ModuleId),
    /// An item by its name in its module: a value, or a type, whose paths may continue to its variants and functions.
    Item {
        module: ModuleId,
        name: String,
        is_type: bool,
    },
}

impl Target {
    /// Returns the target module, or the module that defines the target.
    pub(super) fn module(&self) -> ModuleId {
        match self {
            Self::Module(module) | Self::Item { module, .. } => *module,
        }
    }

    /// Returns the file that defines the item and the item's name; `None` for a module, whose mention alone imports nothing.
    pub(super) fn item(&self, workspace: &Workspace) -> Option<(FileId, &str)> {
        match self {
            Self::Module(_) => None,
            Self::Item { module, name, .. } => Some((workspace.modules[*module].file, name)),
        }
    }
}

/// The imports of a function's body, inner blocks last: each block's names and globs.
pub(super) type Scopes = Vec<(Vec<(String, Vec<String>)>, Vec<Vec<String>>)>;

/// A resolution in progress with the imports that it is following, so that a cycle of re-exports ends it.
struct Resolver<'a> {
    workspace: &'a Workspace,
    following: Vec<(ModuleId, Vec<String>)>,
}

/// Returns all possible targets of `path` where module `from`, with the `scopes` of a function's body, mentions it.
pub(super) fn resolve(workspace: &Workspace, from: ModuleId, scopes: &Scopes, path: &[String]) -> Vec<Target> {
    let mut resolver = Resolver { workspace, following: Vec::new() };
    let Some(first) = path.first() else { return Vec::new() };
    for (names, globs) in scopes.iter().rev() {
        if let Some((_, import)) = names.iter().find(|(name, _)| name == first) {
            let start = resolver.path(from, import);
            return resolver.rest(start, &path[1..]);
        }
        let start = globs.iter().flat_map(|glob| resolver.through_glob(from, glob, first)).collect::<Vec<_>>();
        if !start.is_empty() {
            return resolver.rest(start, &path[1..]);
        }
    }
    resolver.path(from, path)
}

impl Resolver<'_> {
    fn path(&mut self, from: ModuleId, path: &[String]) -> Vec<Target> {
        let here = (from, path.to_vec());
        if path.is_empty() || self.following.contains(&here) {
            return Vec::new();
        }
        self.following.push(here);
        let workspace = self.workspace;
        let module = &workspace.modules[from];
        let start = match path[0].as_str() {
            "crate" => vec![Target::Module(module.root)],
            "self" => vec![Target::Module(from)],
            "super" => module.parent.map(Target::Module).into_iter().collect(),
            name => {
                let found = self.lookup(from, name);
                let library = || workspace.library(name).map(Target::Module).into_iter().collect();
                if found.is_empty() { library() } else { found }
            }
        };
        let found = self.rest(start, &path[1..]);
        self.following.pop();
        found
    }

    fn rest(&mut self, mut targets: Vec<Target>, path: &[String]) -> Vec<Target> {
        for name in path {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    Target::Module(module) if name == "super" => {
                        next.extend(self.workspace.modules[module].parent.map(Target::Module));
                    }
                    Target::Module(module) => next.extend(self.lookup(module, name)),
                    Target::Item { is_type: true, .. } => next.push(target),
                    Target::Item { .. } => {}
                }
            }
            targets = next;
        }
        targets
    }

    /// Returns the targets of `name` in a module: its own names first, then those of its globs.
    fn lookup(&mut self, id: ModuleId, name: &str) -> Vec<Target> {
        let workspace = self.workspace;
        let module = &workspace.modules[id];
        let mut found = Vec::new();
        for meaning in module.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Module(child) => found.push(Target::Module(*child)),
                Name::Type => found.push(Target::Item { module: id, name: name.to_owned(), is_type: true }),
                Name::Value => found.push(Target::Item { module: id, name: name.to_owned(), is_type: false }),
                Name::Import(path) => found.extend(self.path(id, path)),
            }
        }
        if found.is_empty() {
            found = module.globs.iter().flat_map(|glob| self.through_glob(id, glob, name)).collect();
        }
        found.dedup();
        found
    }

    fn through_glob(&mut self, from: ModuleId, glob: &[String], name: &str) -> Vec<Target> {
        let key = (from, glob.iter().cloned().chain(["*".to_owned(), name.to_owned()]).collect::<Vec<_>>());
        if self.following.contains(&key) {
            return Vec::new();
        }
        self.following.push(key);
        let mut found = Vec::new();
        for target in self.path(from, glob) {
            match target {
                Target::Module(module) => found.extend(self.lookup(module, name)),
                // A glob over an enum brings only variants, which begin with a capital.
                Target::Item { is_type: true, .. } if name.starts_with(char::is_uppercase) => found.push(target),
                Target::Item { .. } => {}
            }
        }
        self.following.pop();
        found
    }
}
