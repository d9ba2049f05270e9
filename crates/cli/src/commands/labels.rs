//! `larder labels`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::label_dump_file::read_label_dump;
use crate::machine_time::now_milliseconds;
use crate::mail_store::{
    follow_committed_labels, list_sources, mail_roots, open_labelled_mail, open_mail_reader,
};
use crate::output::{format_count, format_grouped, print_message, sanitize_line};
use crate::output_path::OutputPath;
use crate::program_output::{run_program, run_program_by_line};
use crate::table::format_columns;
use larder_edit::labels::{change_labels, count_stored_labels, find_labelled};
use larder_format::label::{LabelChange, LabelError, check_label};
use larder_format::label_dump::{LabelDump, LabelDumpFormat};
use larder_query::SavedSearches;
use larder_store::{
    DataDirectory, FilePrivacy, Handle, LabelledText, Operation, OperationId, Reader,
};
use larder_sync::{
    LabelExportRefusal, LabelExportReport, LabelImportReport, MAX_NAMED_UNINDEXED_MESSAGES,
    NotmuchTags,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The number of labels that a warning names.
const MAX_NAMED_LABELS: usize = 3;
/// The number of messages that a note names.
const MAX_NAMED_MESSAGES: usize = 2;

/// List the labels of messages, export and import them, rename and remove labels
///
/// `larder edit ID --label +tax -todo` labels messages, and `larder find label:tax` finds them.
/// Labels are kept with contacts and calendars, not in the index of mail, and can be undone.
#[derive(Debug, clap::Args)]
pub(crate) struct LabelsArgs {
    #[command(subcommand)]
    verb: Option<LabelsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum LabelsCommand {
    /// List the labels with the number of their messages (the default)
    List,
    /// Write the labels of all messages, as `notmuch restore` or `mu labels import` reads them
    ///
    /// For notmuch, its tags that are flags of files are asked of `notmuch dump`.
    Export {
        /// The file [default: standard output]
        #[arg(value_name = "FILE")]
        file: Option<OutputPath>,
        /// The program that reads them
        #[arg(long = "for", value_name = "PROGRAM", value_enum, default_value_t)]
        program: DumpProgram,
    },
    /// Read labels that `larder labels export`, `notmuch dump` or `mu labels export` wrote
    ///
    /// Messages keep the labels that they have. Labels of messages that are not indexed are kept
    /// until they are.
    Import {
        /// The file; - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Take other labels from the messages that the file names
        #[arg(long)]
        replace: bool,
    },
    /// Rename a label, on all messages
    Rename {
        /// The label
        old: String,
        /// Its new name; if it is a label, the two become one
        new: String,
    },
    /// Take a label from all messages
    Remove {
        /// The label
        label: String,
    },
}

/// A program that reads labels.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum DumpProgram {
    /// notmuch restore
    #[default]
    Notmuch,
    /// mu labels import
    Mu,
}

/// The number of lines with errors that are printed.
const MAX_PRINTED_PROBLEMS: usize = 100;

impl LabelsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.verb.unwrap_or(LabelsCommand::List) {
            LabelsCommand::List => print_labels(context),
            LabelsCommand::Export { file, program } => export(context, file.as_ref(), program),
            LabelsCommand::Import { file, replace } => import(context, &file, replace),
            LabelsCommand::Rename { old, new } => {
                let change = LabelChange::rename(&old, &new).map_err(label_failure)?;
                change_all(context, "labels rename", &old, &change)
            }
            LabelsCommand::Remove { label } => {
                check_label(&label).map_err(label_failure)?;
                let mut change = LabelChange::default();
                change.remove(&label);
                change_all(context, "labels remove", &label, &change)
            }
        }
    }
}

