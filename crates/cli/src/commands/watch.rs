use super::asked::Asked;
use super::expand::no_window;
use super::find::columns_named;
use super::item::Column;
use super::listed::List;
use super::told::Lines;
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::Out;
use larder_query::views::{Interest, Question, Tell, View, ViewOptions, Views, ViewsOptions};
use larder_query::{Find, Query, Settings, Sort, window_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Keep a question open, and see what changes in its answer
///
/// On a terminal it is a list that keeps itself up to date, whoever changes
/// something, and as time goes by; what is new is marked for a moment. What
/// happens in a stretch of time (when:) is listed day by day. Control-C ends it.
///
///   larder watch anna
///   larder watch when:today..+7d
///   larder watch is:overdue --kind task
///
/// Elsewhere, and with --format json, it is a line for each item that comes (+),
/// changes (~) or goes (-), beginning with those that are there:
///
///   larder watch when:today --expand --format json | program
///
/// QUERY is written as for `larder find`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Watch {
    #[command(flatten)]
    asked: Asked,
    /// Sort by a field, -FIELD backwards: the list, and what is there at the beginning
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// What to print of each
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    fields: Vec<String>,
    /// Tell of each item when it happens within when:; the list on a terminal does unless --sort or --fields is given
    #[arg(long, conflicts_with = "sort")]
    expand: bool,
    /// End when so many changes were told; 0: when what is there was
    #[arg(long, value_name = "N")]
    changes: Option<usize>,
    /// End after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// What is asked, and how it is to be told.
pub(super) struct How {
    pub(super) asked: Asked,
    pub(super) sort: Option<Sort>,
    pub(super) columns: Option<Vec<Column>>,
    pub(super) expand: bool,
}

impl How {
    /// What is asked, as it is understood now.
    pub(super) fn find(&self, settings: &Settings) -> Result<Find, Failure> {
        let query = self.asked.query(settings)?;
        let query = match (self.asked.kind, query) {
            (None, query) => query,
            (Some(kind), Query::All) => Query::Kind(kind),
            (Some(kind), query) => Query::And(vec![query, Query::Kind(kind)]),
        };
        let (collection, sort) = (self.asked.collection.clone(), self.sort);
        Ok(Find { query, collection, sort, ..Find::default() })
    }

    fn question(&self, settings: &Settings) -> Question {
        let mut question = self.asked.question(settings);
        if let Some(sort) = self.sort {
            question = question.sorted(sort);
        }
        if self.expand { question.with_occurrences() } else { question }
    }
}

/// Who tells it: a list on a terminal, or lines.
enum Teller {
    List(List),
    Lines(Lines),
}

impl Watch {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let is_list = context.format == Format::Text && Out::is_screen();
        let how = self.how(context, is_list)?;
        // One of an older version is migrated.
        drop(context.reader()?);
        let options = ViewsOptions {
            zones: Arc::clone(&context.settings.asker.zones),
            cache: context.cache,
            log: context.log.clone(),
            ..ViewsOptions::default()
        };
        let views = Views::open(&context.dir, options)?;
        let (signals, wake) = Signals::new();
        let interest = if is_list { Interest::Rows } else { Interest::Whole };
        let options =
            ViewOptions { client: "larder watch".into(), interest, wake, ..ViewOptions::default() };
        let view = views.view(how.question(&context.settings), options)?;
        let teller = match is_list {
            true => Teller::List(List::new(how)),
            false => Teller::Lines(Lines::new(how)),
        };
        let end =
            self.seconds.and_then(|time| Instant::now().checked_add(Duration::from_secs(time)));
        Watching { views, view, teller, signals, end, changes: self.changes }.run(context)
    }

    fn how(&self, context: &Context, is_list: bool) -> Result<How, Failure> {
        let how = How {
            asked: self.asked.clone(),
            sort: self
                .sort
                .as_deref()
                .filter(|name| *name != "none")
                .map(Sort::parse)
                .transpose()?,
            columns: columns_named(&self.fields)?,
            expand: false,
        };
        let has_window = window_of(&how.find(&context.settings)?.query).is_some();
        if self.expand && !has_window {
            return Err(no_window());
        }
        let by_day = is_list && has_window && self.sort.is_none() && how.columns.is_none();
        Ok(How { expand: self.expand || by_day, ..how })
    }
}

/// What a watch waits for besides time.
struct Signals {
    heard: Receiver<()>,
    ended: Arc<AtomicBool>,
}

/// Called when there is something to be told.
type Wake = Option<Arc<dyn Fn() + Send + Sync>>;

impl Signals {
    fn new() -> (Signals, Wake) {
        let (ring, heard) = sync_channel(1);
        let ended = Arc::new(AtomicBool::new(false));
        let (interrupted, ring_too) = (Arc::clone(&ended), ring.clone());
        crate::interrupt::ask_for_the_end(move || {
            interrupted.store(true, Ordering::Relaxed);
            rung(&ring_too);
        });
        (Signals { heard, ended }, Some(Arc::new(move || rung(&ring))))
    }

    fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// One that has not been heard yet is enough.
fn rung(ring: &SyncSender<()>) {
    let _full = ring.try_send(());
}

/// A watch that is going on.
struct Watching {
    views: Views,
    view: View,
    teller: Teller,
    signals: Signals,
    end: Option<Instant>,
    changes: Option<usize>,
}

impl Watching {
    fn run(mut self, context: &mut Context) -> Result<Code, Failure> {
        let code = self.tell_all(context);
        if let Teller::List(list) = &self.teller {
            list.end(context)?;
        }
        code
    }

    fn tell_all(&mut self, context: &mut Context) -> Result<Code, Failure> {
        let (mut is_whole, mut changes) = (false, 0);
        loop {
            while let Some(tell) = self.view.tell()? {
                match (&tell, is_whole) {
                    (Tell::Added(of) | Tell::Modified(of), true) => changes += of.len(),
                    (Tell::Removed(of), true) => changes += of.len(),
                    (Tell::Complete(_), _) => is_whole = true,
                    (Tell::Fresh, _) => is_whole = false,
                    _ => {}
                }
                match &mut self.teller {
                    Teller::List(list) => list.tell(&tell),
                    Teller::Lines(lines) => lines.tell(context, &self.views, &tell)?,
                }
                if self.signals.ended() {
                    return Ok(Code::Interrupted);
                }
                let is_enough = || self.changes.is_some_and(|most| changes >= most);
                if matches!(tell, Tell::Complete(_)) && is_enough() {
                    self.rest(context)?;
                    return Ok(Code::Done);
                }
            }
            self.rest(context)?;
            if self.signals.ended() {
                return Ok(Code::Interrupted);
            }
            if self.is_over() {
                return Ok(Code::Done);
            }
            let _rung_or_in_time = self.signals.heard.recv_timeout(self.patience());
        }
    }

    fn rest(&mut self, context: &mut Context) -> Result<(), Failure> {
        match &mut self.teller {
            Teller::List(list) => list.draw(context, &self.views),
            Teller::Lines(_) => Ok(context.out.flush()?),
        }
    }

    /// Has its time come, or has its reader left?
    fn is_over(&self) -> bool {
        let is_late = self.end.is_some_and(|end| Instant::now() >= end);
        is_late || matches!(self.teller, Teller::Lines(_)) && Out::is_abandoned()
    }

    /// For how long there is nothing to do unless something happens.
    fn patience(&self) -> Duration {
        let usual = match &self.teller {
            Teller::List(list) => list.patience(),
            Teller::Lines(_) => Lines::PATIENCE,
        };
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(usual, |left| left.min(usual))
    }
}
