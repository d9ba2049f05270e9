//! A commit as `larder show` prints it.

use super::message_page::local_date;
use crate::args::OutputFormat;
use crate::commit_store::{open_commit_reader, open_repository_of, resolve_commit};
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use larder_format::commit::{Commit, CommitSignature};
use larder_sync::git_repository::GitRepository;
use serde_json::{Value, json};

/// A commit with its place.
pub(super) struct ShownCommit {
    handle: String,
    collection: String,
    commit: Commit,
    bytes: Vec<u8>,
    /// The changed paths, each with the letter of the change.
    paths: Vec<(char, String)>,
}

/// Reads the commit that an ID names; `None`: there is no such commit.
pub(super) fn open_commit(
    context: &CommandContext,
    id: &str,
) -> Result<Option<ShownCommit>, CommandFailure> {
    let Some(reader) = open_commit_reader(context)? else { return Ok(None) };
    let Some(row) = resolve_commit(context, &reader, id)? else { return Ok(None) };
    let Some(message) = reader.mail()?.message(row)? else { return Ok(None) };
    let (collection, repository) = open_repository_of(context, &reader, row)?;
    let hash = message.uid;
    let bytes = repository.read_object(&hash).map_err(larder_sync::Error::from)?;
    let paths = match context.format {
        OutputFormat::Raw => Vec::new(),
        _ => read_paths(context, &repository, &hash)?,
    };
    let commit = Commit { hash, ..Commit::parse(&bytes) };
    let handle = message.handle.to_string();
    Ok(Some(ShownCommit { handle, collection, commit, bytes, paths }))
}

/// Reads the paths that a commit changed. Its trees may be missing, as in a clone without trees.
fn read_paths(
    context: &CommandContext,
    repository: &GitRepository<'_>,
    hash: &str,
) -> Result<Vec<(char, String)>, CommandFailure> {
    match repository.read_changed_paths(hash) {
        Err(error) if error.is_of_objects() => {
            context.print_note(format!("the paths of {hash} are left out: {error}"));
            Ok(Vec::new())
        }
        read => Ok(read.map_err(larder_sync::Error::from)?),
    }
}

/// Prints a commit: its object, its values as JSON, or its text.
pub(super) fn print_commit(
    context: &mut CommandContext,
    shown: &ShownCommit,
) -> Result<(), CommandFailure> {
    match context.format {
        OutputFormat::Raw => Ok(context.out.print_item_bytes(&shown.bytes)?),
        OutputFormat::Json => Ok(context.out.print_json(&commit_json(shown))?),
        _ => print_page(context, shown),
    }
}

fn commit_json(shown: &ShownCommit) -> Value {
    let commit = &shown.commit;
    let person = |signature: &CommitSignature| {
        let person = &signature.person;
        json!({ "name": person.name, "address": person.address })
    };
    let paths = shown.paths.iter().map(|(change, path)| json!({ "path": path, "change": change }));
    json!({
        "kind": "commit",
        "id": shown.handle,
        "collection": shown.collection,
        "hash": commit.hash,
        "date": commit.author.date.to_rfc3339(),
        "timestamp": commit.author.date.seconds,
        "author": person(&commit.author),
        "committer": person(&commit.committer),
        "commit_date": commit.committer.date.to_rfc3339(),
        "subject": commit.subject(),
        "body": commit.body(),
        "parents": commit.parents,
        "paths": paths.collect::<Vec<_>>(),
    })
}

fn print_page(context: &mut CommandContext, shown: &ShownCommit) -> Result<(), CommandFailure> {
    let ShownCommit { commit, .. } = shown;
    let user_locale = context.settings.user_locale.clone();
    let subject = commit.subject();
    let title = if subject.is_empty() { "(no subject)" } else { &subject };
    let (author, committer) = (&commit.author, &commit.committer);
    let mut rows = vec![
        ("commit", commit.hash.clone()),
        ("repository", shown.collection.clone()),
        ("author", author.person.to_string()),
        ("date", local_date(author.date, &user_locale)),
    ];
    if committer.person != author.person {
        rows.push(("committer", committer.person.to_string()));
    }
    if committer.date != author.date {
        rows.push(("committed", local_date(committer.date, &user_locale)));
    }
    let mut label = if commit.parents.len() > 1 { "parents" } else { "parent" };
    for parent in &commit.parents {
        rows.push((std::mem::take(&mut label), parent.clone()));
    }
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let out = &mut context.out;
    out.print_line(format!("{STRONG_STYLE}{}{STRONG_STYLE:#}", sanitize_line(title)))?;
    for (label, value) in rows {
        let value = sanitize_line(&value);
        out.print_line(format!("{FAINT_STYLE}{label:<width$}{FAINT_STYLE:#}  {value}"))?;
    }
    if !commit.body().trim().is_empty() {
        out.print_line("")?;
        for line in commit.body().trim_end().lines() {
            out.print_line(sanitize_line(line))?;
        }
    }
    if !shown.paths.is_empty() {
        out.print_line("")?;
    }
    for (change, path) in &shown.paths {
        let path = sanitize_line(path);
        out.print_line(format!("{FAINT_STYLE}{change}{FAINT_STYLE:#}  {path}"))?;
    }
    Ok(())
}
