//! `larder searches`.

use super::find::query_args::kind_parser;
use super::labels::label_failure;
use crate::args::OutputFormat;
use crate::commit_store::open_commit_reader;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_store::open_labelled_mail;
use crate::output::{format_count, format_grouped, print_message, sanitize_line};
use crate::source_names::print_index_notes;
use crate::table::format_columns;
use larder_edit::{SearchDefinition, put_saved_searches, remove_saved_search};
use larder_format::saved_search::{SavedSearch, is_search_name};
use larder_query::{
    CountedStores, Error as QueryError, SavedQuery, SavedSearchCount, SavedSearches, SyntaxError,
    count_saved_queries,
};
use larder_store::{DataDirectory, Kind, Operation, OperationId};
use larder_sync::{SourceType, list_sources};
use serde_json::json;
use std::sync::Arc;

/// List saved searches with their counts, define or remove them
///
/// In a search line, @NAME stands for the saved search NAME, anywhere a term may stand: `larder
/// find @work and from:anna`. A saved search may use others.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchesArgs {
    #[command(subcommand)]
    verb: Option<SearchesCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum SearchesCommand {
    /// List saved searches with the number of items that match, and of unread messages (the
    /// default)
    List,
    /// Define a saved search, or define it anew (`larder undo` reverts it)
    ///
    /// Quote the query for the shell: `larder searches add work 'from:anna -flag:seen'`. Without
    /// QUERY, every item matches.
    Add {
        /// The name: letters, digits, - and _
        name: String,
        /// The search terms
        query: Vec<String>,
        /// The kind of the items
        #[arg(long, value_name = "KIND", value_parser = kind_parser(), default_value = "message")]
        kind: Kind,
        /// Labels that new messages get (+LABEL) or lose (-LABEL); comes last [default: those of
        /// the former definition]
        #[arg(long, value_name = "+LABEL", num_args = 1.., allow_hyphen_values = true)]
        label: Vec<String>,
        /// Change no labels any more
        #[arg(long, conflicts_with = "label")]
        no_label: bool,
    },
    /// Remove a saved search (`larder undo` restores it)
    Remove {
        /// The name
        name: String,
    },
}

impl SearchesArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        context.refuse_lost_store()?;
        match self.verb.unwrap_or(SearchesCommand::List) {
            SearchesCommand::List => print_searches(context),
            SearchesCommand::Add { name, query, kind, label, no_label } => {
                let mut search = SavedSearch::new(&name, query.join(" ").trim(), kind.name());
                search.label_changes = label;
                add_search(context, search, no_label)
            }
            SearchesCommand::Remove { name } => remove_search(context, &name),
        }
    }
}

/// Reads the saved searches; none if there is no store.
fn read_searches(context: &CommandContext) -> Result<SavedSearches, CommandFailure> {
    if !DataDirectory::new(&context.dir).has_store() {
        return Ok(SavedSearches::default());
    }
    Ok(SavedSearches::read(&context.open_reader()?)?)
}

/// Counts the matches of each query, all in one pass. A query that cannot be run has no count, but
/// an error.
fn count_queries(
    context: &CommandContext,
    queries: Vec<Result<SavedQuery, SyntaxError>>,
) -> Result<Vec<Result<SavedSearchCount, QueryError>>, CommandFailure> {
    let reader = context.open_reader()?;
    let mail = open_labelled_mail(context)?;
    let sound: Vec<SavedQuery> = queries.iter().flatten().cloned().collect();
    let commits = open_commit_reader(context)?;
    let has_mail = sound.iter().any(|query| matches!(query, SavedQuery::Mail(_)));
    let has_commits = sound.iter().any(|query| matches!(query, SavedQuery::Commits(_)));
    for (source_type, index, is_searched) in
        [(SourceType::Mail, &mail, has_mail), (SourceType::Repository, &commits, has_commits)]
    {
        if is_searched {
            let sources = list_sources(&reader, source_type)?;
            print_index_notes(context, source_type, &sources, index.as_ref(), None)?;
        }
    }
    let stores = CountedStores { items: &reader, mail: mail.as_ref(), commits: commits.as_ref() };
    if let Ok(counts) = count_saved_queries(stores, &sound) {
        let mut counts = counts.into_iter();
        let count = |query: Result<_, SyntaxError>| {
            query.map(|_| counts.next().unwrap_or_default()).map_err(QueryError::from)
        };
        return Ok(queries.into_iter().map(count).collect());
    }
    // One of them cannot be run; the others are counted nevertheless.
    let mut counts = Vec::with_capacity(queries.len());
    for query in queries {
        counts.push(match query {
            Err(error) => Err(error.into()),
            Ok(query) => match count_saved_queries(stores, &[query]) {
                Ok(mut counts) => Ok(counts.pop().unwrap_or_default()),
                Err(error) if error.is_of_query() => Err(error),
                Err(error) => return Err(error.into()),
            },
        });
    }
    Ok(counts)
}