/// Returns the failure for a text that is no label, or no change of labels.
pub(super) fn label_failure(error: LabelError) -> CommandFailure {
    let hint = match &error {
        LabelError::LeadingMinus(_) | LabelError::NoSign(_) => {
            "--label takes all words that follow: write IDs and other options before it".to_string()
        }
        LabelError::SeveralLabels(text) => {
            let apart = text.replace(",+", " +").replace(",-", " -");
            format!("write them apart: --label {}", sanitize_line(&apart))
        }
        LabelError::Flag(_) => "set it in your mail program; larder sync then notes it".to_string(),
        LabelError::Empty | LabelError::TooLong(_) | LabelError::ControlCharacter(_) => {
            return CommandFailure::new(FailureKind::Usage, error);
        }
    };
    CommandFailure::new(FailureKind::Usage, error).with_hint(hint)
}

fn print_labels(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let (labels, (waiting, waiting_ids)) = match open_labelled_mail(context)? {
        Some(reader) => {
            let mail = reader.mail()?;
            let waiting = mail.waiting_names(MAX_NAMED_UNINDEXED_MESSAGES)?;
            (mail.count_labels()?, (mail.count_waiting_labels()?, waiting))
        }
        None => {
            print_unindexed_reason(context)?;
            let has_store = DataDirectory::new(&context.dir).has_store();
            let data = has_store.then(|| context.open_reader()).transpose()?;
            let counts = data.as_ref().map(count_stored_labels).transpose()?;
            (counts.unwrap_or_default(), (0, Vec::new()))
        }
    };
    let mut rows = Vec::new();
    for (name, count) in &labels {
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({ "label": name, "messages": count }))?;
        } else {
            rows.push([sanitize_line(name), format_count(*count, "message")]);
        }
    }
    for line in format_columns(&rows, [40, 0], context.out.line_width()) {
        context.out.print_line(line)?;
    }
    if context.format == OutputFormat::Text {
        if labels.is_empty() {
            context.print_note("no labels; to label a message: larder edit ID --label +NAME");
        }
        if waiting > 0 {
            let messages = name_messages(waiting, &waiting_ids);
            context.print_note(format!(
                "{messages} not in the index; their labels wait until larder sync finds them"
            ));
        }
    }
    Ok(if labels.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
}

/// Says why no mail is indexed.
fn print_unindexed_reason(context: &CommandContext) -> Result<(), CommandFailure> {
    let reason = match list_sources(context)?.is_empty() {
        true => "no mail is indexed",
        false => "mail is not indexed; to find messages by their labels, run: larder sync",
    };
    context.print_note(reason);
    Ok(())
}

fn export(
    context: &mut CommandContext,
    file: Option<&OutputPath>,
    program: DumpProgram,
) -> Result<CommandStatus, CommandFailure> {
    let data = context.open_reader()?;
    let index = open_labelled_mail(context)?;
    let roots = mail_roots(context)?;
    let format = match program {
        DumpProgram::Notmuch => LabelDumpFormat::Notmuch,
        DumpProgram::Mu => LabelDumpFormat::Mu,
    };
    let output = file.map(|path| context.create_output(path, FilePrivacy::Private)).transpose()?;
    let index = index.as_ref();
    let tags = match program {
        DumpProgram::Notmuch => read_notmuch_tags(context, &data)?,
        DumpProgram::Mu => NotmuchTags::default(),
    };
    let export =
        |out: &mut dyn Write| larder_sync::export_labels(&data, index, &roots, format, &tags, out);
    let report = match output {
        None => export(&mut context.out)?,
        Some(mut output) => {
            let report = match export(&mut output) {
                Err(larder_sync::Error::Write(error)) => {
                    return Err(output.to_error(error).into());
                }
                report => report?,
            };
            output.commit()?;
            report
        }
    };
    let mut status = CommandStatus::Done;
    if report.not_indexed > 0 {
        let messages = name_messages(report.not_indexed, &report.not_indexed_ids);
        context.print_warning(format!("{messages} left out: not in the index; run: larder sync"));
        status = CommandStatus::Rejected;
    }
    if report.mixed > 0 {
        let messages = name_messages(report.mixed, &report.mixed_ids);
        context.print_warning(format!(
            "{messages} with several texts whose labels differ: notmuch takes them for one message, \
             so the line has the labels of all, and `larder labels import` gives them to each text"
        ));
    }
    if !report.left_out.is_empty() {
        status = CommandStatus::Rejected;
    }
    print_left_out(context, format, &report);
    if report.resembles_sup {
        context.print_warning(
            "each Message-ID has a parenthesis, so notmuch takes the file for another format: \
             restore it with `notmuch restore --format=batch-tag`",
        );
    }
    if file.is_some() {
        let count = format_count(report.messages, "message");
        context.print_note(format!("exported the labels of {count}"));
    }
    Ok(status)
}

