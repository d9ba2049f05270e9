//! Errors in the use of the command line, which clap finds, in the form of all other messages:
//! `error:`, then `hint:` lines, and exit code 2.

use crate::failure::{CommandFailure, FailureKind};
use crate::suggestion::find_nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::process::ExitCode;

/// Names that other programs give to a subcommand.
const COMMAND_SYNONYMS: &[(&str, &str)] = &[
    ("search", "find"),
    ("query", "find"),
    ("list", "find"),
    ("ls", "find"),
    ("new", "add"),
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

/// Prints the help that was requested, or the error, and returns the exit code.
pub(crate) fn print_and_exit_code(error: &clap::Error) -> ExitCode {
    match error.kind() {
        // A closed pipe, as in `larder --help | head -1`, is not a failure.
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _reader_left = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _reader_left = error.print();
            ExitCode::from(2)
        }
        _ => to_failure(error).print_and_exit_code(false),
    }
}

fn to_failure(error: &clap::Error) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, describe(error));
    let failure = match suggest(error) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    };
    let values = context_strings(error, ContextKind::ValidValue);
    let failure = match values.is_empty() {
        true => failure,
        false => failure.with_hint(format!("possible values: {}", values.join(", "))),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => failure.with_hint("`larder help` lists the commands"),
        _ => match usage(error) {
            Some(usage) => failure.with_hint(format!("usage: {usage}")),
            None => failure,
        },
    }
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
            format!("missing {}", missing.join(" and "))
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

/// Returns a suggestion if one of clap's is near enough.
fn suggest(error: &clap::Error) -> Option<String> {
    let (typed, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)
        }
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::ValidValue),
        _ => return None,
    };
    let typed = context_string(error, typed)?;
    let known = context_strings(error, suggested);
    let synonym = COMMAND_SYNONYMS.iter().find(|(other, _)| {
        error.kind() == ErrorKind::InvalidSubcommand && other.eq_ignore_ascii_case(typed)
    });
    let near = synonym.map(|(_, name)| *name).or_else(|| find_nearest(typed, known))?;
    Some(format!("did you mean {near}?"))
}

/// Returns the usage line, without its heading.
fn usage(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    let usage = usage.to_string();
    let usage = usage.trim().strip_prefix("Usage: ").unwrap_or(usage.trim());
    Some(usage.split_whitespace().collect::<Vec<_>>().join(" "))
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