fn print_searches(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let searches = read_searches(context)?;
    context.settings.saved_searches = Arc::new(searches.clone());
    if searches.iter().next().is_none() {
        if context.format == OutputFormat::Text {
            context.print_note("no saved searches; to define one: larder searches add NAME QUERY");
        }
        return Ok(CommandStatus::NothingFound);
    }
    let parse = |search| {
        SavedQuery::parse(search, &context.settings)
            .map(|query| query.without_labels(&context.excluded_labels))
    };
    let counts = count_queries(context, searches.iter().map(parse).collect())?;
    let mut status = CommandStatus::Done;
    let mut rows = Vec::new();
    for (search, count) in searches.iter().zip(counts) {
        match count {
            Ok(count) if context.format == OutputFormat::Json => {
                context.out.print_json(&search_json(search, Some(count)))?;
            }
            Ok(count) => rows.push(search_cells(search, Some(count))),
            Err(error) => {
                status = CommandStatus::Rejected;
                print_search_error(context, search, error)?;
                rows.push(search_cells(search, None));
            }
        }
    }
    if context.format == OutputFormat::Text {
        for line in format_columns(&rows, [30, 20, 16, 0], context.out.line_width()) {
            context.out.print_line(line)?;
        }
    }
    Ok(status)
}

fn print_search_error(
    context: &mut CommandContext,
    search: &SavedSearch,
    error: QueryError,
) -> Result<(), CommandFailure> {
    let name = sanitize_line(&search.name);
    if context.format == OutputFormat::Json {
        let mut object = search_json(search, None);
        object["error"] = json!(error.to_string());
        context.out.print_json(&object)?;
    }
    print_message("error", format!("@{name}: {}", sanitize_line(&error.to_string())));
    // The hint for a query without one of its own is for `larder find`.
    let has_hint = !matches!(&error, QueryError::Syntax(error) if error.hint.is_none());
    for hint in CommandFailure::from(error).hints().iter().filter(|_| has_hint) {
        print_message("hint", sanitize_line(hint));
    }
    Ok(())
}

fn search_cells(search: &SavedSearch, count: Option<SavedSearchCount>) -> [String; 4] {
    let noun = Kind::from_saved_search(search).map_or("item", Kind::name);
    let items = count.map(|count| format_count(count.items, noun)).unwrap_or_default();
    let unread = count.and_then(|count| count.unread).filter(|unread| *unread > 0);
    let unread = unread.map(|unread| format!("{} unread", format_grouped(unread)));
    let mut query = sanitize_line(&search.query);
    if !search.label_changes.is_empty() {
        query = format!("{query}  {}", sanitize_line(&search.label_changes.join(" ")));
    }
    [sanitize_line(&search.name), items, unread.unwrap_or_default(), query]
}

fn search_json(search: &SavedSearch, count: Option<SavedSearchCount>) -> serde_json::Value {
    json!({
        "name": search.name, "kind": search.kind_name, "query": search.query,
        "labels": search.label_changes,
        "items": count.map(|count| count.items), "unread": count.and_then(|count| count.unread),
    })
}