/// Warns of the messages that the other program could not read, with each reason.
fn print_left_out(context: &CommandContext, format: LabelDumpFormat, report: &LabelExportReport) {
    let program = match format {
        LabelDumpFormat::Notmuch => "notmuch",
        LabelDumpFormat::Mu => "mu",
    };
    for (refusal, count) in &report.left_out {
        let reason = match refusal {
            LabelExportRefusal::NoMessageId => "no Message-ID".to_string(),
            LabelExportRefusal::UnreadableName => {
                format!("a Message-ID or a path that {program} cannot read")
            }
            LabelExportRefusal::NoFile => "no file in a source".to_string(),
            LabelExportRefusal::NoLabel => {
                let rule = match format {
                    LabelDumpFormat::Notmuch => "no flags",
                    LabelDumpFormat::Mu => "no spaces, / , $ ' \" \\ `",
                };
                let labels = name_labels(&report.refused_labels);
                format!("no label that {program} takes ({rule}), but {labels}")
            }
        };
        let messages = format_count(*count, "message");
        context.print_warning(format!("{messages} left out: {reason}"));
    }
    if report.partial_messages > 0 {
        let messages = format_count(report.partial_messages, "message");
        let labels = name_labels(&report.omitted_labels);
        context.print_warning(format!(
            "{messages} exported without labels that {program} does not take: {labels}"
        ));
    }
}

/// Returns the first labels of a set.
fn name_labels(labels: &BTreeSet<String>) -> String {
    let named = labels.iter().take(MAX_NAMED_LABELS).map(|name| sanitize_line(name));
    let mut named: Vec<String> = named.map(|name| format!("{name:?}")).collect();
    if labels.len() > named.len() {
        named.push("...".to_string());
    }
    named.join(", ")
}

/// Returns the tags of notmuch that are no labels. Without notmuch, or a database of it, they are
/// those of the flags in the index.
///
/// A database that cannot be read is an error: restored into it, a dump with other flags renames
/// files, and makes mail read.
fn read_notmuch_tags(
    context: &CommandContext,
    data: &Reader,
) -> Result<NotmuchTags, CommandFailure> {
    let mut tags = NotmuchTags::with_labelled_messages(data)?;
    let arguments = ["dump", "--format=batch-tag", "--include=tags"].map(OsString::from);
    match run_program_by_line("notmuch", &arguments, &mut |line| tags.add_line(line)) {
        Ok(()) => Ok(tags),
        Err(reason) if has_notmuch_database() => {
            let reason = sanitize_line(&reason);
            let message = format!("cannot read the tags of notmuch: notmuch dump: {reason}");
            Err(CommandFailure::new(FailureKind::Source, message)
                .with_hint("`notmuch dump` must work, because the file is for `notmuch restore`"))
        }
        Err(_) => {
            context.print_note(
                "notmuch has no database here, so tags such as unread are made from the files",
            );
            Ok(NotmuchTags::default())
        }
    }
}

/// Returns whether the configuration of notmuch names a database that exists.
fn has_notmuch_database() -> bool {
    let arguments = ["config", "get", "database.path"].map(OsString::from);
    let Ok(path) = run_program("notmuch", &arguments) else { return false };
    let path = PathBuf::from(OsString::from_vec(path.trim_ascii().to_vec()));
    [".notmuch", "xapian"].iter().any(|name| path.join(name).exists())
}

