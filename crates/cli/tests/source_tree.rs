//! The sources of the workspace as syntax trees, for the tests of names, prose and structure. Not a
//! test itself.
//!
//! Separate from those tests because they share the parsed files: each file is parsed once by
//! `syn`, and nothing depends on line breaks.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use syn::visit::{self, Visit};

/// The root of the workspace.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A Rust source file.
pub(crate) struct SourceFile {
    /// The path from the root of the workspace.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The modules, types and functions that the file defines.
    pub(crate) definitions: Vec<NamedDefinition>,
    /// The public items of the file that have documentation.
    pub(crate) documented_items: Vec<DocumentedItem>,
}

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefinitionKind {
    Module,
    Type,
    Function,
}

/// A definition with a name of its own: methods that implement a trait are left out.
#[derive(Debug, Clone)]
pub(crate) struct NamedDefinition {
    pub(crate) kind: DefinitionKind,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// The definition is in a module of unit tests, or is a test.
    pub(crate) is_test: bool,
}

/// An item that other crates or modules can see, with its documentation.
#[derive(Debug, Clone)]
pub(crate) struct DocumentedItem {
    pub(crate) line: usize,
    pub(crate) doc: String,
}

impl SourceFile {
    /// Parses a source, which is named `path` in messages.
    pub(crate) fn parse(path: impl Into<PathBuf>, text: &str) -> SourceFile {
        let path = path.into();
        let syntax =
            syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut names = DefinitionVisitor { found: Vec::new(), test_depth: 0 };
        names.visit_file(&syntax);
        let mut docs = DocVisitor { found: Vec::new() };
        docs.visit_file(&syntax);
        SourceFile {
            path,
            text: text.to_string(),
            definitions: names.found,
            documented_items: docs.found,
        }
    }

    /// Returns whether the file belongs to the tests of a crate.
    pub(crate) fn is_test(&self) -> bool {
        self.path.components().any(|part| part.as_os_str() == "tests")
    }
}

/// Returns every Rust file of the workspace, without those that a build makes.
pub(crate) fn source_files() -> &'static [SourceFile] {
    static FILES: OnceLock<Vec<SourceFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        for folder in ["crates", "bench", "fuzz"] {
            collect_files(&Path::new(ROOT).join(folder), &mut files);
        }
        assert!(files.len() > 200, "only {} source files were found", files.len());
        files
    })
}

fn collect_files(folder: &Path, files: &mut Vec<SourceFile>) {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.ends_with("target") {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            files.push(SourceFile::parse(path.strip_prefix(ROOT).unwrap(), &text));
        }
    }
}

fn is_test_attribute(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        is_cfg_test || attribute.path().is_ident("test")
    })
}

struct DefinitionVisitor {
    found: Vec<NamedDefinition>,
    test_depth: usize,
}

impl DefinitionVisitor {
    fn define(&mut self, kind: DefinitionKind, name: &syn::Ident, attributes: &[syn::Attribute]) {
        self.found.push(NamedDefinition {
            kind,
            name: name.to_string(),
            line: name.span().start().line,
            is_test: self.test_depth > 0 || is_test_attribute(attributes),
        });
    }
}

impl<'ast> Visit<'ast> for DefinitionVisitor {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = is_test_attribute(&item.attrs);
        self.define(DefinitionKind::Module, &item.ident, &item.attrs);
        self.test_depth += usize::from(is_test);
        visit::visit_item_mod(self, item);
        self.test_depth -= usize::from(is_test);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(DefinitionKind::Type, &item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(DefinitionKind::Type, &item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.define(DefinitionKind::Type, &item.ident, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define(DefinitionKind::Type, &item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define(DefinitionKind::Type, &item.ident, &item.attrs);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.define(DefinitionKind::Function, &item.sig.ident, &item.attrs);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.define(DefinitionKind::Function, &item.sig.ident, &item.attrs);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.define(DefinitionKind::Function, &item.sig.ident, &item.attrs);
        visit::visit_trait_item_fn(self, item);
    }
}

/// The visibility of variants and of methods of traits, which have no keyword.
fn public() -> syn::Visibility {
    syn::Visibility::Public(syn::token::Pub::default())
}

struct DocVisitor {
    found: Vec<DocumentedItem>,
}

impl DocVisitor {
    fn note(
        &mut self,
        visibility: &syn::Visibility,
        name: &syn::Ident,
        attributes: &[syn::Attribute],
    ) {
        if matches!(visibility, syn::Visibility::Inherited) {
            return;
        }
        let mut doc = String::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
            let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
            let syn::Expr::Lit(literal) = &pair.value else { continue };
            if let syn::Lit::Str(line) = &literal.lit {
                doc.push_str(line.value().trim());
                doc.push('\n');
            }
        }
        if !doc.is_empty() {
            self.found.push(DocumentedItem { line: name.span().start().line, doc });
        }
    }
}

macro_rules! visit_documented {
    ($($method:ident: $item:ident),* $(,)?) => {
        $(fn $method(&mut self, item: &'ast syn::$item) {
            self.note(&item.vis, &item.ident, &item.attrs);
            visit::$method(self, item);
        })*
    };
}

impl<'ast> Visit<'ast> for DocVisitor {
    visit_documented! {
        visit_item_struct: ItemStruct, visit_item_enum: ItemEnum, visit_item_trait: ItemTrait,
        visit_item_type: ItemType, visit_item_const: ItemConst, visit_item_static: ItemStatic,
        visit_item_mod: ItemMod,
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.vis, &item.sig.ident, &item.attrs);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.vis, &item.sig.ident, &item.attrs);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.note(&public(), &variant.ident, &variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.note(&public(), &item.sig.ident, &item.attrs);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.note(&field.vis, name, &field.attrs);
        }
    }
}
