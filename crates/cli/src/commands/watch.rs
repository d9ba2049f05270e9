//! `larder watch`.

mod message_stream;
mod screen;
mod stream;

use self::screen::WatchScreen;
use self::stream::StreamPrinter;
use super::find::occurrence_list::no_time_range_failure;
use super::find::parse_columns;
use super::find::query_args::QueryArgs;
use super::show::item_format::OutputColumn;
use crate::args::OutputFormat;
use crate::commit_store::list_repositories;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::list_sources;
use crate::output::{OutputStream, sanitize_line};
use crate::terminal_echo::{SilentTerminal, TerminalModes};
use larder_query::views::{
    View, ViewEvent, ViewInterest, ViewOptions, ViewQuery, Views, ViewsOptions,
};
use larder_query::{
    Kind, KindGroup, MailQuery, Query, QueryContext, SavedSearchFollower, SearchRequest, SortSpec,
    required_time_range,
};
use larder_sync::RegisteredSource;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Show a live list that updates as matching items change
///
/// On a terminal, the list is redrawn when any program changes an item and when
/// time changes the result; new and changed items are marked for five seconds. The
/// results of a query with `when:` are grouped by day. Control-C ends the command.
///
///   larder watch anna
///   larder watch when:today..+7d
///   larder watch is:overdue --kind task
///
/// Elsewhere, and with --format json, it prints a line for each item that is
/// added (+), modified (~) or removed (-), starting with the current results:
///
///   larder watch when:today --expand --format json | program
///
/// QUERY is the same as for `larder find`. Messages are watched with --kind message,
/// commits with --kind commit: a line for each change, on a terminal, too.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    query_args: QueryArgs,
    /// Sort the list by this field, or by -FIELD in reverse
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Print these fields
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    fields: Vec<String>,
    /// Print the occurrences of each item within the `when:` range; the default on a terminal
    /// unless --sort or --fields is given
    #[arg(long, conflicts_with = "sort")]
    expand: bool,
    /// Exit after N changes; 0 exits after the initial list
    #[arg(long, value_name = "N")]
    changes: Option<usize>,
    /// Exit after this many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// The query and how to print it.
pub(super) struct WatchOptions {
    pub(super) query_args: QueryArgs,
    pub(super) sort: Option<SortSpec>,
    pub(super) columns: Option<Vec<OutputColumn>>,
    pub(super) expand: bool,
}

impl WatchOptions {
    /// Parses the query, relative to the current time.
    pub(super) fn to_search_request(
        &self,
        settings: &QueryContext,
    ) -> Result<SearchRequest, CommandFailure> {
        let query = self.query_args.parse_query(settings)?;
        let query = match (self.query_args.kind, query) {
            (None, query) => query,
            (Some(kind), Query::All) => Query::Kind(kind),
            (Some(kind), query) => Query::And(vec![query, Query::Kind(kind)]),
        };
        let (collection, sort) = (self.query_args.collection.clone(), self.sort);
        Ok(SearchRequest { query, collection, sort, ..SearchRequest::default() })
    }

    fn to_live_query(&self, settings: &QueryContext) -> ViewQuery {
        let mut question = self.query_args.to_live_query(settings);
        if let Some(sort) = self.sort {
            question = question.with_sort(sort);
        }
        if self.expand { question.with_occurrences() } else { question }
    }
}

/// The output: a list on a terminal, or lines.
enum WatchOutput {
    List(WatchScreen),
    Lines(StreamPrinter),
}

