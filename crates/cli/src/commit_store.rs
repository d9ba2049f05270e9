//! The store of commits, `commits.db`, and the registered repositories.
//!
//! Separate from `mail_store`: commits have no labels, threads and files.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::git_program::start_git;
use crate::item_ids::{describe_items_with_id, display_title};
use crate::output::sanitize_line;
use crate::source_names::follow_source_names;
use larder_query::{Kind, MailQuery, MailQueryContext, MailSearch};
use larder_store::{DataDirectory, Error, HandlePrefix, Reader, Store, StoreFile};
use larder_sync::git_repository::GitRepository;
use larder_sync::{RegisteredSource, SourceStores, SourceType};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn commit_directory(context: &CommandContext) -> DataDirectory {
    DataDirectory::new(&context.dir).with_store_file(StoreFile::Commits)
}

/// Opens the index of commits for reading, with the names that the repositories have now; `None`:
/// there is none, or its creation was interrupted.
pub(crate) fn open_commit_reader(
    context: &CommandContext,
) -> Result<Option<Reader>, CommandFailure> {
    let directory = commit_directory(context);
    if directory.has_pending_replacement() {
        // It was interrupted, and is finished by opening the store.
        drop(Store::open(directory.clone(), &context.index_options(true))?);
    }
    if !directory.has_store() {
        return Ok(None);
    }
    let reader =
        match Reader::open_with_zones(directory, Arc::clone(&context.settings.user_locale.zones)) {
            Err(Error::NoStore { .. }) => return Ok(None),
            reader => reader?,
        };
    let stores = commit_stores(context);
    if stores.data.has_store() {
        let data = context.open_reader()?;
        if data.lost_commits().is_none() {
            follow_source_names(context, SourceType::Repository, &data, &stores, &reader)?;
        }
    }
    Ok(Some(reader))
}

/// Opens the index of commits for searches.
pub(crate) fn require_commit_reader(context: &CommandContext) -> Result<Reader, CommandFailure> {
    open_commit_reader(context)?.ok_or_else(|| {
        CommandFailure::new(FailureKind::Store, "no commits are indexed").with_hint(
            "register a git repository: larder sources add REPOSITORY; then: larder sync",
        )
    })
}

/// Returns the number of commits of a collection in the index.
pub(crate) fn count_commits(
    context: &CommandContext,
    collection: &str,
) -> Result<u64, CommandFailure> {
    let Some(reader) = open_commit_reader(context)? else { return Ok(0) };
    Ok(reader.collections().count_items_of(collection)?.unwrap_or(0))
}

/// Opens the index of commits for writing; `None`: there is none.
pub(crate) fn open_commit_store(context: &CommandContext) -> Result<Option<Store>, CommandFailure> {
    match open_commit_reader(context)? {
        Some(_) => Ok(Some(Store::open(commit_directory(context), &context.index_options(true))?)),
        None => Ok(None),
    }
}

/// Returns the store of the registrations and that of commits.
pub(crate) fn commit_stores(context: &CommandContext) -> SourceStores {
    SourceStores {
        data: DataDirectory::new(&context.dir),
        index: commit_directory(context),
        options: context.index_options(true),
    }
}

/// Returns the registered repositories.
pub(crate) fn list_repositories(
    context: &CommandContext,
) -> Result<Vec<RegisteredSource>, CommandFailure> {
    if !DataDirectory::new(&context.dir).has_store() {
        return Ok(Vec::new());
    }
    Ok(larder_sync::list_sources(&context.open_reader()?, SourceType::Repository)?)
}

/// Refuses the name of a repository that is not registered.
pub(crate) fn check_repository(context: &CommandContext, name: &str) -> Result<(), CommandFailure> {
    let repositories = list_repositories(context)?;
    if repositories.iter().any(|source| source.name == name) {
        return Ok(());
    }
    let message = format!("no repository is named {:?}", sanitize_line(name));
    let names: Vec<&str> = repositories.iter().map(|source| source.name.as_str()).collect();
    Err(CommandFailure::new(FailureKind::Usage, message)
        .with_hint(format!("registered repositories: {}", sanitize_line(&names.join(", ")))))
}

/// Parses a query for commits.
pub(crate) fn parse_commit_query(
    context: &CommandContext,
    line: &str,
) -> Result<MailQuery, CommandFailure> {
    let query_context = MailQueryContext::from(&context.settings).with_kind(Kind::Commit);
    Ok(MailQuery::parse(line, &query_context)?)
}

