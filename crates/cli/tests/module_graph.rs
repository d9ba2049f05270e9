//! The modules of each crate: no cycle among them, and every one in the table of its crate.
//!
//! Modules are read as a tree. A path in the code of one module that leads into a sibling, or into
//! anything below that sibling, is an edge between the two; a name that a module re-exports leads
//! to the module that defines it. A module may use its ancestors and its descendants freely, as a
//! parent is the interface of its children. Separate from `invariants`, which checks crates and
//! words, because this test resolves paths.

use crate::source_tree::ROOT;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// A path of modules from the root of the crate, which is empty.
type ModulePath = Vec<String>;

/// A module of a crate, read from its source.
#[derive(Default)]
struct ModuleSource {
    /// Paths that the code names, absolute from the root of the crate.
    paths: Vec<ModulePath>,
    /// Names that the module re-exports: the name, and the path to it.
    exports: BTreeMap<String, ModulePath>,
    children: BTreeSet<String>,
}

/// The modules of one crate.
#[derive(Default)]
struct CrateModules {
    modules: BTreeMap<ModulePath, ModuleSource>,
}

impl CrateModules {
    /// Reads the crate whose root is this file.
    fn read(root: &Path) -> CrateModules {
        let mut crate_modules = CrateModules::default();
        let folder = root.parent().unwrap();
        crate_modules.read_file(root, folder, &[]);
        crate_modules
    }

    fn read_file(&mut self, file: &Path, folder: &Path, module: &[String]) {
        let text = std::fs::read_to_string(file).unwrap();
        let syntax =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for child in self.add(module, &syntax.items) {
            let mut path = module.to_vec();
            path.push(child.clone());
            let below = folder.join(&child);
            let named = [folder.join(format!("{child}.rs")), below.join("mod.rs")];
            // A module with a `path` attribute has its siblings in the same folder.
            if let Some(file) = named.iter().find(|file| file.exists()) {
                self.read_file(file, &below, &path);
            }
        }
    }

    /// Adds a module; returns the children that are files of their own.
    fn add(&mut self, module: &[String], items: &[syn::Item]) -> Vec<String> {
        let mut files = Vec::new();
        let mut source = ModuleSource::default();
        let is_live = |attributes: &[syn::Attribute]| {
            !attributes.iter().any(|attribute| {
                attribute.path().is_ident("cfg")
                    && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
            })
        };
        for item in items {
            if let syn::Item::Mod(child) = item
                && is_live(&child.attrs)
            {
                source.children.insert(child.ident.to_string());
            }
        }
        for item in items {
            match item {
                syn::Item::Mod(child) if !is_live(&child.attrs) => {}
                syn::Item::Mod(child) => {
                    let mut path = module.to_vec();
                    path.push(child.ident.to_string());
                    match &child.content {
                        Some((_, items)) => files.extend(
                            self.add(&path, items)
                                .into_iter()
                                .map(|file| format!("{}/{file}", child.ident)),
                        ),
                        None => files.push(child.ident.to_string()),
                    }
                }
                _ => {
                    let mut visitor = PathVisitor { module, source: &mut source };
                    visitor.visit_item(item);
                }
            }
        }
        self.modules.insert(module.to_vec(), source);
        files
    }

    /// Returns the module that defines what a path leads to.
    fn resolve(&self, path: &[String], depth: usize) -> ModulePath {
        let mut module = ModulePath::new();
        for (at, segment) in path.iter().enumerate() {
            let Some(source) = self.modules.get(&module) else { break };
            if source.children.contains(segment) {
                module.push(segment.clone());
                continue;
            }
            if let Some(target) = source.exports.get(segment).filter(|_| depth < 8) {
                let mut onward = target.clone();
                onward.extend_from_slice(&path[at + 1..]);
                return self.resolve(&onward, depth + 1);
            }
            break;
        }
        module
    }

    /// Returns, for each module that has children, the edges between these.
    fn edges(&self) -> BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> {
        let mut edges: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, source) in &self.modules {
            for path in &source.paths {
                let target = self.resolve(path, 0);
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                    let parent = module[..shared].to_vec();
                    let siblings = edges.entry(parent).or_default();
                    siblings.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        edges
    }

    /// Returns the cycles, each as the names of its modules.
    fn cycles(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (parent, siblings) in self.edges() {
            let reach = |start: &String| {
                let mut seen: BTreeSet<&String> = BTreeSet::new();
                let mut open = vec![start];
                while let Some(next) = open.pop() {
                    for to in siblings.get(next).into_iter().flatten() {
                        if seen.insert(to) {
                            open.push(to);
                        }
                    }
                }
                seen
            };
            let mut reported: BTreeSet<&String> = BTreeSet::new();
            for module in siblings.keys().filter(|module| reach(module).contains(module)) {
                if reported.contains(module) {
                    continue;
                }
                let forth = reach(module);
                let cycle: Vec<&String> =
                    forth.into_iter().filter(|other| reach(other).contains(module)).collect();
                reported.extend(cycle.iter().copied());
                let names: Vec<&str> = cycle.iter().map(|name| name.as_str()).collect();
                let parent =
                    if parent.is_empty() { "the crate".to_string() } else { parent.join("::") };
                found.push(format!("in {parent}: {}", names.join(", ")));
            }
        }
        found
    }
}

/// Collects the paths of a module that lead to other modules of the crate.
struct PathVisitor<'a> {
    module: &'a [String],
    source: &'a mut ModuleSource,
}

