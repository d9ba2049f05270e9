//! The global options, and the step before clap reads the arguments. Options of a subcommand are in
//! its file in `commands`.

use crate::output_path::OutputPath;
use clap::{ColorChoice, ValueEnum};
use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;

/// Options that every subcommand takes.
#[derive(Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// The data directory [default: $LARDER_DIR, else data-dir in config.toml, else
    /// $XDG_DATA_HOME/larder]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Global options")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Output format; json prints one object on each line, see docs/output.md
    #[arg(long, value_enum, global = true, default_value_t, help_heading = "Global options")]
    pub(crate) format: OutputFormat,
    /// Print no progress, notes or warnings
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Global options")]
    pub(crate) color: Option<ColorChoice>,
    /// Append each query and its cost to FILE [default: query-log in config.toml]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Global options")]
    pub(crate) query_log: Option<OutputPath>,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object on each line
    Json,
    /// The original bytes of the items
    Raw,
    /// A page for a browser
    #[value(hide = true)]
    Html,
    /// Messages one behind the other, for other mail programs
    #[value(hide = true)]
    Mbox,
    /// The answer to the query_command of mutt
    #[value(hide = true, alias = "mutt-ab")]
    Mutt,
    /// Aliases of mutt
    #[value(hide = true)]
    MuttAlias,
    /// Comma-separated values
    #[value(hide = true)]
    Csv,
    /// Headings of org-contacts
    #[value(hide = true, alias = "org-contact")]
    Org,
    /// Records of BBDB
    #[value(hide = true)]
    Bbdb,
    /// vCards
    #[value(hide = true)]
    Vcard,
}

impl OutputFormat {
    /// Returns the name as typed on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            OutputFormat::Text => "text",
            OutputFormat::Json => "json",
            OutputFormat::Raw => "raw",
            OutputFormat::Html => "html",
            OutputFormat::Mbox => "mbox",
            OutputFormat::Mutt => "mutt",
            OutputFormat::MuttAlias => "mutt-alias",
            OutputFormat::Csv => "csv",
            OutputFormat::Org => "org",
            OutputFormat::Bbdb => "bbdb",
            OutputFormat::Vcard => "vcard",
        }
    }
}

/// Rewrites negated terms of a search line (`larder find anna -has:email`), which clap would take
/// for options: `-has:email` becomes `not has:email`. The short options of `find`, also several in
/// one argument, and the values of options stay as they are. Applies to `watch` and to the query of
/// `searches add` too.
pub(crate) fn rewrite_negations(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed = typed.peekable();
    let mut args: Vec<OsString> = typed.next().into_iter().collect();
    let mut searching = is_search_next(&mut typed, &mut args);
    let mut is_value = false;
    for arg in typed {
        let term = arg.to_str().filter(|_| searching && !is_value).and_then(strip_negation);
        match term {
            Some(term) => {
                args.extend([OsString::from("not"), OsString::from(term)]);
            }
            None => {
                // Arguments after `--` are not rewritten, nor are the labels after `--label`.
                searching = searching && arg != "--" && !is_label_option(&arg);
                is_value = !is_value && awaits_value(&arg);
                args.push(arg);
            }
        }
    }
    args
}

/// Moves the arguments in front of a search line, or of the subcommand `find` or `watch`, from
/// `typed` to `args`. Returns whether there is one.
fn is_search_next(
    typed: &mut Peekable<impl Iterator<Item = OsString>>,
    args: &mut Vec<OsString>,
) -> bool {
    move_options(typed, args);
    if typed.peek().is_some_and(|arg| arg == "find" || arg == "watch") {
        return true;
    }
    for word in ["searches", "add"] {
        let Some(arg) = typed.next_if(|arg| arg == word) else { return false };
        args.push(arg);
        move_options(typed, args);
    }
    // The query of a saved search is behind its name.
    let name = typed.next_if(|arg| !has_minus_prefix(arg));
    let has_name = name.is_some();
    args.extend(name);
    has_name
}

/// Moves options with their values from `typed` to `args`.
fn move_options(typed: &mut Peekable<impl Iterator<Item = OsString>>, args: &mut Vec<OsString>) {
    let is_option = |arg: &OsString| arg != "--" && has_minus_prefix(arg) && !is_label_option(arg);
    while let Some(option) = typed.next_if(is_option) {
        let valued = awaits_value(&option);
        args.push(option);
        if valued {
            args.extend(typed.next());
        }
    }
}

/// Returns whether an argument is the option of labels, which takes all words that follow.
fn is_label_option(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|arg| arg == LABEL_OPTION || arg.starts_with("--label="))
}

const LABEL_OPTION: &str = "--label";

/// The global options, and those of searches, that take one value, which may be the next argument.
const VALUED_OPTIONS: &[&str] = &[
    "--after",
    "--alarms",
    "--changes",
    "--color",
    "--data-dir",
    "--fields",
    "--for",
    "--format",
    "--from",
    "--in",
    "--kind",
    "--limit",
    "--links",
    "--offset",
    "--query-log",
    "--sort",
];

/// The short options of `find` without a value. The only other one is `-n`.
const SHORT_FLAGS: &[char] = &['0', 'V', 'h', 'q'];

