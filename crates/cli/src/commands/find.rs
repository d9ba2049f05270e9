pub(super) mod commit_list;
mod correspondent_list;
mod duplicate_groups;
mod explanation;
pub(super) mod field_list;
mod item_list;
mod kind_columns;
pub(super) mod message_fields;
pub(super) mod message_list;
pub(super) mod message_rows;
pub(super) mod occurrence_list;
pub(super) mod query_args;
mod snippets;
mod thread_list;
mod unread_stores;

use self::commit_list::CommitGroup;
use self::explanation::print_explanation;
pub(super) use self::item_list::{calendar_item_row, parse_columns};
use self::item_list::{print_answer, print_heading};
use self::kind_columns::{ListColumns, print_missing_orders};
use self::message_list::{GroupPlace, MessageGroup};
use self::query_args::QueryArgs;
use self::unread_stores::UnreadStores;
use crate::args::OutputFormat;
use crate::commit_store::list_repositories;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::list_sources;
use crate::output_path::OutputFolder;
use larder_date_phrase::DateRange;
use larder_format::kind::SourceLocation;
use larder_query::{KindGroup, MailQuery, Query, SortSpec, TimeTest};
use larder_store::{Kind, Reader, TimeTarget};
use larder_sync::SourceType;
use serde_json::json;

/// Search contacts, events, tasks and memos, messages, and commits
///
/// Bare words match names, nicknames, organisations, e-mail addresses, phone
/// numbers and all text of events, tasks and memos. All words must match; case
/// and accents do not matter. Without QUERY, lists every item.
///
///   org:example          the field contains the word
///   full_name:ann*       begins with
///   email:*@example.org  ends with
///   title:=boss          equals
///   has:photo            the field has a value
///   any:vienna           any field contains the word, addresses and notes too
///   "anna schmidt"       a phrase, within one value
///   -otto, not otto      does not match
///   anna or (otto berg)  either matches
///   when:2026-03         takes place then; also today, tomorrow, 2026-W12, today..+7d
///   due:friday           also start:, end:, completed:, created:, modified:
///   is:recurring         also is:completed, is:overdue, is:cancelled, is:all-day
///
/// Quote terms with spaces, quotes, stars or parentheses for the shell:
///
///   larder find anna
///   larder find 'org:example -has:email' --sort family_name
///   larder find 030 1234 --format json
///   larder find --count
///   larder find --duplicates
///   larder find 'when:2026-03 standup' --expand
///   larder find --alarms today..tomorrow
///
/// Messages are searched by whole words, in the query languages of mu and
/// notmuch, and listed by date, the newest first:
///
///   larder find --kind message walrus from:anna date:2026-01..2026-03
///   larder find --kind message '"annual audit" -flag:seen' --threads
///   larder find --in work label:tax
///
/// So are the commits of git repositories, which have fields of their own:
///
///   larder find --kind commit 'author:anna date:2019.. path:src/*.rs walrus'
///
/// The addresses of the mail are found by the beginnings of words, or by /regex/:
///
///   larder find --correspondents ann
///   larder find --correspondents --personal --format mutt ann
///
/// Their formats are text, json, mutt, mutt-alias, csv, org, bbdb and vcard.
///
/// `larder fields` lists the fields; larder-query(7) describes queries in full.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    query_args: QueryArgs,
    /// Sort by this field, or by -FIELD in reverse; none: insertion order [default: file_as, or
    /// start for events, tasks and memos; messages: -date, else subject, from, to, cc, size,
    /// list_id, message_id or priority; commits: -date, else subject, author or committer]
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Start the list at the first item that sorts at or after TEXT
    #[arg(long, value_name = "TEXT")]
    from: Option<String>,
    /// Show at most N results
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Print these fields, in full and separated by tabs
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    fields: Vec<String>,
    /// Print only the number of results
    #[arg(long)]
    count: bool,
    /// Print every occurrence within the `when:` range instead of each item once
    #[arg(long, conflicts_with_all = ["sort", "from", "duplicates"])]
    expand: bool,
    /// Print the alarms within a time range, for example today..+7d
    #[arg(
        long,
        value_name = "FROM..TO",
        conflicts_with_all = ["expand", "sort", "from", "duplicates"],
        allow_hyphen_values = true
    )]
    alarms: Option<String>,
    /// Print the query plan and its cost instead of results
    #[arg(long, conflicts_with = "count")]
    explain: bool,
    /// List likely duplicate contacts in groups, by e-mail address, phone number or name; with
    /// QUERY, only groups with a match
    #[arg(long, conflicts_with_all = ["explain", "sort"])]
    duplicates: bool,
    /// Messages: list threads, the one with the newest match first; -n and --offset count threads
    #[arg(long)]
    threads: bool,
    /// Messages: list a line for each thread: its ID, the date of the newest match, the number of
    /// matches and of messages, the senders, the flags, the subject and the labels
    #[arg(long, conflicts_with = "fields")]
    summary: bool,
    /// Messages: list the other messages of the threads, too
    #[arg(long, conflicts_with = "count")]
    related: bool,
    /// Messages: print a line of text around the first hit, read from the file of each message
    #[arg(long, conflicts_with_all = ["summary", "fields", "files", "count"])]
    snippets: bool,
    /// Messages: print the paths of the files
    #[arg(long, conflicts_with_all = ["threads", "summary"])]
    files: bool,
    /// End each path with a zero byte, for xargs -0
    #[arg(long, short = '0', requires = "files")]
    null: bool,
    /// Messages: make symbolic links to the files in DIR, a maildir of its own
    #[arg(long, value_name = "DIR", conflicts_with_all = ["threads", "summary", "files", "snippets", "count"])]
    links: Option<OutputFolder>,
    /// Remove the links of earlier runs from DIR first
    #[arg(long, requires = "links")]
    clear: bool,
    /// Messages and commits: leave out the first N
    #[arg(long, value_name = "N")]
    offset: Option<usize>,
    /// List the addresses of the mail, the most likely ones first
    #[arg(long, conflicts_with_all = [
        "sort", "from", "fields", "expand", "alarms", "explain", "duplicates", "threads", "related",
        "summary", "snippets", "files", "links", "offset", "kind", "collection", "sexp",
    ])]
    correspondents: bool,
    /// Correspondents: only those of messages from or to you
    #[arg(long)]
    personal: bool,
    /// Correspondents: only those of messages of DATE or later
    #[arg(long, value_name = "DATE")]
    after: Option<String>,
}

