//! The global options, and the step before clap reads the arguments. Options of a subcommand are in
//! its file in `commands`.

use crate::output_path::OutputPath;
use clap::{ColorChoice, ValueEnum};
use std::ffi::OsString;
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
/// for options: `-has:email` becomes `not has:email`. The short options of `find` stay as they are.
/// Applies to `watch` too.
pub(crate) fn rewrite_negations(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed = typed.peekable();
    // The program's name, then global options with their values, then the subcommand.
    let mut args: Vec<OsString> = typed.next().into_iter().collect();
    while let Some(option) = typed.next_if(|arg| arg != "--" && has_minus_prefix(arg)) {
        let valued = VALUED_OPTIONS.iter().any(|name| option == *name);
        args.push(option);
        if valued {
            args.extend(typed.next());
        }
    }
    let mut searching = typed.peek().is_some_and(|arg| arg == "find" || arg == "watch");
    for arg in typed {
        let after_sort = args.last().is_some_and(|last| last == "--sort");
        let term = arg.to_str().filter(|_| searching && !after_sort).and_then(strip_negation);
        match term {
            Some(term) => args.extend([OsString::from("not"), OsString::from(term)]),
            None => {
                // Arguments after `--` are not rewritten.
                searching = searching && arg != "--";
                args.push(arg);
            }
        }
    }
    args
}

/// The global options that take a value, which may be the next argument.
const VALUED_OPTIONS: &[&str] = &["--data-dir", "--format", "--color", "--query-log"];

fn has_minus_prefix(arg: &OsString) -> bool {
    arg.as_encoded_bytes().first() == Some(&b'-')
}

/// Returns the term after a minus sign. One letter is a short option, and so is `-n20`.
fn strip_negation(arg: &str) -> Option<&str> {
    let term = arg.strip_prefix('-').filter(|term| !term.starts_with('-'))?;
    let limit =
        term.strip_prefix('n').is_some_and(|n| n.trim_start_matches('=').parse::<u64>().is_ok());
    (term.chars().count() > 1 && !limit).then_some(term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

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
        check("larder", "larder");
        let globals = GlobalArgs::augment_args(clap::Command::new("larder"));
        let valued = globals.get_arguments().filter(|arg| arg.get_action().takes_values());
        let valued: Vec<_> = valued.filter_map(|arg| arg.get_long()).collect();
        assert_eq!(valued, VALUED_OPTIONS.iter().map(|name| &name[2..]).collect::<Vec<_>>());
    }
}
