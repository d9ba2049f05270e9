//! `larder watch --kind message` and `--kind commit`: a line for each change of the answer, on a
//! terminal, too.
//!
//! Separate from `stream`, because messages and commits come from indexes of their own, whose views
//! have other events.

use super::{WakeSignals, WatchArgs};
use crate::args::OutputFormat;
use crate::commands::find::commit_list::CommitGroup;
use crate::commands::find::message_fields::message_json;
use crate::commands::find::message_rows::{format_lines, list_cells};
use crate::commit_store::{
    check_repository, commit_directory, list_repositories, require_commit_reader,
};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_store::{MailRoots, list_sources, mail_directory, mail_roots, require_mail_reader};
use crate::output::{ADDED_STYLE, CHANGED_STYLE, FAINT_STYLE, OutputStream, REMOVED_STYLE};
use crate::source_names::print_index_notes;
use anstyle::Style;
use larder_query::{
    Kind, ListedMessage, MailQueryContext, MailSearch, MailView, MailViewEvent, MailViewOptions,
};
use larder_store::{CommitWatcher, DataDirectory, Reader, RemovedMessage};
use larder_sync::{DepartedSourceFollower, SourceType};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A commit whose writer was killed before the notification, and the clock, are noticed after this
/// time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Prints the messages or commits that match, and then each change.
pub(super) fn watch_messages(
    args: &WatchArgs,
    context: &mut CommandContext,
) -> Result<CommandStatus, CommandFailure> {
    let is_about_commits = args.query_args.kind == Some(Kind::Commit);
    if let Some(option) = args.unsupported_message_option() {
        let kinds = if is_about_commits { "commits" } else { "messages" };
        let message = format!("{option} cannot be used for {kinds}");
        return Err(CommandFailure::new(FailureKind::Usage, message));
    }
    let source = args.query_args.collection.as_deref();
    if let Some(name) = source.filter(|_| is_about_commits) {
        check_repository(context, name)?;
    }
    let query_context = MailQueryContext::from(&context.settings);
    let (directory, query_context, excluded_labels) = if is_about_commits {
        let reader = require_commit_reader(context)?;
        let (source_type, repositories) = (SourceType::Repository, list_repositories(context)?);
        print_index_notes(context, source_type, &repositories, Some(&reader), source)?;
        (commit_directory(context), query_context.with_kind(Kind::Commit), Vec::new())
    } else {
        let reader = require_mail_reader(context)?;
        let sources = list_sources(context)?;
        print_index_notes(context, SourceType::Mail, &sources, Some(&reader), source)?;
        if let Some(name) = source.filter(|name| sources.iter().all(|one| one.name != **name)) {
            let mail = reader.mail()?;
            let words = mail.words();
            MailSearch::open(&mail, &words)?.check_source(name)?;
        }
        (mail_directory(context), query_context, context.excluded_labels.clone())
    };
    let options = MailViewOptions {
        context: query_context,
        excluded_labels,
        zones: Arc::clone(&context.settings.user_locale.zones),
        clock: Arc::new(|| {
            larder_time::civil::Instant::from_seconds_clamped(now_milliseconds() / 1000)
        }),
    };
    let line = args.query_args.query_text();
    let mut searches = context.follow_saved_searches(&line);
    let mut view = MailView::open(&directory, &line, options)?;
    if let Some(name) = &args.query_args.collection {
        view = view.in_collection(name);
    }
    let mut departed = (!is_about_commits).then(|| {
        let zones = Arc::clone(&context.settings.user_locale.zones);
        DepartedSourceFollower::new(DataDirectory::new(&context.dir), directory.clone(), zones)
    });
    let (signals, wake) = WakeSignals::new(None);
    let watch_commits = || {
        let wake = wake.clone();
        let notify = move || wake.iter().for_each(|wake| wake());
        CommitWatcher::watch(&directory, notify).ok()
    };
    let mut commits = watch_commits();
    let deadline =
        args.seconds.and_then(|time| Instant::now().checked_add(Duration::from_secs(time)));
    let (mut is_whole, mut changes) = (false, 0);
    loop {
        if let Some(searches) = &mut searches
            && let Some(changed) = searches.poll()?
        {
            view.set_saved_searches(Arc::new(changed))?;
        }
        if let Some(departed) = &mut departed
            && let Some(names) = departed.poll()?
        {
            view.leave_out_sources(names);
        }
        while let Some(event) = view.try_next()? {
            changes += if is_whole { count_changes(&event) } else { 0 };
            match event {
                MailViewEvent::Complete(_) => is_whole = true,
                MailViewEvent::Reset => {
                    is_whole = false;
                    // The notify file may be another one.
                    commits = watch_commits();
                }
                _ => {}
            }
            print_event(context, &event, is_about_commits)?;
            let is_enough = args.changes.is_some_and(|most| changes >= most);
            if is_whole && is_enough && matches!(event, MailViewEvent::Complete(_)) {
                return Ok(CommandStatus::Done);
            }
            if signals.is_interrupted() {
                return Ok(CommandStatus::Interrupted);
            }
        }
        if signals.is_interrupted() {
            return Ok(CommandStatus::Interrupted);
        }
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) || OutputStream::is_reader_gone() {
            return Ok(CommandStatus::Done);
        }
        if commits.is_none() {
            commits = watch_commits();
        }
        let timeout = left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL));
        let _woken_or_timed_out = signals.wake_receiver.recv_timeout(timeout);
    }
}

