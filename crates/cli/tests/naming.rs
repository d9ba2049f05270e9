//! The rules for names and for the form of comments, held over every source file.
//!
//! Separate from the invariants of the architecture because these rules concern words: a name is a
//! term of its field, documentation is a statement, and a comment fits into 100 columns.

use crate::source_tree::{DefinitionKind, SourceFile, source_files};
use std::collections::BTreeMap;

/// Comments wrap here.
const MAX_COMMENT_COLUMNS: usize = 100;

/// Names that say nothing about their subject.
pub(crate) const EMPTY_NAMES: &[&str] =
    &["utils", "util", "common", "core", "types", "helpers", "helper", "misc"];

/// Prepositions, conjunctions, adverbs, pronouns and question words: none is a name by itself.
const FUNCTION_WORDS: &[&str] = &[
    "about",
    "above",
    "across",
    "after",
    "again",
    "against",
    "ahead",
    "alone",
    "along",
    "also",
    "always",
    "among",
    "anew",
    "apart",
    "around",
    "aside",
    "astray",
    "at",
    "away",
    "back",
    "before",
    "behind",
    "below",
    "beneath",
    "beside",
    "besides",
    "between",
    "beyond",
    "but",
    "by",
    "down",
    "during",
    "each",
    "elsewhere",
    "else",
    "ever",
    "everything",
    "few",
    "for",
    "forth",
    "from",
    "here",
    "how",
    "if",
    "in",
    "inside",
    "instead",
    "into",
    "it",
    "its",
    "just",
    "least",
    "less",
    "many",
    "more",
    "most",
    "much",
    "must",
    "near",
    "nearby",
    "never",
    "nothing",
    "now",
    "of",
    "off",
    "often",
    "on",
    "once",
    "others",
    "out",
    "outside",
    "over",
    "own",
    "past",
    "perhaps",
    "per",
    "rather",
    "same",
    "since",
    "so",
    "some",
    "soon",
    "still",
    "such",
    "than",
    "that",
    "the",
    "them",
    "then",
    "there",
    "these",
    "this",
    "those",
    "through",
    "till",
    "to",
    "together",
    "too",
    "toward",
    "under",
    "until",
    "up",
    "upon",
    "very",
    "via",
    "was",
    "well",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whole",
    "whom",
    "whose",
    "why",
    "with",
    "within",
    "without",
    "yet",
];

/// Participles that do not end in `ed` or `ing`.
const IRREGULAR_PARTICIPLES: &[&str] = &[
    "become",
    "begun",
    "bought",
    "broken",
    "brought",
    "built",
    "caught",
    "chosen",
    "done",
    "drawn",
    "driven",
    "fallen",
    "felt",
    "forgotten",
    "found",
    "given",
    "gone",
    "grown",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "laid",
    "led",
    "lent",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "rung",
    "said",
    "seen",
    "sent",
    "shown",
    "shut",
    "slept",
    "sold",
    "spent",
    "spoken",
    "stood",
    "sunk",
    "taken",
    "taught",
    "thought",
    "thrown",
    "told",
    "understood",
    "went",
    "woken",
    "worn",
    "written",
];

/// Nouns and verbs that end like a participle.
const PARTICIPLE_LOOKALIKES: &[&str] = &[
    "bring", "embed", "encoding", "exceed", "feed", "heading", "king", "mapping", "need",
    "padding", "posting", "proceed", "ring", "seed", "setting", "spacing", "speed", "spring",
    "string", "succeed", "thing", "timing", "warning",
];

/// Prefixes of conversions and of loops: with a word behind them they are names.
const NAME_PREFIXES: &[&str] = &["as_", "for_each", "from_", "into_", "to_", "with_"];

/// Splits a name into lower-case words, at underscores and at capitals.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.trim_start_matches("r#").chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a word is a participle. A module may have a gerund for a name: `naming`.
fn is_participle(word: &str, kind: DefinitionKind) -> bool {
    let is_gerund = word.ends_with("ing") && kind != DefinitionKind::Module;
    let is_regular = word.len() > 4 && (word.ends_with("ed") || is_gerund);
    is_regular && !PARTICIPLE_LOOKALIKES.contains(&word) || IRREGULAR_PARTICIPLES.contains(&word)
}

