//! The commits that `larder find --kind commit` lists.
//!
//! Separate from `message_list`: commits are in a store of their own, without threads, labels and
//! files.

use super::message_fields::{ListColumn, column_text, select_fields};
use super::message_list::MessageListOptions;
use super::message_rows::{
    DATE_LETTERS, SENDER_COLUMN, SENDER_WIDTH, is_narrow, list_date, subject_text,
};
use super::print_heading;
use crate::args::OutputFormat;
use crate::commit_store::{
    check_repository, list_repositories, open_commit_reader, open_repository_of,
    parse_commit_query, parse_query_among_kinds, require_commit_reader,
};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{FAINT_STYLE, sanitize_line};
use crate::source_names::print_index_notes;
use crate::table::{pad_cells_with_bound, style_cells};
use anstyle::Style;
use larder_format::message::{MailAddress, MessageDate};
use larder_query::{
    Kind, KindGroup, ListedMessage, MailListRequest, MailQuery, MailSearch, MailSort,
};
use larder_store::Reader;
use larder_store::message_summary::AddressValue;
use larder_sync::SourceType;
use serde_json::{Value, json};

/// The number of commits that a list has if the user sets no limit.
const DEFAULT_LIMIT: usize = 1000;
/// The number of commits among items of other kinds, if the user sets no limit.
const GROUP_LIMIT: usize = 20;
/// The fewest digits of a hash in a list.
const MIN_LISTED_DIGITS: usize = 7;

/// Returns whether items of a kind are listed here.
pub(super) fn is_kind_of_commits(kind: Option<Kind>) -> bool {
    kind == Some(Kind::Commit)
}

/// A listed commit, with the time at which it was made.
struct ListedCommit {
    listed: ListedMessage,
    commit_date: Option<i64>,
}

/// Commits of one state of the index.
pub(in crate::commands) struct CommitGroup {
    reader: Reader,
    commits: Vec<ListedCommit>,
    count: u64,
    /// Whether there may be more than those of the list.
    is_cut: bool,
    /// Whether the query has a test of paths.
    is_about_paths: bool,
    /// The digits of a hash that lists show.
    digits: usize,
}

/// Prints the commits that match.
pub(super) fn print_commits(
    context: &mut CommandContext,
    options: &MessageListOptions,
    collection: Option<&str>,
) -> Result<CommandStatus, CommandFailure> {
    if let Some(option) = options.option_without_commits() {
        let message = format!("{option} cannot be used for commits");
        return Err(CommandFailure::new(FailureKind::Usage, message));
    }
    let query = parse_commit_query(context, &options.query)?;
    let query = match collection {
        Some(name) => {
            check_repository(context, name)?;
            MailQuery::And(vec![query, MailQuery::Collection(name.to_string())])
        }
        None => query,
    };
    let fields = parse_commit_fields(&options.fields)?;
    let sort = options.sort.as_deref().map(parse_sort).transpose()?;
    let reader = require_commit_reader(context)?;
    let repositories = list_repositories(context)?;
    let source_type = SourceType::Repository;
    print_index_notes(context, source_type, &repositories, Some(&reader), collection)?;
    // As of messages: programs are to have all.
    let is_for_reading = context.format == OutputFormat::Text && options.fields.is_empty();
    let default_limit = if is_for_reading { DEFAULT_LIMIT } else { usize::MAX };
    let group = CommitGroup::read(reader, &query, options, sort, default_limit)?;
    if options.is_count {
        super::print_count(context, group.count)?;
    } else {
        group.print_list(context, &fields)?;
    }
    if group.count == 0 {
        if context.format == OutputFormat::Text && !options.is_count {
            context.print_note("no results");
        }
        return Ok(CommandStatus::NothingFound);
    }
    if group.is_cut {
        context.print_note(format!("the first {DEFAULT_LIMIT} commits; -n N lists more"));
    }
    Ok(CommandStatus::Done)
}

/// Returns the digits of a hash in lists of an index with so many commits: as many as git takes, so
/// that two commits with the same ones are unlikely.
fn listed_digits(commits: u32) -> usize {
    let bits = usize::try_from(u32::BITS - commits.leading_zeros()).unwrap_or_default();
    MIN_LISTED_DIGITS.max(bits.div_ceil(2))
}

fn parse_sort(name: &str) -> Result<MailSort, CommandFailure> {
    KindGroup::Commits.find_mail_order(name).ok_or_else(|| {
        let orders = KindGroup::Commits.order_names().join(", ");
        let message = format!("commits cannot be sorted by {:?}", sanitize_line(name));
        CommandFailure::new(FailureKind::Usage, message)
            .with_hint(format!("one of {orders}, or -date and the like"))
    })
}