fn has_minus_prefix(arg: &OsString) -> bool {
    arg.as_encoded_bytes().first() == Some(&b'-')
}

/// Returns whether an argument is an option whose value is the next argument.
fn awaits_value(arg: &OsString) -> bool {
    let Some(arg) = arg.to_str() else { return false };
    let letters = arg.strip_prefix('-').map(|letters| letters.trim_start_matches(SHORT_FLAGS));
    VALUED_OPTIONS.contains(&arg) || letters == Some("n")
}

/// Returns the term after a minus sign. One letter is a short option.
fn strip_negation(arg: &str) -> Option<&str> {
    let term = arg.strip_prefix('-').filter(|term| !term.starts_with('-'))?;
    (term.chars().count() > 1 && !is_option_cluster(term)).then_some(term)
}

/// Returns whether the letters after a minus sign are short options: flags, and at the end perhaps
/// `n`, with or without its number.
fn is_option_cluster(letters: &str) -> bool {
    let rest = letters.trim_start_matches(SHORT_FLAGS);
    match rest.strip_prefix('n') {
        Some(limit) => limit.is_empty() || limit.trim_start_matches('=').parse::<u64>().is_ok(),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn negated_terms_are_not_options() {
        let check = |typed: &str, expect: &str| {
            let args = rewrite_negations(typed.split(' ').map(OsString::from));
            let args: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
            assert_eq!(args.join(" "), expect);
        };
        check("larder find anna -has:email -n 3", "larder find anna not has:email -n 3");
        check("larder find -otto --sort -rev -n20 -q", "larder find not otto --sort -rev -n20 -q");
        check("larder watch anna -has:email", "larder watch anna not has:email");
        check("larder find -- -otto", "larder find -- -otto");
        check("larder --quiet show -x", "larder --quiet show -x");
        check("larder find -- a -- find -otto", "larder find -- a -- find -otto");
        check("larder -- find -otto", "larder -- find -otto");
        let measured = "larder measure run -- find DIR -maxdepth 0";
        check(measured, measured);
        check("larder show find -xyz", "larder show find -xyz");
        check("larder --data-dir find show -xyz", "larder --data-dir find show -xyz");
        check("larder -q --data-dir d find -otto", "larder -q --data-dir d find not otto");
        check("larder --format=json find -otto", "larder --format=json find not otto");
        check("larder find -qn2 walrus -q0 -hn", "larder find -qn2 walrus -q0 -hn");
        check("larder find -qx -n2x -nq", "larder find not qx not n2x not nq");
        check("larder find -qn -30 -n -4 -otto", "larder find -qn -30 -n -4 not otto");
        check("larder find --alarms -3d..+9d -otto", "larder find --alarms -3d..+9d not otto");
        check("larder find --in -foo --count -bar", "larder find --in -foo --count not bar");
        check("larder find --in=a -otto", "larder find --in=a not otto");
        check("larder watch --for -5 -otto", "larder watch --for -5 not otto");
        check("larder find --sort --sort -otto", "larder find --sort --sort not otto");
        check("larder", "larder");
    }

    #[test]
    fn negated_terms_of_saved_searches_are_not_options() {
        let check = |typed: &str, expect: &str| {
            let args = rewrite_negations(typed.split(' ').map(OsString::from));
            let args: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
            assert_eq!(args.join(" "), expect);
        };
        check(
            "larder searches add a --kind contact -has:email",
            "larder searches add a --kind contact not has:email",
        );
        check(
            "larder -q searches -q add --kind contact a -has:email",
            "larder -q searches -q add --kind contact a not has:email",
        );
        check(
            "larder searches add a -x:y -q --no-label",
            "larder searches add a not x:y -q --no-label",
        );
        check(
            "larder searches add a -x:y --label +tax -inbox",
            "larder searches add a not x:y --label +tax -inbox",
        );
        for unchanged in [
            "larder searches add a --label=+tax -inbox",
            "larder searches add --label +tax -inbox",
            "larder searches add -- a -has:email",
            "larder searches add a -- -has:email",
            "larder searches add -has:email",
            "larder searches remove a -has:email",
            "larder searches",
        ] {
            check(unchanged, unchanged);
        }
    }

    /// The tables have the options that clap knows.
    #[test]
    fn options_of_searches_are_known() {
        let mut root = crate::commands::clap_command();
        root.build();
        let saved = root.find_subcommand("searches").unwrap().find_subcommand("add").unwrap();
        let searches = ["find", "watch"].map(|name| root.find_subcommand(name).unwrap());
        let searches = [searches[0], searches[1], saved];
        let options = || searches.iter().flat_map(|command| command.get_arguments());
        let valued = options().filter(|arg| arg.get_action().takes_values());
        let names: BTreeSet<String> =
            valued.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
        let known = VALUED_OPTIONS.iter().chain([&LABEL_OPTION]);
        assert_eq!(names, known.map(ToString::to_string).collect());
        let letters = |takes_value: bool| -> BTreeSet<char> {
            let options = options().filter(|arg| arg.get_action().takes_values() == takes_value);
            options.filter_map(|arg| arg.get_short()).collect()
        };
        assert_eq!(letters(false), SHORT_FLAGS.iter().copied().collect());
        assert_eq!(letters(true), BTreeSet::from(['n']));
    }
}