/// Parses a query for commits that is searched in items of all kinds; `None`: it has no meaning for
/// commits.
pub(crate) fn parse_query_among_kinds(context: &CommandContext, line: &str) -> Option<MailQuery> {
    let query_context = MailQueryContext::from(&context.settings.among_kinds());
    MailQuery::parse(line, &query_context.with_kind(Kind::Commit)).ok()
}

/// The fewest digits of a hash that name a commit.
const MIN_HASH_DIGITS: usize = 4;
/// The commits that an error about an ambiguous ID lists.
const MAX_LISTED_COMMITS: usize = 20;

/// Returns the row of the commit that an ID names: the beginning of its hash or of its handle.
/// `None`: there is no such commit. Of a commit that several repositories have, it is the first.
pub(crate) fn resolve_commit(
    context: &CommandContext,
    reader: &Reader,
    id: &str,
) -> Result<Option<u32>, CommandFailure> {
    let mail = reader.mail()?;
    let mut rows = Vec::new();
    let is_hash = id.len() >= MIN_HASH_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash {
        let words = mail.words();
        let search = MailSearch::open(&mail, &words)?;
        let query = MailQuery::Hash(id.to_ascii_lowercase());
        search.for_each_match(&query, &mut |row| rows.push(row))?;
    }
    if let Some(prefix) = HandlePrefix::parse(id) {
        for meta in reader.items().find_by_handle(prefix, MAX_LISTED_COMMITS)? {
            rows.extend(u32::try_from(meta.row.to_number()).ok());
        }
    }
    let mut found: Vec<(String, u32, String)> = Vec::new();
    for row in rows {
        if let Some(message) = mail.message(row)? {
            let subject = message.summary.subject().to_string();
            found.push((message.uid, row, subject));
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    let items = match found.is_empty() {
        true => Vec::new(),
        false => describe_items_with_id(context, id)?,
    };
    if found.len() + items.len() > 1 {
        let message = format!("the ID {:?} matches several items", sanitize_line(id));
        let mut failure = CommandFailure::new(FailureKind::Usage, message);
        for (hash, _, subject) in found.iter().take(MAX_LISTED_COMMITS) {
            let subject = display_title(Kind::Commit, subject);
            failure = failure.with_hint(format!("{hash}  {subject}"));
        }
        return Err(items.into_iter().fold(failure, CommandFailure::with_hint));
    }
    Ok(found.first().map(|(_, row, _)| *row))
}

/// Explains the failure of a command that found no item with an ID to erase, if a commit has the
/// ID: it is in its repository.
pub(crate) fn explain_commit(
    context: &CommandContext,
    id: &str,
    failure: CommandFailure,
) -> CommandFailure {
    // The UID of an item, or a Message-ID.
    if id.contains(':') {
        return failure;
    }
    let find = || -> Result<Option<String>, CommandFailure> {
        let Some(reader) = open_commit_reader(context)? else { return Ok(None) };
        let Some(row) = resolve_commit(context, &reader, id)? else { return Ok(None) };
        Ok(Some(reader.mail()?.collection_of(row)?.unwrap_or_default()))
    };
    match find() {
        Ok(Some(name)) => {
            let message = format!("{:?} is a commit: it is in the repository", sanitize_line(id));
            CommandFailure::new(FailureKind::Usage, message).with_hint(format!(
                "to take its repository out of the index: larder sources remove {}",
                sanitize_line(&name)
            ))
        }
        Ok(None) => failure,
        // A commit may have the ID, or several have it.
        Err(other) => other,
    }
}

/// Opens a git repository.
pub(crate) fn open_repository(path: &Path) -> Result<GitRepository<'static>, CommandFailure> {
    Ok(GitRepository::open(path, &start_git).map_err(larder_sync::Error::from)?)
}

/// Opens the repository that a commit is in. Returns it with the name of its collection.
pub(crate) fn open_repository_of(
    context: &CommandContext,
    reader: &Reader,
    row: u32,
) -> Result<(String, GitRepository<'static>), CommandFailure> {
    let name = reader.mail()?.collection_of(row)?.unwrap_or_default();
    let sources = list_repositories(context)?;
    let paths = larder_sync::map_source_paths(reader, SourceType::Repository, &sources)?;
    let Some(path) = paths.get(&name) else {
        let message = format!("{} is no registered source", sanitize_line(&name));
        return Err(CommandFailure::new(FailureKind::NotFound, message)
            .with_hint("larder sync takes its commits out of the index"));
    };
    Ok((name, open_repository(path)?))
}
