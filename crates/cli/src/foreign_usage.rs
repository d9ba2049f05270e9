//! The names that other programs give to commands, options and values, with what Larder has for
//! each: mu, notmuch, and the programs for contacts and calendars.
//!
//! Separate from `usage_error`, which prints the errors: these are tables.

/// Names that other programs give to a subcommand.
pub(crate) const COMMAND_SYNONYMS: &[(&str, &str)] = &[
    ("index", "sync"),
    ("init", "sources add MAILDIR"),
    ("setup", "sources add MAILDIR"),
    ("info", "collections"),
    ("cfind", "find --correspondents"),
    ("address", "find --correspondents"),
    ("count", "find --count"),
    ("tag", "edit ID --label +LABEL"),
    ("view", "show"),
    ("cat", "show"),
    ("extract", "save"),
    ("dump", "labels export"),
    ("search", "find"),
    ("query", "find"),
    ("list", "find"),
    ("ls", "find"),
    ("new", "sync, or add for a contact or an event"),
    ("create", "add"),
    ("rm", "remove"),
    ("del", "remove"),
    ("delete", "remove"),
    ("cal", "agenda"),
    ("calendar", "agenda"),
    ("today", "agenda"),
    ("modify", "edit"),
    ("history", "log"),
    ("redo", "undo"),
    ("verify", "check"),
];

/// Names that other programs give to a subcommand, with an explanation.
const EXPLAINED_COMMANDS: &[(&str, &str)] = &[
    ("reply", "larder writes no mail: use your mail program"),
    ("compose", "larder writes no mail: use your mail program"),
    ("forward", "larder writes no mail: use your mail program"),
    (
        "reindex",
        "to make the indexes again from all files: larder check --rebuild; to read files again that \
         were edited in place: larder sync --full",
    ),
    (
        "rename",
        "a collection or a source: larder collections rename NAME NEW; a label: larder labels rename",
    ),
    (
        "insert",
        "larder delivers no mail: put the file into a registered maildir, then: larder sync",
    ),
    ("move", "larder moves no mail: use your mail program, then: larder sync"),
    ("mkdir", "larder makes no maildirs: `larder sources add MAILDIR` registers one"),
    ("compact", "the index needs no compaction; to make it again: larder check --rebuild"),
    ("config", "the configuration is the file config.toml, see docs/configuration.md"),
    ("update", "to change labels: larder edit --query QUERY --label +NAME -NAME"),
    (
        "clear",
        "to remove a label: larder labels remove NAME, or larder edit --query QUERY --label -NAME",
    ),
];

/// Options that a command has under another name, which other commands or programs use.
pub(crate) const OPTION_SYNONYMS: &[(&str, &str)] = &[
    ("--in", "--into"),
    ("--into", "--in"),
    ("--every", "--rule"),
    ("--maxnum", "--limit"),
    ("--include-related", "--related"),
    ("--linksdir", "--links"),
    ("--clearlinks", "--clear"),
    ("--summary-len", "--snippets"),
    ("--reverse", "--sort"),
    ("--sortfield", "--sort"),
    ("--entire-thread", "--thread"),
    ("--full-scan", "--full"),
    ("--nocolor", "--color"),
    ("--title", "--summary"),
    ("--place", "--location"),
];

