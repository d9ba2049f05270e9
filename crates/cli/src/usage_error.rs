//! Errors in the use of the command line, which clap finds, in the form of all other messages:
//! `error:`, then `hint:` lines, and exit code 2.

use crate::commands::unusual_format_names;
use crate::failure::{CommandFailure, FailureKind};
use crate::foreign_usage::{
    COMMAND_SYNONYMS, OPTION_SYNONYMS, explain_command, explain_option, explain_value,
};
use crate::suggestion::find_nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::process::ExitCode;

/// Prints the help that was requested, or the error, and returns the exit code. `command` and
/// `args` are the whole command line.
pub(crate) fn print_and_exit_code(
    error: &clap::Error,
    mut command: clap::Command,
    args: impl Iterator<Item = OsString>,
) -> ExitCode {
    command.build();
    let help_of_help = ["--help", "-h"].map(Some);
    match error.kind() {
        ErrorKind::InvalidSubcommand
            if help_of_help.contains(&context_string(error, ContextKind::InvalidSubcommand)) =>
        {
            let _reader_left = command.print_help();
            ExitCode::SUCCESS
        }
        // A closed pipe, as in `larder --help | head -1`, is not a failure.
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _reader_left = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _reader_left = error.print();
            ExitCode::from(2)
        }
        _ => {
            let args: Vec<String> =
                args.skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
            to_failure(error, TypedCommand::find(&command, &args)).print_and_exit_code(false)
        }
    }
}

/// The command that was typed, and its arguments.
#[derive(Clone, Copy)]
struct TypedCommand<'a> {
    command: &'a clap::Command,
    args: &'a [String],
}

impl<'a> TypedCommand<'a> {
    /// Finds the command, which may be a subcommand of a subcommand.
    fn find(root: &'a clap::Command, args: &'a [String]) -> TypedCommand<'a> {
        let (mut command, mut rest) = (root, args);
        for (at, arg) in args.iter().enumerate() {
            if let Some(subcommand) = command.find_subcommand(arg) {
                (command, rest) = (subcommand, args.get(at + 1..).unwrap_or_default());
            } else if !arg.starts_with('-') && !std::ptr::eq(command, root) {
                break;
            }
        }
        TypedCommand { command, args: rest }
    }

    fn option_names(self) -> impl Iterator<Item = String> + 'a {
        let names = |arg: &'a clap::Arg| {
            arg.get_long().into_iter().chain(arg.get_visible_aliases().into_iter().flatten())
        };
        self.command.get_arguments().flat_map(names).map(|name| format!("--{name}"))
    }

    /// Returns the first argument that looks like an option and is none. Where an argument may
    /// begin with a minus sign, clap takes such an option for its value.
    fn find_unknown_option(self) -> Option<&'a str> {
        let mut args = self.args.iter();
        while let Some(arg) = args.next().filter(|arg| *arg != "--") {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            if !name.starts_with("--") {
                continue;
            }
            let name_letters = name.trim_start_matches("--");
            let option = self.command.get_arguments().find(|option| {
                let aliases = option.get_all_aliases().unwrap_or_default();
                option.get_long() == Some(name_letters) || aliases.contains(&name_letters)
            });
            match option {
                None if name == "--help" => {}
                None => return Some(name),
                Some(option) if value.is_none() && option.get_action().takes_values() => {
                    let _value = args.next();
                }
                Some(_) => {}
            }
        }
        None
    }

    /// Returns the option that was probably meant.
    fn suggest_option(self, typed: &str) -> Option<String> {
        let names: Vec<String> = self.option_names().collect();
        let synonym = OPTION_SYNONYMS
            .iter()
            .find(|(other, name)| *other == typed && names.iter().any(|known| known == name));
        if let Some((_, name)) = synonym {
            return Some((*name).to_string());
        }
        let bare = names.iter().map(|name| name.trim_start_matches('-'));
        find_nearest(typed.trim_start_matches('-'), bare).map(|name| format!("--{name}"))
    }

    /// Returns the values that the option of an error takes.
    fn valid_values(self, error: &'a clap::Error) -> Vec<&'a str> {
        let is_format = context_string(error, ContextKind::InvalidArg)
            .is_some_and(|argument| argument.starts_with("--format "));
        is_format
            .then(|| unusual_format_names(self.command.get_name(), self.args))
            .flatten()
            .unwrap_or_else(|| context_strings(error, ContextKind::ValidValue))
    }

    /// Returns the usage line, without its heading.
    fn usage(self) -> String {
        let usage = self.command.clone().render_usage().to_string();
        let usage = usage.trim().strip_prefix("Usage: ").unwrap_or(usage.trim());
        usage.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn to_failure(error: &clap::Error, typed: TypedCommand<'_>) -> CommandFailure {
    let is_about_value =
        matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ValueValidation);
    if let Some(option) = typed.find_unknown_option().filter(|_| is_about_value) {
        let failure = CommandFailure::new(FailureKind::Usage, format!("unknown option {option}"));
        let failure = match (
            explain_option(typed.command.get_name(), option),
            typed.suggest_option(option),
        ) {
            (Some(hint), _) => failure.with_hint(hint),
            (None, Some(near)) => failure.with_hint(format!("did you mean {near}?")),
            (None, None) => failure,
        };
        return failure.with_hint(format!("usage: {}", typed.usage()));
    }
    let failure = CommandFailure::new(FailureKind::Usage, describe(error));
    // A long option was found above.
    let short_option = context_string(error, ContextKind::InvalidArg)
        .filter(|_| error.kind() == ErrorKind::UnknownArgument)
        .and_then(|option| explain_option(typed.command.get_name(), option));
    let values = typed.valid_values(error);
    let failure = match short_option.map(str::to_string).or_else(|| suggest(error, &values)) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    };
    let failure = match values.is_empty() {
        true => failure,
        false => failure.with_hint(format!("possible values: {}", values.join(", "))),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let is_redo = context_string(error, ContextKind::InvalidSubcommand) == Some("redo");
            match is_redo {
                true => failure.with_hint("`larder undo N` with the number of an undo redoes"),
                false => failure.with_hint("`larder help` lists the commands"),
            }
        }
        ErrorKind::ArgumentConflict if is_second_collection(error) => failure.with_hint(
            "without --in, all collections are searched; for some of them, run the command for each",
        ),
        // clap has no usage for an error in a value.
        _ if error.get(ContextKind::Usage).is_none() => failure,
        _ => failure.with_hint(format!("usage: {}", typed.usage())),
    }
}

