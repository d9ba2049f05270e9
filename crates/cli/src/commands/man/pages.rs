//! The manual pages: one for each subcommand, from its help, and larder-query(7), from the
//! documentation of search and the tables of fields.

use super::markdown;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use larder_format::collection_type::CollectionType;
use larder_format::field::Field;
use larder_query::MAIL_QUERY_FIELDS;

/// A manual page.
pub(super) struct ManualPage {
    /// The name without the section: `larder-find`.
    pub(super) name: String,
    pub(super) section: &'static str,
    pub(super) text: String,
}

pub(super) const VERSION: &str = concat!("larder ", env!("CARGO_PKG_VERSION"));
pub(super) const MANUAL: &str = "Larder Manual";
const QUERY_DOCUMENTATION: &str = include_str!("../../../../../docs/search.md");
/// The documentation of mail.
const MAIL_DOCUMENTATION: &str = include_str!("../../../../../docs/mail.md");

/// The meaning of the exit codes.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Success."),
    ("1", "Nothing was found."),
    ("2", "Usage error."),
    ("3", "Some input was invalid and rejected."),
    ("4", "The store cannot be used, or not all of it can be read."),
    ("5", "A file or a server cannot be reached."),
    ("130", "Interrupted. Committed changes are stored."),
];

/// The environment variables, and the subcommands that read them; empty for all.
const ENVIRONMENT: &[(&str, &str, &[&str])] = &[
    ("LARDER_DIR", "The data directory, unless --data-dir is given.", &[]),
    ("XDG_DATA_HOME, XDG_CONFIG_HOME, XDG_STATE_HOME", "Base directories of the files below.", &[]),
    (
        "LC_ALL, LC_COLLATE, LC_ADDRESS, LANG",
        "The order of lists and the region of phone numbers.",
        &[],
    ),
    (
        "LC_TIME",
        "The language of dates.",
        &["agenda", "find", "watch", "show", "add", "edit", "remove"],
    ),
    (
        "TZ",
        "The local time zone.",
        &["agenda", "find", "watch", "show", "add", "edit", "remove", "log"],
    ),
    ("VISUAL, EDITOR", "The editor, unless config.toml sets one.", &["edit"]),
    ("TMPDIR", "The directory for the temporary file that the editor opens.", &["edit"]),
    ("DBUS_SESSION_BUS_ADDRESS", "The address of the session bus.", &["serve"]),
    ("NO_COLOR", "Disables colours.", &[]),
    ("COLUMNS", "The maximum width of a line.", &[]),
];

/// The files.
const FILES: &[(&str, &str)] = &[
    ("$XDG_DATA_HOME/larder/", "The store (~/.local/share/larder)."),
    ("$XDG_CONFIG_HOME/larder/config.toml", "The configuration (~/.config/larder/config.toml)."),
    ("$XDG_STATE_HOME/larder/queries.jsonl", "The query log, if it is enabled."),
];

/// Related pages of a subcommand.
const RELATED_PAGES: &[(&str, &[&str])] = &[
    ("import", &["export", "add", "undo"]),
    ("find", &["query(7)", "agenda", "watch", "show", "fields"]),
    ("agenda", &["find", "watch"]),
    ("watch", &["query(7)", "find", "agenda"]),
    ("show", &["find", "edit", "log", "save"]),
    ("save", &["show"]),
    ("add", &["import", "edit"]),
    ("edit", &["show", "undo", "log"]),
    ("merge", &["find", "undo"]),
    ("remove", &["query(7)", "undo", "purge"]),
    ("undo", &["log"]),
    ("log", &["undo", "purge"]),
    ("purge", &["remove", "log"]),
    ("sources", &["sync", "find"]),
    ("sync", &["sources", "find"]),
    ("fields", &["query(7)", "find"]),
    ("hg", &["git-remote-hg(1)", "git-cinnabar(1)"]),
    ("check", &["backup", "restore"]),
    ("backup", &["restore", "check"]),
    ("restore", &["backup", "check"]),
];

/// Renders the page of each subcommand, and larder-query(7).
pub(super) fn render_pages(mut command: clap::Command) -> Vec<ManualPage> {
    command.build();
    let mut pages = Vec::new();
    collect_pages(&command, &[], &mut pages);
    pages.push(render_query_page());
    pages
}

fn collect_pages(command: &clap::Command, path: &[&str], pages: &mut Vec<ManualPage>) {
    pages.push(render_page(command, path));
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let mut path = path.to_vec();
        path.push(subcommand.get_name());
        collect_pages(subcommand, &path, pages);
    }
}

fn render_page(command: &clap::Command, path: &[&str]) -> ManualPage {
    let words: Vec<&str> = ["larder"].into_iter().chain(path.iter().copied()).collect();
    let name = words.join("-");
    let title = name.to_uppercase();
    let mut roff = Roff::new();
    roff.control("TH", [title.as_str(), "1", "", VERSION, MANUAL]);
    roff.control("SH", ["NAME"]);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage:").trim();
    for line in usage.lines() {
        let operands = line.trim().trim_start_matches(&words.join(" "));
        roff.text([bold(words.join(" ")), roman(operands)]);
        roff.control("br", []);
    }
    let help = command.get_long_about().map(ToString::to_string);
    // The first line is the summary, which NAME has.
    let help = match &help {
        Some(help) => help.strip_prefix(about.as_str()).unwrap_or(help.as_str()),
        None => about.as_str(),
    };
    let (description, examples) = split_examples(help);
    roff.control("SH", ["DESCRIPTION"]);
    write_paragraphs(&mut roff, &description);
    let mut text = roff.to_roff();
    text.push_str(&render_options(command));
    let mut roff = Roff::new();
    if let Some((verb, _)) = path.split_first() {
        if command.has_subcommands() {
            write_subcommands(&mut roff, command);
        }
        roff.control("SH", ["GLOBAL OPTIONS"]);
        roff.text([bold("larder(1)"), roman(" describes the options of all subcommands.")]);
        write_common_sections(&mut roff, Some(verb), &examples);
        let related = RELATED_PAGES.iter().find(|(name, _)| name == verb);
        write_see_also(&mut roff, related.map_or(&[], |(_, pages)| *pages));
    } else {
        write_subcommands(&mut roff, command);
        write_common_sections(&mut roff, None, &examples);
        write_see_also(&mut roff, &["query(7)", "import", "find", "agenda", "undo"]);
    }
    text.push_str(&roff.to_roff());
    ManualPage { name, section: "1", text }
}