/// Returns the number of messages, with the Message-IDs of the first of them.
pub(super) fn name_messages(count: u64, ids: &[String]) -> String {
    let named = ids.iter().take(MAX_NAMED_MESSAGES);
    let mut named: Vec<String> = named.map(|id| format!("id:{}", sanitize_line(id))).collect();
    if count > named.len() as u64 {
        named.push("...".to_string());
    }
    format!("{} ({})", format_count(count, "message"), named.join(", "))
}

fn import(
    context: &mut CommandContext,
    file: &Path,
    replace: bool,
) -> Result<CommandStatus, CommandFailure> {
    let name = match file.as_os_str() == "-" {
        true => "standard input".to_string(),
        false => sanitize_line(&file.display().to_string()),
    };
    let bytes = read_label_dump(file, "larder labels import -")?;
    let dump = LabelDump::parse(&bytes).ok_or_else(|| {
        let message = format!("{name}: no labels of notmuch or mu");
        CommandFailure::new(FailureKind::Input, message).with_hint(
            "files from `notmuch dump`, `mu labels export` and `larder labels export` are read",
        )
    })?;
    for problem in dump.problems.iter().take(MAX_PRINTED_PROBLEMS) {
        let reason = sanitize_line(&problem.reason.to_string());
        print_message("error", format!("{name}: line {}: {reason}", problem.line));
    }
    let problems = dump.problems.len();
    if problems > MAX_PRINTED_PROBLEMS {
        let further = (problems - MAX_PRINTED_PROBLEMS) as u64;
        context.print_note(format!("{} not shown", format_count(further, "further line")));
    }
    let index = open_labelled_mail(context)?;
    let mut data = context.open_or_create_store()?;
    let mut operation = Operation::new("labels import", &name, now_milliseconds());
    let report =
        larder_sync::import_labels(&mut data, index.as_ref(), &mut operation, dump, replace)?;
    follow_committed_labels(context)?;
    print_import(context, &report, problems, operation.id())?;
    Ok(if problems > 0 { CommandStatus::Rejected } else { CommandStatus::Done })
}

fn print_import(
    context: &mut CommandContext,
    report: &LabelImportReport,
    problems: usize,
    operation: Option<OperationId>,
) -> Result<(), CommandFailure> {
    let LabelImportReport { labels, waiting, waiting_ids, unnamed, flag_tags, .. } = report;
    if report.partial > 0 {
        let messages = name_messages(report.partial, &report.partial_ids);
        context
            .print_warning(format!("{messages} replaced without the tags that cannot be labels"));
    }
    if report.kept > 0 {
        let messages = name_messages(report.kept, &report.kept_ids);
        context.print_warning(format!(
            "{messages} not replaced: the file has no tag for them that can be a label"
        ));
    }
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "changed": labels.changed, "unchanged": labels.unchanged, "waiting": waiting,
            "waiting_ids": waiting_ids,
            "unnamed": unnamed, "flag_tags": flag_tags, "problems": problems,
            "operation": operation.map(OperationId::to_number),
        }))?;
        return Ok(());
    }
    let changed = format_count(labels.changed, "message");
    let unchanged = match labels.unchanged {
        0 => String::new(),
        count => format!(", {count} unchanged"),
    };
    let undo = format_undo(operation);
    context.out.print_line(format!("labels of {changed} changed{unchanged}{undo}"))?;
    if *waiting > 0 {
        let messages = name_messages(*waiting, waiting_ids);
        context.print_note(format!(
            "{messages} not in the index; their labels wait until larder sync finds them"
        ));
    }
    if *unnamed > 0 {
        let count = format_count(*unnamed, "message");
        context.print_note(format!("{count} left out: without a Message-ID"));
    }
    if !flag_tags.is_empty() {
        let names: Vec<&str> = flag_tags.iter().copied().collect();
        context.print_note(format!("left out, because they are flags: {}", names.join(", ")));
    }
    Ok(())
}