impl WatchArgs {
    pub(crate) fn run(
        mut self,
        context: &mut CommandContext,
    ) -> Result<CommandStatus, CommandFailure> {
        context.read_saved_searches(&self.query_args.query_text())?;
        self.query_args.kind = match self.query_args.kind {
            None => self.kind_of_source(context)?,
            kind => kind,
        };
        if self.query_args.is_about_messages() {
            return message_stream::watch_messages(&self, context);
        }
        if !self.query_args.sexp
            && MailQuery::names_only_mail(&self.query_args.query_text(), &context.settings)
        {
            let message = "the query has a term that only messages have";
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint("to watch messages: larder watch --kind message QUERY"));
        }
        self.print_mail_note(context)?;
        let is_list = context.format == OutputFormat::Text && OutputStream::is_terminal_screen();
        let watch_options = self.watch_options(context, is_list)?;
        // A store of an older version is migrated.
        drop(context.open_reader()?);
        let options = ViewsOptions {
            zones: Arc::clone(&context.settings.user_locale.zones),
            cache_bytes: context.cache_budget_bytes,
            log: context.log.clone(),
            ..ViewsOptions::default()
        };
        let views = Views::open(&context.dir, options)?;
        let silence = is_list.then(SilentTerminal::begin).flatten();
        let (signals, wake) = WakeSignals::new(silence.as_ref().map(SilentTerminal::modes));
        let interest = if is_list { ViewInterest::Rows } else { ViewInterest::MetaAndBytes };
        let options =
            ViewOptions { client: "larder watch".into(), interest, wake, ..ViewOptions::default() };
        let live_query = watch_options.to_live_query(&context.settings);
        let view = views.open_view(live_query, options.clone())?;
        let output = match is_list {
            true => WatchOutput::List(WatchScreen::new(watch_options)),
            false => WatchOutput::Lines(StreamPrinter::new(watch_options)),
        };
        let end =
            self.seconds.and_then(|time| Instant::now().checked_add(Duration::from_secs(time)));
        let _silence = silence;
        let searches = context.follow_saved_searches(&self.query_args.query_text());
        let (deadline, max_changes) = (end, self.changes);
        WatchSession { views, view, options, searches, output, signals, deadline, max_changes }
            .run(context)
    }

    /// Returns the kind of the items of a source that `--in` names; `None`: it names none.
    fn kind_of_source(&self, context: &CommandContext) -> Result<Option<Kind>, CommandFailure> {
        let Some(name) = &self.query_args.collection else { return Ok(None) };
        let has_name = |sources: &[RegisteredSource]| sources.iter().any(|one| one.name == *name);
        if has_name(&list_sources(context)?) {
            return Ok(Some(Kind::Message));
        }
        Ok(has_name(&list_repositories(context)?).then_some(Kind::Commit))
    }

    /// Says that messages are not watched, if the query has a term for them and another one.
    fn print_mail_note(&self, context: &CommandContext) -> Result<(), CommandFailure> {
        let is_any_kind = self.query_args.kind.is_none() && !self.query_args.sexp;
        let line = self.query_args.query_text();
        if is_any_kind
            && MailQuery::may_match_mail_only(&line, &context.settings)
            && !list_sources(context)?.is_empty()
        {
            context.print_note(
                "messages are not watched; for them: larder watch --kind message QUERY",
            );
        }
        Ok(())
    }

    /// Returns an option that views over messages do not have.
    fn unsupported_message_option(&self) -> Option<&'static str> {
        let options = [
            (self.sort.is_some(), "--sort"),
            (!self.fields.is_empty(), "--fields"),
            (self.expand, "--expand"),
            (self.query_args.sexp, "--sexp"),
        ];
        options.into_iter().find(|(is_used, _)| *is_used).map(|(_, option)| option)
    }

    fn watch_options(
        &self,
        context: &CommandContext,
        is_list: bool,
    ) -> Result<WatchOptions, CommandFailure> {
        let watch_options = WatchOptions {
            query_args: self.query_args.clone(),
            sort: self
                .sort
                .as_deref()
                .filter(|name| *name != "none")
                .map(SortSpec::parse)
                .transpose()?,
            columns: parse_columns(&self.fields)?,
            expand: false,
        };
        // The columns would be empty in each line.
        if let Some(name) = self.fields.iter().find(|name| KindGroup::is_field_of_indexes(name)) {
            let message =
                format!("no item that is watched has the field {:?}", sanitize_line(name));
            return Err(CommandFailure::new(FailureKind::Usage, message).with_hint(
                "messages are watched without --fields: larder watch --kind message QUERY",
            ));
        }
        let has_window =
            required_time_range(&watch_options.to_search_request(&context.settings)?.query)
                .is_some();
        if self.expand && !has_window {
            return Err(no_time_range_failure());
        }
        let by_day =
            is_list && has_window && self.sort.is_none() && watch_options.columns.is_none();
        Ok(WatchOptions { expand: self.expand || by_day, ..watch_options })
    }
}

/// The events that a watch waits for besides time.
struct WakeSignals {
    wake_receiver: Receiver<()>,
    is_interrupted: Arc<AtomicBool>,
}

/// Called when the view has events.
type WakeCallback = Option<Arc<dyn Fn() + Send + Sync>>;