fn parse_commit_fields(names: &[String]) -> Result<Vec<ListColumn>, CommandFailure> {
    let find = |name: &String| {
        KindGroup::Commits.find_field(name).map(Some).ok_or_else(|| {
            let message = format!("unknown field {:?} of commits in --fields", sanitize_line(name));
            CommandFailure::new(FailureKind::Usage, message)
                .with_hint(format!("one of {}", KindGroup::Commits.field_names().join(", ")))
        })
    };
    names.iter().map(find).collect()
}

impl CommitGroup {
    /// Finds the commits among items of other kinds; `None`: no commits are indexed. A query that
    /// has no meaning for commits matches none.
    pub(super) fn find(
        context: &CommandContext,
        data: &Reader,
        options: &MessageListOptions,
    ) -> Result<Option<CommitGroup>, CommandFailure> {
        let Some(query) = parse_query_among_kinds(context, &options.query) else { return Ok(None) };
        let index = open_commit_reader(context)?;
        let repositories = larder_sync::list_sources(data, SourceType::Repository)?;
        let source_type = SourceType::Repository;
        print_index_notes(context, source_type, &repositories, index.as_ref(), None)?;
        let Some(reader) = index else { return Ok(None) };
        let sort =
            options.sort.as_deref().and_then(|sort| KindGroup::Commits.find_mail_order(sort));
        match CommitGroup::read(reader, &query, options, sort, GROUP_LIMIT) {
            Ok(group) => Ok(Some(group)),
            // Commits may match: this is not the answer that there are none.
            Err(error @ larder_query::Error::MailWorkLimit { .. }) => {
                context.print_warning(format!("no commits are listed: {error}"));
                Ok(None)
            }
            Err(error) if error.is_of_query() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Searches in one read transaction.
    fn read(
        reader: Reader,
        query: &MailQuery,
        options: &MessageListOptions,
        sort: Option<MailSort>,
        default_limit: usize,
    ) -> Result<CommitGroup, larder_query::Error> {
        let limit = options.limit.unwrap_or(default_limit);
        let request = MailListRequest {
            query,
            sort: sort.unwrap_or(MailSort::NEWEST_FIRST),
            limit,
            offset: options.offset,
            is_related: false,
        };
        let (mut commits, count, all) = {
            let mail = reader.mail()?;
            let words = mail.words();
            let search = MailSearch::open(&mail, &words)?;
            let all = mail.end_row()?;
            if options.is_count {
                (Vec::new(), search.count(query)?, all)
            } else {
                let mut commits = Vec::new();
                for listed in search.list_messages(&request)? {
                    let commit_date = search.read_commit_date(listed.message.row)?;
                    commits.push(ListedCommit { listed, commit_date });
                }
                let count = commits.len() as u64;
                (commits, count, all)
            }
        };
        commits.shrink_to_fit();
        let is_cut = options.limit.is_none() && !options.is_count && commits.len() == limit;
        let is_about_paths = query.has_changed_path();
        Ok(CommitGroup {
            reader,
            commits,
            count,
            is_cut,
            is_about_paths,
            digits: listed_digits(all),
        })
    }

    /// Makes a group of commits that a view delivered.
    pub(in crate::commands) fn from_listed(
        reader: Reader,
        listed: &[ListedMessage],
    ) -> Result<CommitGroup, CommandFailure> {
        let (mut commits, all) = (Vec::with_capacity(listed.len()), {
            let mail = reader.mail()?;
            mail.end_row()?
        });
        {
            let mail = reader.mail()?;
            let words = mail.words();
            let search = MailSearch::open(&mail, &words)?;
            for one in listed {
                let commit_date = search.read_commit_date(one.message.row)?;
                commits.push(ListedCommit { listed: one.clone(), commit_date });
            }
        }
        let count = commits.len() as u64;
        Ok(CommitGroup {
            reader,
            commits,
            count,
            is_cut: false,
            is_about_paths: false,
            digits: listed_digits(all),
        })
    }

    /// Returns the beginning of a hash that lists show.
    pub(in crate::commands) fn shorten<'h>(&self, hash: &'h str) -> &'h str {
        hash.get(..self.digits).unwrap_or(hash)
    }

    /// Returns all values of each commit.
    pub(in crate::commands) fn json_objects(&self) -> Result<Vec<Value>, CommandFailure> {
        self.commits.iter().map(|one| self.commit_json(one)).collect()
    }