/// Options of other programs by the subcommand, with an explanation.
const EXPLAINED_OPTIONS: &[(&str, &str, &str)] = &[
    (
        "find",
        "--bookmark",
        "a saved search is a part of the query: larder find --kind message @NAME",
    ),
    (
        "find",
        "--skip-dups",
        "each message is listed once, so leave it out; --files prints all files",
    ),
    (
        "find",
        "--output",
        "--kind message lists messages, --summary threads, --files paths; `larder labels` labels",
    ),
    (
        "find",
        "--exclude",
        "messages with a hidden label are found if the query names it: label:spam",
    ),
    (
        "find",
        "--exec",
        "to run a program on the files: larder find --files -0 QUERY | xargs -0 PROGRAM",
    ),
    ("find", "--muhome", "the data directory of larder is --data-dir DIR"),
    (
        "find",
        "--reverse",
        "the reverse order is --sort -FIELD, such as --sort -date, the default of messages",
    ),
    ("show", "--part", "to save a part: larder save ID --part N"),
    ("show", "--body", "--format json has the texts of a message"),
    ("sync", "--lazy-check", "folders whose time is unchanged are never listed, so leave it out"),
    ("sync", "--my-address", "your addresses are mail.addresses in config.toml"),
    ("sync", "--cleanup", "messages whose files are gone always go, so leave it out"),
    ("sync", "--maildir", "maildirs are registered: larder sources add MAILDIR"),
    ("add", "--maildir", "the maildir is an operand: larder sources add MAILDIR"),
    ("restore", "--input", "to read labels: larder labels import FILE"),
    ("restore", "--accumulate", "to read labels: larder labels import FILE"),
    ("import", "--input", "the file is written without an option"),
    ("import", "--accumulate", "messages keep their labels without --replace, so leave it out"),
];

/// The short options of `mu find`, with an explanation.
const EXPLAINED_SHORT_OPTIONS: &[(&str, &str)] = &[
    ("-f", "fields of messages are printed by --fields 'd f s', with the letters of mu"),
    ("-s", "the order is --sort FIELD, or --sort -FIELD for the reverse one"),
    ("-z", "the reverse order is --sort -FIELD, such as --sort -date, the default of messages"),
    ("-t", "threads are listed by --threads"),
    ("-r", "the other messages of the threads are listed, too, by --related"),
    ("-u", "each message is listed once, so leave it out; --files prints all files"),
    ("-b", "a saved search is a part of the query: larder find --kind message @NAME"),
    ("-o", "the format is --format text, json or raw; links are made by --links DIR"),
];

/// Values of other programs for an option, with an explanation.
const EXPLAINED_VALUES: &[(&str, &str, &str)] = &[
    ("--format", "threads", "threads are listed by --threads"),
    ("--format", "links", "links to the files are made by --links DIR"),
    ("--format", "plain", "text is the default"),
    ("--format", "sexp", "larder prints no S-expressions; --format json has all values"),
    ("--format", "xml", "larder prints no XML; --format json has all values"),
    ("--format", "text0", "paths that end with a zero byte are printed by --files -0"),
    (
        "--format",
        "wl",
        "the formats of addresses are text, json, mutt, mutt-alias, csv, org, bbdb and vcard",
    ),
    ("--kind", "mail", "e-mail is the kind message"),
    ("--kind", "email", "e-mail is the kind message"),
];

/// Returns the explanation of an option that a subcommand does not have.
pub(crate) fn explain_option(command: &str, option: &str) -> Option<&'static str> {
    if command == "find" && !option.starts_with("--") {
        let mut explained = EXPLAINED_SHORT_OPTIONS.iter();
        return explained.find(|(name, _)| *name == option).map(|(_, hint)| *hint);
    }
    let explained = EXPLAINED_OPTIONS.iter();
    let mut found = explained.filter(|(owner, name, _)| *owner == command && *name == option);
    found.next().map(|(.., hint)| *hint)
}

/// Returns the explanation of a subcommand that there is not.
pub(crate) fn explain_command(typed: &str) -> Option<&'static str> {
    let mut explained = EXPLAINED_COMMANDS.iter();
    explained.find(|(name, _)| name.eq_ignore_ascii_case(typed)).map(|(_, hint)| *hint)
}

/// Returns the explanation of a value that an option, such as `--kind <KIND>`, does not take.
pub(crate) fn explain_value(argument: &str, typed: &str) -> Option<&'static str> {
    let option = argument.split(' ').next().unwrap_or_default();
    let explained = EXPLAINED_VALUES.iter().filter(|(owner, ..)| *owner == option);
    let mut found = explained.filter(|(_, name, _)| name.eq_ignore_ascii_case(typed));
    found.next().map(|(.., hint)| *hint)
}