/// Returns the section OPTIONS, as clap_mangen renders it.
fn render_options(command: &clap::Command) -> String {
    let mut options = Vec::new();
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    // Writing to memory cannot fail.
    if has_options && Man::new(command.clone()).render_options_section(&mut options).is_err() {
        options.clear();
    }
    String::from_utf8_lossy(&options).into_owned()
}

fn write_subcommands(roff: &mut Roff, command: &clap::Command) {
    roff.control("SH", ["COMMANDS"]);
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        write_entry(roff, subcommand.get_name(), &about);
    }
}

fn write_common_sections(roff: &mut Roff, verb: Option<&str>, examples: &[String]) {
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        write_entry(roff, code, meaning);
    }
    roff.control("SH", ["ENVIRONMENT"]);
    let is_read =
        |verbs: &[&str]| verb.is_none_or(|verb| verbs.is_empty() || verbs.contains(&verb));
    for (name, meaning, _) in ENVIRONMENT.iter().filter(|(.., verbs)| is_read(verbs)) {
        write_entry(roff, name, meaning);
    }
    roff.control("SH", ["FILES"]);
    for (path, meaning) in FILES {
        write_entry(roff, path, meaning);
    }
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        markdown::write_literal(roff, examples);
    }
}

fn write_see_also(roff: &mut Roff, related: &[&str]) {
    roff.control("SH", ["SEE ALSO"]);
    let page = |name: &&str| match name.contains('(') {
        true if name.starts_with("git-") => name.to_string(),
        true => format!("larder-{name}"),
        false => format!("larder-{name}(1)"),
    };
    let pages: Vec<String> =
        ["larder(1)".to_string()].into_iter().chain(related.iter().map(page)).collect();
    roff.text([roman(pages.join(", "))]);
}

fn render_query_page() -> ManualPage {
    let mut roff = Roff::new();
    roff.control("TH", ["LARDER-QUERY", "7", "", VERSION, MANUAL]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("larder-query - queries of larder find and larder watch")]);
    roff.control("SH", ["DESCRIPTION"]);
    markdown::write(&mut roff, QUERY_DOCUMENTATION);
    for row in CollectionType::all_listed().map(CollectionType::row) {
        let heading = format!("FIELDS OF {}", row.items.to_uppercase());
        roff.control("SH", [heading.as_str()]);
        for field in row.fields {
            write_entry(&mut roff, field.name, &describe_field(field));
        }
    }
    roff.control("SH", ["MESSAGES"]);
    markdown::write(&mut roff, mail_query_documentation());
    roff.control("SH", ["FIELDS OF QUERIES FOR MESSAGES"]);
    for (names, help) in MAIL_QUERY_FIELDS {
        write_entry(&mut roff, &names.join(", "), help);
    }
    write_see_also(&mut roff, &["find", "watch", "fields"]);
    ManualPage { name: "larder-query".into(), section: "7", text: roff.to_roff() }
}

/// Returns the part of the documentation of mail that is about queries.
fn mail_query_documentation() -> &'static str {
    let after = |heading| MAIL_DOCUMENTATION.split_once(heading).map(|(_, rest)| rest);
    let searching = after("## Searching\n").unwrap_or_default();
    searching.split_once("### Lists\n").map_or(searching, |(queries, _)| queries)
}

fn describe_field(field: &Field) -> String {
    let mut text = field.help.to_string();
    if !field.aliases.is_empty() {
        text.push_str(&format!(" (also {})", field.aliases.join(", ")));
    }
    text
}

/// Writes a term and its description.
pub(super) fn write_entry(roff: &mut Roff, term: &str, description: &str) {
    roff.control("TP", []);
    roff.text([bold(term)]);
    roff.text([roman(description)]);
}

/// Separates the example commands of a help text, which are indented, from the description.
fn split_examples(help: &str) -> (String, Vec<String>) {
    let is_example = |line: &str| line.starts_with("  ") && line.contains("larder ");
    let examples = help.lines().filter(|line| is_example(line));
    let examples: Vec<String> = examples.map(|line| line.trim_start().to_string()).collect();
    let description: Vec<&str> = help.lines().filter(|line| !is_example(line)).collect();
    let description = description.join("\n").replace(":\n\n\n", ".\n\n");
    let description = description.trim_end();
    let description = match description.strip_suffix(':') {
        Some(description) => format!("{description}."),
        None => description.to_string(),
    };
    (description, examples)
}

/// Writes paragraphs; indented lines stay as they are.
fn write_paragraphs(roff: &mut Roff, text: &str) {
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        roff.control("PP", []);
        let lines: Vec<String> = paragraph.lines().map(str::to_string).collect();
        match lines.iter().all(|line| line.is_empty() || line.starts_with("  ")) {
            true => markdown::write_literal(roff, &lines),
            false => {
                roff.text([roman(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))]);
            }
        }
    }
}