/// Makes a change on all messages with a label.
fn change_all(
    context: &mut CommandContext,
    verb: &str,
    label: &str,
    change: &LabelChange,
) -> Result<CommandStatus, CommandFailure> {
    let messages = find_labelled(&context.open_reader()?, label)?;
    if messages.is_empty() {
        let message = format!("no message has the label {:?}", sanitize_line(label));
        return Err(CommandFailure::new(FailureKind::NotFound, message)
            .with_hint("`larder labels` lists them"));
    }
    let status = change_and_print(context, verb, &messages, change, None)?;
    // The warnings follow the line that they explain.
    context.out.flush()?;
    CommandFailure::after_commit(warn_of_label_users(context, label))?;
    Ok(status)
}

/// Warns of the saved searches, rules and settings that name a label which no message has any more.
fn warn_of_label_users(context: &CommandContext, label: &str) -> Result<(), CommandFailure> {
    let searches = SavedSearches::read(&context.open_reader()?)?;
    context.warn_of_search_users(label, searches.users_of_label(label));
    for (setting, labels) in [
        ("mail.exclude-labels", &context.excluded_labels),
        ("mail.inherited-labels", &context.inherited_labels),
    ] {
        if labels.iter().any(|named| named == label) {
            let label = sanitize_line(label);
            context.print_warning(format!("{setting} in the configuration names {label}"));
        }
    }
    Ok(())
}

/// Changes the labels of messages, and prints how many were changed. `listed`: the number of them
/// in lists, which have one for each source that a message is in, if it is known.
pub(super) fn change_and_print(
    context: &mut CommandContext,
    verb: &str,
    messages: &[LabelledText],
    change: &LabelChange,
    listed: Option<usize>,
) -> Result<CommandStatus, CommandFailure> {
    let mut data = context.open_store()?;
    let handle = find_handle(context, messages)?;
    let named = handle.map(|handle| handle.to_string());
    let named = named.unwrap_or_else(|| format_count(messages.len() as u64, "message"));
    let detail = format!("{change} on {named}");
    let mut operation = Operation::new(verb, detail, now_milliseconds());
    let report = change_labels(&mut data, &mut operation, messages, change)?;
    follow_committed_labels(context)?;
    let operation = operation.id();
    if context.format == OutputFormat::Json {
        let mut object = json!({
            "changed": report.changed, "unchanged": report.unchanged,
            "operation": operation.map(OperationId::to_number),
        });
        if let Some(listed) = listed {
            object["listed"] = json!(listed);
        }
        context.out.print_json(&object)?;
        return Ok(CommandStatus::Done);
    }
    let changed = format_count(report.changed, "message");
    let unchanged = match report.unchanged {
        0 => String::new(),
        count => format!(", {count} unchanged"),
    };
    let listed = listed.filter(|listed| *listed > messages.len()).map(|listed| {
        format!(". Lists show them as {}, one for each source", format_grouped(listed as u64))
    });
    let listed = listed.unwrap_or_default();
    let undo = format_undo(operation);
    context.out.print_line(format!("{changed} changed{unchanged}{listed}{undo}"))?;
    Ok(CommandStatus::Done)
}

/// Returns the handle of the message that alone is changed, for the log, which shows its subject.
fn find_handle(
    context: &CommandContext,
    messages: &[LabelledText],
) -> Result<Option<Handle>, CommandFailure> {
    let ([message], Some(index)) = (messages, open_mail_reader(context)?) else { return Ok(None) };
    let mail = index.mail()?;
    let row = mail.rows_with_uid(&message.uid)?.into_iter().next();
    let found = row.map(|row| mail.message(row)).transpose()?.flatten();
    Ok(found.map(|found| found.handle))
}

/// Returns the sentence that names the command which reverts an operation.
fn format_undo(operation: Option<OperationId>) -> String {
    operation.map(|id| format!(". Undo: larder undo {id}")).unwrap_or_default()
}