    /// Returns whether the query has a test of the paths that commits changed.
    pub(super) fn is_about_paths(&self) -> bool {
        self.is_about_paths
    }

    /// Returns the number of commits that match, or that are listed.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Prints the commits, or these fields of them. After other items they have a heading.
    pub(super) fn print(
        &self,
        context: &mut CommandContext,
        is_after_others: bool,
        fields: &[ListColumn],
    ) -> Result<(), CommandFailure> {
        if self.commits.is_empty() {
            return Ok(());
        }
        if is_after_others && fields.is_empty() && context.format == OutputFormat::Text {
            print_heading(&mut context.out, "commits", true)?;
        }
        self.print_list(context, fields)?;
        if self.is_cut && context.format == OutputFormat::Text {
            context.print_note(format!(
                "the newest {GROUP_LIMIT} commits; all of them: larder find --kind commit"
            ));
        }
        Ok(())
    }

    fn print_list(
        &self,
        context: &mut CommandContext,
        fields: &[ListColumn],
    ) -> Result<(), CommandFailure> {
        match context.format {
            OutputFormat::Raw => self.print_raw(context),
            OutputFormat::Json => {
                for one in &self.commits {
                    let object = select_fields(self.commit_json(one)?, fields);
                    context.out.print_json(&object)?;
                }
                Ok(())
            }
            _ if !fields.is_empty() => {
                for one in &self.commits {
                    let object = self.commit_json(one)?;
                    let texts = fields.iter().map(|column| column_text(&object, *column));
                    let cells: Vec<String> =
                        [self.short_hash(one)].into_iter().chain(texts).collect();
                    context.out.print_line(cells.join("\t"))?;
                }
                Ok(())
            }
            _ => self.print_rows(context),
        }
    }

    fn short_hash(&self, one: &ListedCommit) -> String {
        self.shorten(&one.listed.message.uid).to_string()
    }

    fn print_rows(&self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        for line in self.format_lines(context, context.out.line_width()) {
            context.out.print_line(line)?;
        }
        Ok(())
    }

    /// Returns a line for each commit: hash, date, author and subject.
    pub(in crate::commands) fn format_lines(
        &self,
        context: &CommandContext,
        width: Option<usize>,
    ) -> Vec<String> {
        let row = |one: &ListedCommit| {
            let summary = one.listed.message.summary.values();
            let author = summary.from.first().map(AddressValue::display_name).unwrap_or_default();
            [
                self.short_hash(one),
                list_date(context, summary.date),
                sanitize_line(author),
                subject_text(summary.subject),
            ]
        };
        let mut rows: Vec<[String; 4]> = self.commits.iter().map(row).collect();
        if is_narrow(width) {
            rows.iter_mut().for_each(|[_, date, ..]| date.truncate(DATE_LETTERS));
        }
        let limits = [self.digits, 16, SENDER_WIDTH, 0];
        let padded = pad_cells_with_bound(&mut rows, limits, width, SENDER_COLUMN);
        let line = |[hash, date, author, subject]: &[String; 4]| {
            let plain = Style::new();
            style_cells(&[
                (FAINT_STYLE, hash.as_str()),
                (plain, date.as_str()),
                (plain, author.as_str()),
                (plain, subject.as_str()),
            ])
        };
        padded.iter().map(line).collect()
    }

    /// Returns all values of a commit.
    fn commit_json(&self, one: &ListedCommit) -> Result<Value, CommandFailure> {
        let message = &one.listed.message;
        let summary = message.summary.to_summary();
        let person = |people: &[MailAddress]| {
            people.first().map(|one| json!({ "name": one.name, "address": one.address }))
        };
        let date = |seconds| MessageDate { seconds, offset_minutes: 0 }.to_rfc3339();
        Ok(json!({
            "kind": "commit",
            "id": message.handle.to_string(),
            "collection": self.reader.mail()?.collection_of(message.row)?,
            "hash": message.uid,
            "date": date(summary.date),
            "timestamp": summary.date,
            "author": person(&summary.from),
            "committer": person(&summary.cc),
            "commit_date": one.commit_date.map(date),
            "subject": summary.subject,
            "parents": summary.references,
        }))
    }

    /// Prints the object of each commit, one after the other.
    fn print_raw(&self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        for one in &self.commits {
            let message = &one.listed.message;
            let (_, repository) = open_repository_of(context, &self.reader, message.row)?;
            let bytes = repository.read_object(&message.uid).map_err(larder_sync::Error::from)?;
            context.out.print_item_bytes(&bytes)?;
        }
        Ok(())
    }
}