fn count_changes(event: &MailViewEvent) -> usize {
    match event {
        MailViewEvent::Added(messages) | MailViewEvent::Modified(messages) => messages.len(),
        MailViewEvent::Removed(removed) => removed.len(),
        MailViewEvent::Reset | MailViewEvent::Complete(_) => 0,
    }
}

/// Prints an event and flushes the output.
fn print_event(
    context: &mut CommandContext,
    event: &MailViewEvent,
    is_about_commits: bool,
) -> Result<(), CommandFailure> {
    let is_json = context.format == OutputFormat::Json;
    match event {
        MailViewEvent::Added(commits) if is_about_commits => {
            print_commits(context, commits, "added", (ADDED_STYLE, "+"))?;
        }
        MailViewEvent::Modified(commits) if is_about_commits => {
            print_commits(context, commits, "modified", (CHANGED_STYLE, "~"))?;
        }
        MailViewEvent::Removed(removed) if is_about_commits => {
            print_removed_commits(context, removed)?;
        }
        MailViewEvent::Added(messages) => {
            print_messages(context, messages, "added", (ADDED_STYLE, "+"))?;
        }
        MailViewEvent::Modified(messages) => {
            print_messages(context, messages, "modified", (CHANGED_STYLE, "~"))?;
        }
        MailViewEvent::Removed(removed) => print_removed(context, removed)?,
        MailViewEvent::Reset if is_json => context.out.print_json(&json!({ "change": "reset" }))?,
        MailViewEvent::Reset => context.out.print_line("= reset: the full list follows")?,
        MailViewEvent::Complete(seq) if is_json => {
            context.out.print_json(&json!({ "change": "complete", "seq": seq }))?;
        }
        MailViewEvent::Complete(_) => {}
    }
    Ok(context.out.flush()?)
}

fn print_messages(
    context: &mut CommandContext,
    messages: &[ListedMessage],
    change: &str,
    (style, mark): (Style, &str),
) -> Result<(), CommandFailure> {
    let reader = require_mail_reader(context)?;
    if context.format == OutputFormat::Json {
        let roots = mail_roots(context)?;
        return messages
            .iter()
            .try_for_each(|one| print_json(context, &reader, &roots, change, one));
    }
    let mut rows = Vec::with_capacity(messages.len());
    for one in messages {
        rows.push(list_cells(context, &reader, one, "")?);
    }
    let width = context.out.line_width().map(|width| width.saturating_sub(2));
    for line in format_lines(&rows, width) {
        context.out.print_line(format!("{style}{mark}{style:#} {}", line.trim_end()))?;
    }
    Ok(())
}

fn print_commits(
    context: &mut CommandContext,
    commits: &[ListedMessage],
    change: &str,
    (style, mark): (Style, &str),
) -> Result<(), CommandFailure> {
    let group = CommitGroup::from_listed(require_commit_reader(context)?, commits)?;
    if context.format == OutputFormat::Json {
        for object in group.json_objects()? {
            context.out.print_json(&with_change(change, object))?;
        }
        return Ok(());
    }
    let width = context.out.line_width().map(|width| width.saturating_sub(2));
    for line in group.format_lines(context, width) {
        context.out.print_line(format!("{style}{mark}{style:#} {}", line.trim_end()))?;
    }
    Ok(())
}

fn print_removed_commits(
    context: &mut CommandContext,
    removed: &[RemovedMessage],
) -> Result<(), CommandFailure> {
    let group = CommitGroup::from_listed(require_commit_reader(context)?, &[])?;
    for one in removed {
        if context.format == OutputFormat::Json {
            let id = one.handle.to_string();
            let object = json!({ "change": "removed", "id": id, "hash": one.uid });
            context.out.print_json(&object)?;
            continue;
        }
        let hash = group.shorten(&one.uid);
        context.out.print_line(format!(
            "{REMOVED_STYLE}-{REMOVED_STYLE:#} {FAINT_STYLE}{hash}{FAINT_STYLE:#}"
        ))?;
    }
    Ok(())
}

/// Returns an object with the name of a change in front.
fn with_change(change: &str, object: Value) -> Value {
    let mut changed = Map::new();
    changed.insert("change".into(), json!(change));
    if let Value::Object(keys) = object {
        changed.extend(keys);
    }
    Value::Object(changed)
}

fn print_json(
    context: &mut CommandContext,
    reader: &Reader,
    roots: &MailRoots,
    change: &str,
    one: &ListedMessage,
) -> Result<(), CommandFailure> {
    let object = with_change(change, message_json(reader, roots, one)?);
    Ok(context.out.print_json(&object)?)
}

fn print_removed(
    context: &mut CommandContext,
    removed: &[RemovedMessage],
) -> Result<(), CommandFailure> {
    let reader = require_mail_reader(context)?;
    for one in removed {
        if context.format == OutputFormat::Json {
            let id = one.handle.to_string();
            let object = json!({ "change": "removed", "id": id, "message_id": one.uid });
            context.out.print_json(&object)?;
            continue;
        }
        let letters = reader.items().unique_prefix_len(one.handle)?;
        context.out.print_line(format!(
            "{REMOVED_STYLE}-{REMOVED_STYLE:#} {FAINT_STYLE}{:.letters$}{FAINT_STYLE:#}",
            one.handle
        ))?;
    }
    Ok(())
}