/// Returns why a name is not acceptable, or `None`.
fn find_fault(name: &str, kind: DefinitionKind) -> Option<&'static str> {
    let words = words_of_name(name);
    if words.iter().all(|word| EMPTY_NAMES.contains(&word.as_str())) {
        return Some("says nothing about its subject");
    }
    let is_prefixed =
        NAME_PREFIXES.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len());
    if kind == DefinitionKind::Function && (is_prefixed || name == "for_each") {
        return None;
    }
    let is_bad =
        |word: &String| FUNCTION_WORDS.contains(&word.as_str()) || is_participle(word, kind);
    if words.iter().all(is_bad) {
        return Some("is only a preposition, an adverb, a participle or a question word");
    }
    None
}

fn find_bad_names(file: &SourceFile) -> Vec<String> {
    let chosen = file.definitions.iter().filter(|definition| {
        // A test is named by a sentence.
        !(definition.kind == DefinitionKind::Function && definition.is_test)
    });
    chosen
        .filter_map(|definition| {
            let fault = find_fault(&definition.name, definition.kind)?;
            let at = format!("{}:{}", file.path.display(), definition.line);
            Some(format!("{at}: {:?} `{}` {fault}", definition.kind, definition.name))
        })
        .collect()
}

fn find_repeated_types(files: &[&SourceFile]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        for definition in &file.definitions {
            let exempt = ["Error", "Result"].contains(&definition.name.as_str());
            let is_type = definition.kind == DefinitionKind::Type && !definition.is_test;
            if is_type && !exempt {
                let at = format!("{}:{}", file.path.display(), definition.line);
                places.entry(definition.name.clone()).or_default().push(at);
            }
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated
        .map(|(name, places)| format!("`{name}` is defined at {}", places.join(" and ")))
        .collect()
}

fn find_wide_comments(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let wide = lines.filter(|(_, line)| {
        let comment = line.trim_start();
        // A row of a table cannot be wrapped.
        let is_table_row = comment.trim_start_matches(['/', '!']).trim_start().starts_with('|');
        comment.starts_with("//") && !is_table_row && line.chars().count() > MAX_COMMENT_COLUMNS
    });
    wide.map(|(at, line)| format!("{}:{}: {line}", file.path.display(), at + 1)).collect()
}

fn find_questions(file: &SourceFile) -> Vec<String> {
    let mut found = Vec::new();
    for item in &file.documented_items {
        let first = item.doc.split("\n\n").next().unwrap_or_default().trim();
        if first.starts_with("What") || first.ends_with('?') {
            let line = first.lines().next().unwrap_or_default();
            found.push(format!("{}:{}: {line}", file.path.display(), item.line));
        }
    }
    found
}

fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

#[test]
fn names_are_terms() {
    let found: Vec<String> = source_files().iter().flat_map(find_bad_names).collect();
    assert_none(&found, "a name is a noun phrase or a verb");
}

#[test]
fn a_type_name_stands_for_one_type() {
    let files: Vec<&SourceFile> = source_files().iter().filter(|file| !file.is_test()).collect();
    assert_none(&find_repeated_types(&files), "a type name occurs once in the workspace");
}

#[test]
fn comments_fit_into_their_columns() {
    let found: Vec<String> = source_files().iter().flat_map(find_wide_comments).collect();
    assert_none(&found, "comments wrap at 100 columns");
}

#[test]
fn documentation_consists_of_statements() {
    let found: Vec<String> = source_files().iter().flat_map(find_questions).collect();
    assert_none(&found, "documentation begins with a verb or a noun and asks nothing");
}

#[test]
fn planted_violations_are_found() {
    let text = "
        mod told { pub struct Kept; pub enum What {} pub trait Within {} type Said = u8; }
        impl Kept { fn of() {} fn anew(&self) {} fn keep_name(&self) {} }
        pub struct StoredFields;
        /// What is kept of it.
        pub fn read_it() {}
        /// Is it there?
        pub fn has_it() {}
    ";
    let file = SourceFile::parse("planted.rs", text);
    let names = find_bad_names(&file).join("\n");
    for name in ["told", "Kept", "What", "Within", "Said", "of", "anew"] {
        assert!(names.contains(&format!("`{name}`")), "{name} is not found in:\n{names}");
    }
    assert!(!names.contains("keep_name") && !names.contains("StoredFields"), "{names}");
    assert_eq!(find_questions(&file).len(), 2);
    let twice = SourceFile::parse("twice.rs", "enum StoredFields {}");
    assert_eq!(find_repeated_types(&[&file, &twice]).len(), 1);
    let wide = SourceFile::parse("wide.rs", &format!("// {}\n", "x".repeat(98)));
    assert_eq!(find_wide_comments(&wide).len(), 1);
}