impl FindArgs {
    /// Returns whether the output is a list of items.
    pub(super) fn is_item_list(&self) -> bool {
        !self.count && !self.explain && !self.duplicates
    }

    /// Returns whether the output is a list of addresses.
    pub(super) fn is_about_correspondents(&self) -> bool {
        self.correspondents
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        context.read_saved_searches(&self.query_args.query_text())?;
        if self.correspondents {
            let options = correspondent_list::CorrespondentListOptions {
                query: self.query_args.query_text(),
                limit: self.limit,
                is_count: self.count,
                is_personal: self.personal,
                after: self.after.as_deref(),
            };
            return correspondent_list::print_correspondents(context, &options);
        }
        self.check_kind()?;
        let is_about_repository = self.is_about_repository(context)?;
        if self.is_about_messages() || self.is_about_mail_source(context)? || is_about_repository {
            return self.run_for_messages(context, is_about_repository);
        }
        if self.offset.is_some() {
            let message = "--offset is for messages and commits";
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint("add --kind message; other lists start at --from TEXT"));
        }
        let reader = context.open_reader();
        let searched = self.searched_groups(reader.as_ref().ok())?;
        let columns = self.parse_list_columns(&searched)?;
        let mut request = self.to_search_request(context, &searched)?;
        let reader = reader?;
        if self.duplicates {
            request.sort = Some(SortSpec::parse("file_as")?);
            return duplicate_groups::print_duplicates(
                context,
                &reader,
                &request,
                self.count,
                columns.item_columns().as_deref(),
            );
        }
        if (self.expand || self.alarms.is_some()) && !self.explain {
            let columns = columns.item_columns();
            let options =
                occurrence_list::ExpandOptions { limit: self.limit, count: self.count, columns };
            return occurrence_list::print_occurrences(context, &reader, &request, &options);
        }
        if !self.count || self.from.is_some() {
            self.set_default_sort(&searched, &reader, &mut request)?;
        }
        let answer = context.run_query("larder find", &reader, &request)?;
        occurrence_list::warn_of_undecided_items(
            context,
            &reader,
            &larder_query::find_undecided_rows(&reader, &answer)?,
        )?;
        // The other groups answer, if a store that can be made again is damaged.
        let mut unread = UnreadStores::default();
        let (messages, commits) = match self.is_about_all_kinds() {
            true => {
                let options = self.message_options();
                let must_be_read = self.is_only_of(context, Kind::Message)
                    && !self.is_only_of(context, Kind::Commit);
                let commits = unread.keep(CommitGroup::find(context, &reader, &options))?.flatten();
                let is_alone =
                    answer.is_empty() && commits.as_ref().is_none_or(|group| group.count() == 0);
                let messages =
                    MessageGroup::find(context, &reader, &options, must_be_read, is_alone);
                (unread.keep(messages)?.flatten(), commits)
            }
            false => (None, None),
        };
        let counts = [
            (KindGroup::StoredItems, answer.len() as u64),
            (KindGroup::Messages, messages.as_ref().map_or(0, MessageGroup::count)),
            (KindGroup::Commits, commits.as_ref().map_or(0, CommitGroup::count)),
        ];
        let found: u64 = counts.iter().map(|(_, count)| count).sum();
        let matched: Vec<KindGroup> =
            counts.iter().filter(|(_, count)| *count > 0).map(|(group, _)| *group).collect();
        let (mut listed, mut status) = (matched.clone(), CommandStatus::Done);
        if self.explain {
            print_explanation(context, &answer)?;
        } else if self.count {
            print_count(context, found)?;
            answer.check_complete()?;
        } else {
            listed.retain(|group| columns.kinds.is_listed(*group));
            let [has_items, has_messages, has_commits] =
                KindGroup::ALL.map(|group| listed.contains(&group));
            if has_items || answer.is_empty() {
                let has_others = has_messages || has_commits;
                print_answer(context, &reader, &answer, columns.items.as_deref(), has_others)?;
            }
            if let Some(messages) = messages.as_ref().filter(|_| has_messages) {
                let place = GroupPlace::new(has_items, has_commits);
                let fields = columns.kinds.columns_of(KindGroup::Messages);
                status = unread.keep(messages.print(context, place, fields))?.unwrap_or(status);
            }
            if let Some(commits) = commits.as_ref().filter(|_| has_commits) {
                let fields = columns.kinds.columns_of(KindGroup::Commits);
                unread.keep(commits.print(context, has_items || has_messages, fields))?;
            }
            columns.print_left_out(context, &matched);
            if let Some(sort) = self.sort.as_deref().filter(|_| self.is_about_all_kinds()) {
                print_missing_orders(context, sort, &listed);
            }
        }
        unread.into_result(context)?;
        if found == 0 && !self.count && !self.explain && context.format == OutputFormat::Text {
            self.print_advice(context);
            // A path that no message has may be meant for commits.
            let names_path = commits.is_some_and(|group| group.is_about_paths());
            if let Some(messages) = messages.filter(|_| !names_path) {
                messages.print_missing_names(context);
            }
        }
        Ok(if listed.is_empty() { CommandStatus::NothingFound } else { status })
    }

    /// Returns the kinds that are searched, as far as `--fields` or `--sort` may be of them.
    fn searched_groups(&self, data: Option<&Reader>) -> Result<Vec<KindGroup>, CommandFailure> {
        let mut searched = vec![KindGroup::StoredItems];
        let has_names = self.sort.is_some() || !self.fields.is_empty();
        if let Some(data) = data.filter(|_| has_names && self.is_about_all_kinds()) {
            for (source_type, group) in [
                (SourceType::Mail, KindGroup::Messages),
                (SourceType::Repository, KindGroup::Commits),
            ] {
                if !larder_sync::list_sources(data, source_type)?.is_empty() {
                    searched.push(group);
                }
            }
        }
        Ok(searched)
    }

    /// Parses the names of `--fields`.
    fn parse_list_columns(&self, searched: &[KindGroup]) -> Result<ListColumns, CommandFailure> {
        if self.fields.is_empty() {
            return Ok(ListColumns::default());
        }
        match self.is_about_all_kinds() {
            true => ListColumns::parse(&self.fields, searched),
            false => ListColumns::parse_for_items(&self.fields, self.query_args.kind.is_none()),
        }
    }

    /// Returns whether the order of `--sort` is one of messages or commits only.
    fn is_order_of_indexes(&self, searched: &[KindGroup]) -> bool {
        let sort = self.sort.as_deref().filter(|_| self.is_about_all_kinds());
        sort.is_some_and(|sort| {
            !KindGroup::StoredItems.has_order(sort)
                && searched.iter().any(|group| group.has_order(sort))
        })
    }

    /// Returns whether the search is for messages, which are in a store of their own.
    fn is_about_messages(&self) -> bool {
        let kind = self.query_args.kind;
        self.threads
            || self.summary
            || self.snippets
            || self.links.is_some()
            || self.related
            || self.files
            || kind.is_some_and(|kind| kind.source_location() == SourceLocation::Locator)
    }

    /// Returns whether messages are listed, which an mbox file can have.
    pub(super) fn is_message_list(&self) -> bool {
        self.is_item_list() && self.is_about_messages() && !self.is_about_commits()
    }

    fn is_about_commits(&self) -> bool {
        commit_list::is_kind_of_commits(self.query_args.kind)
    }

    /// Refuses the options of lists of messages for other kinds, and those of correspondents.
    fn check_kind(&self) -> Result<(), CommandFailure> {
        let of_correspondents = [
            (self.personal, "--personal", "flag:personal"),
            (self.after.is_some(), "--after", "date:DATE.."),
        ];
        if let Some((_, option, term)) = of_correspondents.iter().find(|(is_used, ..)| *is_used) {
            let message = format!("{option} is for --correspondents");
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint(format!("messages are chosen by the query: {term}")));
        }
        let options = [
            (self.threads, "--threads"),
            (self.summary, "--summary"),
            (self.snippets, "--snippets"),
            (self.links.is_some(), "--links"),
            (self.related, "--related"),
            (self.files, "--files"),
        ];
        let is_other = |kind: Kind| !matches!(kind.source_location(), SourceLocation::Locator);
        match options.into_iter().find(|(is_used, _)| *is_used) {
            Some((_, option)) if self.query_args.kind.is_some_and(is_other) => {
                let message = format!("{option} is for messages and commits");
                Err(CommandFailure::new(FailureKind::Usage, message)
                    .with_hint("use --kind message, or leave out --kind"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether `--in` names a repository, and no kind is given.
    fn is_about_repository(&self, context: &CommandContext) -> Result<bool, CommandFailure> {
        let Some(name) = &self.query_args.collection else { return Ok(false) };
        let is_any_kind = self.query_args.kind.is_none();
        Ok(is_any_kind && list_repositories(context)?.iter().any(|source| source.name == *name))
    }

    /// Returns whether `--in` names a source of mail, and no kind is given.
    fn is_about_mail_source(&self, context: &CommandContext) -> Result<bool, CommandFailure> {
        let Some(name) = &self.query_args.collection else { return Ok(false) };
        let sources = list_sources(context)?;
        Ok(self.query_args.kind.is_none() && sources.iter().any(|source| source.name == *name))
    }

    /// Returns whether the query has a term that contacts and calendars do not have, but messages
    /// or commits of this kind.
    fn is_only_of(&self, context: &CommandContext, kind: Kind) -> bool {
        // Without sources, the error of the other kinds has the better hint.
        !self.query_args.sexp
            && MailQuery::is_only_of(kind, &self.query_args.query_text(), &context.settings)
            && list_sources(context).is_ok_and(|sources| !sources.is_empty())
    }

    /// Returns whether items of all kinds are listed, messages among them.
    fn is_about_all_kinds(&self) -> bool {
        self.query_args.kind.is_none()
            && self.query_args.collection.is_none()
            && self.unsupported_message_option().is_none()
            && !self.query_args.query_text().trim().is_empty()
    }

    fn message_options(&self) -> message_list::MessageListOptions {
        message_list::MessageListOptions {
            query: self.query_args.query_text(),
            source: self.query_args.collection.clone(),
            sort: self.sort.clone(),
            fields: self.fields.clone(),
            limit: self.limit,
            offset: self.offset.unwrap_or_default(),
            is_count: self.count,
            is_explanation: self.explain,
            is_threaded: self.threads || self.summary,
            is_summary: self.summary,
            is_related: self.related,
            is_files: self.files,
            has_snippets: self.snippets,
            is_null_separated: self.null,
            links: self.links.clone(),
            is_clearing_links: self.clear,
        }
    }

    /// Returns an option that lists of messages do not have.
    fn unsupported_message_option(&self) -> Option<&'static str> {
        let options = [
            (self.from.is_some(), "--from"),
            (self.expand, "--expand"),
            (self.alarms.is_some(), "--alarms"),
            (self.explain, "--explain"),
            (self.duplicates, "--duplicates"),
            (self.query_args.sexp, "--sexp"),
        ];
        options.into_iter().find(|(is_used, _)| *is_used).map(|(_, option)| option)
    }

    fn run_for_messages(
        &self,
        context: &mut CommandContext,
        is_about_repository: bool,
    ) -> Result<CommandStatus, CommandFailure> {
        let is_about_commits = is_about_repository || self.is_about_commits();
        let option = self
            .unsupported_message_option()
            .filter(|one| if is_about_commits { *one != "--in" } else { *one != "--explain" });
        if let Some(option) = option {
            let kinds = if is_about_commits { "commits" } else { "messages" };
            let message = format!("{option} cannot be used for {kinds} yet");
            return Err(CommandFailure::new(FailureKind::Usage, message));
        }
        let options = self.message_options();
        match is_about_commits {
            true if context.format == OutputFormat::Mbox => {
                let message = "--format mbox is not supported for commits";
                Err(CommandFailure::new(FailureKind::Usage, message))
            }
            true => {
                let collection = self.query_args.collection.as_deref();
                commit_list::print_commits(context, &options, collection)
            }
            false => message_list::print_messages(context, &options),
        }
    }

    /// Prints a note that may help when nothing was found.
    fn print_advice(&self, context: &CommandContext) {
        context.print_note("no results");
        let words = self.query_args.query_text();
        if self.is_about_all_kinds()
            && let Some(kinds) = larder_query::find_kind_conflict(&words, &context.settings)
        {
            let kinds: Vec<&str> = kinds.into_iter().map(Kind::plural).collect();
            context.print_note(format!(
                "no item matches terms of {} joined by `and`; with `or`, the items of each are found",
                kinds.join(" and of ")
            ));
        }
        let digits = words.chars().filter(char::is_ascii_digit).count();
        let may_be_number = digits >= 3 && !words.contains(char::is_alphabetic);
        if self.query_args.sexp || words.is_empty() || words.contains(':') {
            return;
        }
        if may_be_number && context.settings.region.is_none() {
            context.print_note(
                "set your country to find numbers in any notation: region = \"AT\" in config.toml",
            );
        } else {
            context.print_note("any:WORD searches further fields; `larder fields` lists them");
        }
    }

    fn to_search_request(
        &self,
        context: &CommandContext,
        searched: &[KindGroup],
    ) -> Result<larder_query::SearchRequest, CommandFailure> {
        let mut query = self.query_args.parse_query(&context.settings);
        // Without sources, no other kind has the field. Most lines have fields of one kind.
        if query.is_err()
            && self.is_about_all_kinds()
            && (!list_sources(context)?.is_empty() || !list_repositories(context)?.is_empty())
        {
            query = self.query_args.parse_query(&context.settings.among_kinds());
        }
        let query = match query {
            Err(failure) => {
                let kinds = [Kind::Message, Kind::Commit];
                match kinds.into_iter().find(|kind| self.is_only_of(context, *kind)) {
                    Some(_) if self.is_about_all_kinds() => Query::Or(Vec::new()),
                    Some(kind) => {
                        let name = kind.name();
                        return Err(failure.with_hint(format!("{name}s have it: --kind {name}")));
                    }
                    None => return Err(failure),
                }
            }
            Ok(query) => query,
        };
        let sort = match self.sort.as_deref() {
            Some("none") if self.from.is_some() => {
                return Err(CommandFailure::new(
                    FailureKind::Usage,
                    "--from cannot be used with --sort none",
                )
                .with_hint("--from TEXT needs an order: --sort FIELD, or the default file_as"));
            }
            None | Some("none") => None,
            Some(_) if self.count && self.from.is_none() => None,
            Some(_) if self.is_order_of_indexes(searched) => None,
            Some(name) => Some(SortSpec::parse(name)?),
        };
        Ok(larder_query::SearchRequest {
            query: self.add_option_terms(query, context)?,
            collection: self.query_args.collection.clone(),
            sort,
            start_text: self.from.clone(),
            // A count is that of all, as of messages and commits.
            limit: self.limit.filter(|_| !self.count),
            prefetch: self.is_item_list()
                && self.fields.is_empty()
                && context.format != OutputFormat::Text,
            ..larder_query::SearchRequest::default()
        })
    }

    /// Adds the terms that options stand for.
    fn add_option_terms(
        &self,
        query: Query,
        context: &CommandContext,
    ) -> Result<Query, CommandFailure> {
        let mut all = Vec::new();
        if query != Query::All {
            all.push(query);
        }
        all.extend(self.query_args.kind.map(Query::Kind));
        if let Some(text) = &self.alarms {
            let user_locale = &context.settings.user_locale;
            let phrase = DateRange::parse(
                text,
                user_locale.zone.to_civil(user_locale.now),
                &user_locale.language,
            )
            .map_err(|error| CommandFailure::new(FailureKind::Usage, error))?;
            // It comes first, as its range is the one that the answer is expanded in.
            all.insert(
                0,
                Query::Time(TimeTest::InRange(larder_query::date_range_to_time_range(
                    user_locale,
                    &phrase,
                    TimeTarget::Alarms,
                ))),
            );
        }
        Ok(match all.len() {
            0 => Query::All,
            1 => all.swap_remove(0),
            _ => Query::And(all),
        })
    }

    /// Sets the default order of the items.
    fn set_default_sort(
        &self,
        searched: &[KindGroup],
        reader: &Reader,
        request: &mut larder_query::SearchRequest,
    ) -> Result<(), CommandFailure> {
        if self.sort.is_none() || self.is_order_of_indexes(searched) {
            request.sort = default_sort(reader, request)?;
        }
        if self.from.is_some() && request.sort.is_some_and(|sort| sort.field.name == "start") {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                "--from cannot be used with --sort start, which sorts by time",
            )
            .with_hint("use when:2026-03.. to list from a day on"));
        }
        Ok(())
    }
}

/// Returns the default order.
pub(super) fn default_sort(
    reader: &Reader,
    request: &larder_query::SearchRequest,
) -> Result<Option<SortSpec>, CommandFailure> {
    Ok(larder_query::resolve_domain(reader, request)?.default_sort())
}

pub(super) fn print_count(context: &mut CommandContext, number: u64) -> Result<(), CommandFailure> {
    match context.format {
        OutputFormat::Json => context.out.print_json(&json!({ "count": number }))?,
        _ => context.out.print_line(number)?,
    }
    Ok(())
}