fn check_definition(search: &SavedSearch) -> Result<(), CommandFailure> {
    if !is_search_name(&search.name) {
        let message =
            format!("{:?} cannot be the name of a saved search", sanitize_line(&search.name));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("use at most 100 letters, digits, - and _"));
    }
    search.label_change().map_err(label_failure)?;
    if Kind::from_saved_search(search) != Some(Kind::Message) && !search.label_changes.is_empty() {
        return Err(CommandFailure::new(FailureKind::Usage, "only messages have labels"));
    }
    Ok(())
}

fn add_search(
    context: &mut CommandContext,
    mut search: SavedSearch,
    drops_labels: bool,
) -> Result<CommandStatus, CommandFailure> {
    let mut searches = read_searches(context)?;
    let former = searches.get(&search.name).filter(|one| one.kind_name == search.kind_name);
    if let Some(former) = former
        && search.label_changes.is_empty()
        && !drops_labels
    {
        search.label_changes.clone_from(&former.label_changes);
    }
    let search = &search;
    check_definition(search)?;
    searches.insert(search.clone());
    context.settings.saved_searches = Arc::new(searches);
    let query =
        SavedQuery::parse(search, &context.settings)?.without_labels(&context.excluded_labels);
    let mut store = context.open_or_create_store()?;
    let count =
        count_queries(context, vec![Ok(query)])?.pop().unwrap_or_else(|| Ok(Default::default()))?;
    let mut operation = Operation::new("searches add", &search.name, now_milliseconds());
    let definitions = put_saved_searches(&mut store, &mut operation, std::slice::from_ref(search))?;
    let id = operation.id().map(OperationId::to_number);
    if context.format == OutputFormat::Json {
        let mut object = search_json(search, Some(count));
        object["operation"] = json!(id);
        context.out.print_json(&object)?;
        return Ok(CommandStatus::Done);
    }
    let [name, items, unread, _] = search_cells(search, Some(count));
    let unread = if unread.is_empty() { unread } else { format!(", {unread}") };
    let labels = match search.label_changes.as_slice() {
        [] => String::new(),
        changes => format!("; new mail gets {}", sanitize_line(&changes.join(" "))),
    };
    let effect = match definitions.as_slice() {
        [SearchDefinition::Changed] => "changed",
        [SearchDefinition::Unchanged] => "unchanged",
        _ => "added",
    };
    context
        .out
        .print_line(format!("@{name} {effect}: {items}{unread}{labels}.{}", undo_hint(id)))?;
    Ok(CommandStatus::Done)
}

fn undo_hint(id: Option<i64>) -> String {
    id.map(|id| format!(" Undo: larder undo {id}")).unwrap_or_default()
}

fn remove_search(
    context: &mut CommandContext,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let name = name.strip_prefix('@').unwrap_or(name);
    let searches = read_searches(context)?;
    if searches.get(name).is_none() {
        let message = format!("no saved search is named {:?}", sanitize_line(name));
        let failure = CommandFailure::new(FailureKind::NotFound, message);
        return Err(match searches.nearest_name(name) {
            Some(near) => failure.with_hint(format!("did you mean {near}?")),
            None => failure.with_hint("`larder searches` lists them"),
        });
    }
    let mut store = context.open_store()?;
    let mut operation = Operation::new("searches remove", name, now_milliseconds());
    let reader = store.open_reader()?;
    remove_saved_search(&mut store, &mut operation, &reader, name)?;
    let id = operation.id().map(OperationId::to_number);
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({ "name": name, "operation": id }))?;
        return Ok(CommandStatus::Done);
    }
    context.out.print_line(format!("@{} removed.{}", sanitize_line(name), undo_hint(id)))?;
    for user in searches.users(name) {
        context
            .print_warning(format!("@{} uses it, and cannot be run any more", sanitize_line(user)));
    }
    Ok(CommandStatus::Done)
}