impl WakeSignals {
    fn new(modes: Option<Arc<TerminalModes>>) -> (WakeSignals, WakeCallback) {
        let (ring, heard) = sync_channel(1);
        let ended = Arc::new(AtomicBool::new(false));
        let (interrupted, ring_too) = (Arc::clone(&ended), ring.clone());
        crate::interrupt::on_terminate(move || {
            interrupted.store(true, Ordering::Relaxed);
            // The shutdown may take too long.
            modes.iter().for_each(|modes| modes.restore());
            send_wake(&ring_too);
        });
        (
            WakeSignals { wake_receiver: heard, is_interrupted: ended },
            Some(Arc::new(move || send_wake(&ring))),
        )
    }

    fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }
}

/// Sends a wake-up unless one is pending.
fn send_wake(ring: &SyncSender<()>) {
    let _full = ring.try_send(());
}

/// A running watch.
struct WatchSession {
    views: Views,
    view: View,
    /// The options of the view.
    options: ViewOptions,
    /// The saved searches of the query, if it uses any.
    searches: Option<SavedSearchFollower>,
    output: WatchOutput,
    signals: WakeSignals,
    deadline: Option<Instant>,
    max_changes: Option<usize>,
}

impl WatchSession {
    fn run(mut self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let code = self.print_until_done(context);
        if let WatchOutput::List(list) = &self.output {
            list.finish(context)?;
        }
        code
    }

    fn print_until_done(
        &mut self,
        context: &mut CommandContext,
    ) -> Result<CommandStatus, CommandFailure> {
        let (mut is_whole, mut changes) = (false, 0);
        loop {
            if self.follow_saved_searches(context)? {
                is_whole = false;
            }
            while let Some(tell) = self.view.try_next()? {
                match (&tell, is_whole) {
                    (ViewEvent::Added(items) | ViewEvent::Modified(items), true) => {
                        changes += items.len();
                    }
                    (ViewEvent::Removed(items), true) => changes += items.len(),
                    (ViewEvent::Complete(_), _) => is_whole = true,
                    (ViewEvent::Reset, _) => is_whole = false,
                    _ => {}
                }
                self.print_event(context, &tell)?;
                if self.signals.is_interrupted() {
                    return Ok(CommandStatus::Interrupted);
                }
                let is_enough = || self.max_changes.is_some_and(|most| changes >= most);
                if matches!(tell, ViewEvent::Complete(_)) && is_enough() {
                    self.flush_output(context)?;
                    return Ok(CommandStatus::Done);
                }
            }
            self.flush_output(context)?;
            if self.signals.is_interrupted() {
                return Ok(CommandStatus::Interrupted);
            }
            if self.is_finished() {
                return Ok(CommandStatus::Done);
            }
            let _woken_or_timed_out = self.signals.wake_receiver.recv_timeout(self.poll_timeout());
        }
    }

    fn print_event(
        &mut self,
        context: &mut CommandContext,
        event: &ViewEvent,
    ) -> Result<(), CommandFailure> {
        match &mut self.output {
            WatchOutput::List(list) => list.apply_event(event),
            WatchOutput::Lines(lines) => lines.print_event(context, &self.views, event)?,
        }
        Ok(())
    }

    /// Opens the view again if a saved search of the query was changed. Returns whether it was.
    fn follow_saved_searches(
        &mut self,
        context: &mut CommandContext,
    ) -> Result<bool, CommandFailure> {
        let Some(searches) = &mut self.searches else { return Ok(false) };
        let Some(searches) = searches.poll()? else { return Ok(false) };
        context.settings.saved_searches = Arc::new(searches);
        let query = match &self.output {
            WatchOutput::List(list) => list.watch_query.to_live_query(&context.settings),
            WatchOutput::Lines(lines) => lines.watch_query.to_live_query(&context.settings),
        };
        self.view = self.views.open_view(query, self.options.clone())?;
        self.print_event(context, &ViewEvent::Reset)?;
        Ok(true)
    }

    fn flush_output(&mut self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        match &mut self.output {
            WatchOutput::List(list) => list.draw(context, &self.views),
            WatchOutput::Lines(_) => Ok(context.out.flush()?),
        }
    }

    /// Returns whether the deadline has passed or the reader of the output has gone.
    fn is_finished(&self) -> bool {
        let is_late = self.deadline.is_some_and(|end| Instant::now() >= end);
        is_late || matches!(self.output, WatchOutput::Lines(_)) && OutputStream::is_reader_gone()
    }

    /// Returns the time until the next check.
    fn poll_timeout(&self) -> Duration {
        let usual = match &self.output {
            WatchOutput::List(list) => list.poll_timeout(),
            WatchOutput::Lines(_) => StreamPrinter::READER_CHECK_INTERVAL,
        };
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(usual, |left| left.min(usual))
    }
}