/// Returns whether `--in` was given twice to a command that takes one collection.
fn is_second_collection(error: &clap::Error) -> bool {
    let argument = context_string(error, ContextKind::InvalidArg).unwrap_or_default();
    argument.starts_with("--in ")
        && context_strings(error, ContextKind::PriorArg).contains(&argument)
}

/// Returns the message, without clap's prefix.
fn describe(error: &clap::Error) -> String {
    let argument = context_string(error, ContextKind::InvalidArg);
    let value = context_string(error, ContextKind::InvalidValue);
    match (error.kind(), argument, value) {
        (ErrorKind::InvalidSubcommand, ..) => {
            let name = context_string(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("unknown command {name:?}")
        }
        (ErrorKind::UnknownArgument, Some(argument), _) if argument.starts_with('-') => {
            format!("unknown option {argument}")
        }
        (ErrorKind::UnknownArgument, Some(argument), _) => {
            format!("unexpected argument {argument:?}")
        }
        (ErrorKind::InvalidValue, Some(argument), Some("")) => {
            format!("{argument} needs a value")
        }
        (ErrorKind::InvalidValue, Some(argument), Some(value)) => {
            format!("invalid value {value:?} for {argument}")
        }
        (ErrorKind::ValueValidation, Some(argument), Some(value)) => {
            let reason = error.source().map(|source| describe_reason(&source.to_string()));
            format!("invalid value {value:?} for {argument}: {}", reason.unwrap_or_default())
        }
        (ErrorKind::MissingRequiredArgument, ..) => {
            let missing = context_strings(error, ContextKind::InvalidArg);
            // What an option needs is an option; clap adds the argument that it excludes.
            let needed = missing.iter().find(|missing| missing.starts_with("--"));
            format!("missing {}", needed.map_or_else(|| missing.join(" and "), ToString::to_string))
        }
        (ErrorKind::ArgumentConflict, Some(argument), _) => {
            match context_strings(error, ContextKind::PriorArg) {
                prior if prior.contains(&argument) => {
                    format!("{argument} may be given once only")
                }
                prior => format!("{argument} cannot be used with {}", prior.join(", ")),
            }
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_string()
        }
    }
}

/// Rewrites the messages of the standard library and of clap's ranges.
fn describe_reason(reason: &str) -> String {
    if let Some((number, range)) = reason.split_once(" is not in ") {
        return match range.split_once("..=").or_else(|| range.split_once("..")) {
            Some((least, "")) => format!("{number} is less than {least}"),
            Some((least, most)) => format!("{number} is not between {least} and {most}"),
            None => reason.to_string(),
        };
    }
    match reason {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "not a number".to_string()
        }
        _ => reason.to_string(),
    }
}

/// Returns a suggestion if one of clap's, or one of these values, is near enough.
fn suggest(error: &clap::Error, values: &[&str]) -> Option<String> {
    let suggested = |kind| context_strings(error, kind);
    let (typed, known) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            (ContextKind::InvalidSubcommand, suggested(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::UnknownArgument => {
            (ContextKind::InvalidArg, suggested(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, values.to_vec()),
        _ => return None,
    };
    let typed = context_string(error, typed)?;
    let synonym = COMMAND_SYNONYMS.iter().find(|(other, _)| {
        error.kind() == ErrorKind::InvalidSubcommand && other.eq_ignore_ascii_case(typed)
    });
    let explained = match error.kind() {
        ErrorKind::InvalidSubcommand => explain_command(typed),
        ErrorKind::InvalidValue => {
            explain_value(context_string(error, ContextKind::InvalidArg)?, typed)
        }
        _ => None,
    };
    if let Some(hint) = explained {
        return Some(hint.to_string());
    }
    let near = synonym.map(|(_, name)| *name).or_else(|| find_nearest(typed, known))?;
    Some(format!("did you mean {near}?"))
}

fn context_string(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    context_strings(error, kind).first().copied()
}

fn context_strings(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.as_str()],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}