impl PathVisitor<'_> {
    /// Returns a path from the root of the crate, or `None` where it leads out of the crate or to a
    /// local name.
    fn absolute(&self, segments: &[String]) -> Option<ModulePath> {
        let mut base = self.module.to_vec();
        let mut rest = segments;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first if self.source.children.contains(first) => {}
            _ => return None,
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn note(&mut self, segments: &[String]) {
        if let Some(path) = self.absolute(segments) {
            self.source.paths.push(path);
        }
    }

    fn walk_use(&mut self, prefix: &[String], tree: &syn::UseTree, exported: bool) {
        let mut segments = prefix.to_vec();
        match tree {
            syn::UseTree::Path(path) => {
                segments.push(path.ident.to_string());
                self.walk_use(&segments, &path.tree, exported);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.walk_use(&segments, tree, exported);
                }
            }
            syn::UseTree::Glob(_) => self.note(&segments),
            syn::UseTree::Name(_) | syn::UseTree::Rename(_) => {
                let (name, known_as) = match tree {
                    syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
                    syn::UseTree::Rename(name) => (name.ident.to_string(), name.rename.to_string()),
                    _ => unreachable!("the arm names both"),
                };
                let mut known_as = known_as;
                if name == "self" {
                    known_as = segments.last().cloned().unwrap_or_default();
                } else {
                    segments.push(name);
                }
                self.note(&segments);
                if let Some(path) = self.absolute(&segments).filter(|_| exported) {
                    self.source.exports.insert(known_as, path);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for PathVisitor<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let exported = !matches!(item.vis, syn::Visibility::Inherited);
        self.walk_use(&[], &item.tree, exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of a macro are tokens; a path in them begins with `crate` or `super` to be
        // one of ours.
        let text = call.tokens.to_string().replace(' ', "");
        for (at, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
            let end = text[at..]
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                .map_or(text.len(), |end| at + end);
            let segments: Vec<String> = text[at..end]
                .split("::")
                .filter(|segment| !segment.is_empty())
                .map(str::to_string)
                .collect();
            self.note(&segments);
        }
        visit::visit_macro(self, call);
    }
}

/// Returns the modules of a crate's root that the table in its head does not name.
fn missing_in_table(root: &str) -> Vec<String> {
    let head: String = root.lines().take_while(|line| line.starts_with("//!")).collect();
    let syntax = syn::parse_file(root).unwrap();
    let modules = syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.filter(|module| module != "tests" && !head.contains(&format!("`{module}`"))).collect()
}

/// Returns the name and the root file of each crate under crates/.
fn crate_roots() -> Vec<(String, std::path::PathBuf)> {
    let mut roots = Vec::new();
    for entry in std::fs::read_dir(Path::new(ROOT).join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let root = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file));
        if let Some(root) = root.into_iter().find(|file| file.exists()) {
            roots.push((name, root));
        }
    }
    assert!(roots.len() >= 8, "only {} crates were found", roots.len());
    roots.sort();
    roots
}

#[test]
fn modules_form_no_cycle() {
    let mut found = Vec::new();
    for (name, root) in crate_roots() {
        found.extend(
            CrateModules::read(&root).cycles().iter().map(|cycle| format!("{name}: {cycle}")),
        );
    }
    assert!(found.is_empty(), "modules use each other in a cycle:\n{}", found.join("\n"));
}

#[test]
fn every_module_is_in_the_table_of_its_crate() {
    let mut found = Vec::new();
    for (name, root) in crate_roots() {
        let text = std::fs::read_to_string(&root).unwrap();
        found.extend(missing_in_table(&text).iter().map(|module| format!("{name}: `{module}`")));
    }
    assert!(found.is_empty(), "the head of the crate does not name:\n{}", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let root = folder.path().join("lib.rs");
    write("lib.rs", "//! | `a` | a |\nmod a;\nmod b;\nmod c;\npub use a::Thing;\n");
    write("a.rs", "use crate::b::Part; pub struct Thing(Part);");
    write("b.rs", "pub struct Part; fn make() -> crate::c::Other { todo!() }");
    write("c.rs", "pub struct Other;");
    assert_eq!(CrateModules::read(&root).cycles(), Vec::<String>::new());
    // A name that the root re-exports leads back to the module that defines it.
    write("c.rs", "pub struct Other(Option<crate::Thing>);");
    assert_eq!(CrateModules::read(&root).cycles(), ["in the crate: a, b, c"]);
    let text = std::fs::read_to_string(&root).unwrap();
    assert_eq!(missing_in_table(&text), ["b", "c"]);
}
