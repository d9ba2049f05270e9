//! Views: what a client keeps in sight of a book.
//!
//! A view belongs to the client that opened it, and ends with it. It is silent until it is started; then it gives what there is, and
//! after each change of the book what came, changed and went of what it asks for, and the word that this was all. Its signals go to
//! its client alone.

use super::Options;
use super::bus::{Call, signal, without_nul};
use super::card::Cards;
use super::failure::Failure;
use super::interface::ADDRESS_BOOK_VIEW;
use super::service::{ROOT, Service};
use larder_query::views::{self, Question, Tell, ViewOptions, Views, ViewsOptions};
use larder_query::{ItemHead, Reader};
use larder_store::Seq;
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use zbus::Message;

/// The flag that what there is at the beginning is wanted.
const INITIAL: u32 = 1;
/// So many bytes of contacts are in one signal, and no fewer than one contact.
const BYTES: usize = 256 << 10;

/// An open view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) client: Arc<str>,
    /// The row of the book's collection.
    row: i64,
    question: Question,
    initial: bool,
    interest: Interest,
    /// The view on the store, while it is started.
    running: Option<views::View>,
    /// The client has a whole answer, and is told what becomes of it.
    whole: bool,
}

/// What a view was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// There was nothing.
    Nothing,
    /// A part of the news.
    Part,
    /// That this was all, up to a batch.
    Whole(Seq),
    /// That its answer comes anew.
    Anew,
}

/// Views that have something to tell, and what says so to whom waits for it.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    views: Arc<Mutex<BTreeSet<u64>>>,
    pub(super) bell: Arc<Notify>,
}

impl News {
    fn add(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).insert(view);
    }

    /// One of the views, which has to say next time whether there is more.
    fn take(&self) -> Option<u64> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    fn remove(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).remove(&view);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// What a client wants of each contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    Whole,
    /// No more than UID and REV.
    Short,
    /// UIDs, and no card.
    Uids,
}

impl Interest {
    /// As the fields that clients name.
    fn of(fields: &[String]) -> Interest {
        let short = |field: &String| {
            ["id", "uid", "rev"].iter().any(|name| field.eq_ignore_ascii_case(name))
        };
        if fields.iter().any(|field| field == "x-evolution-uids-only") {
            Interest::Uids
        } else if !fields.is_empty() && fields.iter().all(short) {
            Interest::Short
        } else {
            Interest::Whole
        }
    }
}

/// The path of a view.
pub(super) fn view_path(number: u64) -> String {
    format!("{ROOT}/AddressBookView/{}/{number}", std::process::id())
}

/// Opens the store for views, which are kept up to date by themselves.
pub(super) fn open_views(options: &Options) -> Result<Views, larder_query::Error> {
    let (clock, zones) = (options.clock, Arc::clone(&options.store.zones));
    let clock = Arc::new(move || Instant::clamped(clock().div_euclid(1000)));
    let (log, cache) = (options.log.clone(), options.answers);
    Views::open(&options.dir, ViewsOptions { zones, cache, clock, log, ..ViewsOptions::default() })
}

impl Service {
    /// Opens a view, and gives its path. It is silent until it is started.
    pub(super) fn open_view(&mut self, row: i64, question: Question, client: &str) -> String {
        self.opened += 1;
        let client = client.into();
        let (initial, interest) = (true, Interest::Whole);
        let view = View { client, row, question, initial, interest, running: None, whole: false };
        self.views.insert(self.opened, view);
        view_path(self.opened)
    }

    /// What a view is asked.
    pub(super) fn view(&mut self, number: u64, call: &Call<'_>) -> Result<Message, Failure> {
        let Some(view) = self.views.get_mut(&number) else {
            return Err(Failure::of_bus("UnknownObject", call.path()));
        };
        if *view.client != *call.sender() {
            return Err(Failure::of_bus("AccessDenied", "another client opened this view"));
        }
        match call.member() {
            "SetFlags" => view.initial = call.arguments::<u32>()? & INITIAL != 0,
            "SetFieldsOfInterest" => {
                view.interest = Interest::of(&call.arguments::<Vec<String>>()?);
            }
            "Start" => self.start_view(number)?,
            "Stop" => view.running = None,
            _ => drop(self.views.remove(&number)),
        }
        call.reply(&())
    }

    /// What there is follows behind the reply, as fast as it is taken.
    fn start_view(&mut self, number: u64) -> Result<(), Failure> {
        let Some(view) = self.views.get_mut(&number) else { return Ok(()) };
        let (news, bell) = (self.news.clone(), Arc::clone(&self.news.bell));
        let wake = Arc::new(move || {
            news.add(number);
            bell.notify_one();
        });
        let options = ViewOptions {
            client: Arc::clone(&view.client),
            interest: match view.interest {
                Interest::Whole => views::Interest::Whole,
                Interest::Short | Interest::Uids => views::Interest::Heads,
            },
            initial: view.initial,
            wake: Some(wake),
            ..ViewOptions::default()
        };
        view.running = Some(self.asked_views.view(view.question.clone(), options)?);
        view.whole = !view.initial;
        if view.initial {
            self.behind.extend(view.signal(number, "Progress", &(u32::MAX, "Loading…")));
            self.news.add(number);
        } else {
            self.behind.extend(view.signal(number, "Complete", &("", "")));
        }
        Ok(())
    }

    /// Tells what views of these books have to tell up to a batch, and that this was all, even where it was nothing. Other views wait,
    /// and so do those that are still being told their answer, which comes with its own word that it is whole: nobody who writes
    /// waits for an answer of somebody else.
    pub(super) fn notice_views(&mut self, books: &[i64], seq: Seq) {
        let of_books = |(number, view): (&u64, &View)| {
            (view.running.is_some() && view.whole && books.contains(&view.row)).then_some(*number)
        };
        let concerned: Vec<u64> = self.views.iter().filter_map(of_books).collect();
        for number in concerned {
            self.news.remove(number);
            self.tell_until(number, seq);
            self.remember(number);
        }
    }

    /// Tells what a view has to tell up to a batch, at least that this was all.
    fn tell_until(&mut self, number: u64, seq: Seq) {
        let mut silent = true;
        loop {
            match self.tell(number) {
                Piece::Nothing => break,
                Piece::Anew => return,
                Piece::Whole(at) if at >= seq => return,
                Piece::Part | Piece::Whole(_) => silent = false,
            }
        }
        if let Some(view) = self.views.get(&number).filter(|_| silent) {
            self.out.extend(view.signal(number, "Complete", &("", "")));
        }
    }

    /// Tells the next piece of what one view has to tell.
    pub(super) fn tell_more(&mut self) -> Vec<Message> {
        if let Some(number) = self.news.take() {
            self.tell(number);
            self.remember(number);
        }
        mem::take(&mut self.out)
    }

    /// A view that has more to tell is to be asked again.
    fn remember(&self, number: u64) {
        let running = self.views.get(&number).and_then(|view| view.running.as_ref());
        if running.is_some_and(views::View::has_news) {
            self.news.add(number);
        }
    }

    /// Tells a piece of what a view has to tell.
    fn tell(&mut self, number: u64) -> Piece {
        let Some(view) = self.views.get_mut(&number) else { return Piece::Nothing };
        let told = match view.running.as_mut().map(views::View::tell) {
            Some(Ok(Some(tell))) => {
                let piece = match tell {
                    Tell::Complete(seq) => Piece::Whole(seq),
                    Tell::Fresh => Piece::Anew,
                    _ => Piece::Part,
                };
                view.whole =
                    (view.whole || matches!(piece, Piece::Whole(_))) && piece != Piece::Anew;
                let told = view.signals(number, tell, &mut self.cards, &self.reader, &mut self.out);
                told.map(|()| piece)
            }
            Some(Ok(None)) | None => return Piece::Nothing,
            Some(Err(error)) => Err(error.into()),
        };
        // A view that cannot be told what happens is better stopped, with the reason, than silent.
        told.unwrap_or_else(|failure: Failure| {
            view.running = None;
            let body = (failure.name.as_str(), without_nul(&failure.text));
            self.out.extend(view.signal(number, "Complete", &body));
            Piece::Part
        })
    }
}

impl View {
    fn signal<T: serde::Serialize + zbus::DynamicType>(
        &self,
        number: u64,
        member: &'static str,
        body: &T,
    ) -> Option<Message> {
        let path = view_path(number);
        signal(&path, ADDRESS_BOOK_VIEW.name, member, Some(&self.client), body)
    }

    /// The signals that say a piece of news.
    fn signals(
        &self,
        number: u64,
        tell: Tell,
        cards: &mut Cards,
        reader: &Reader,
        out: &mut Vec<Message>,
    ) -> Result<(), Failure> {
        let (member, told) = match tell {
            // The protocol has no word for it. What the client knows comes again, and what is gone it keeps until it asks anew.
            Tell::Fresh => return Ok(()),
            Tell::Complete(_) => {
                out.extend(self.signal(number, "Complete", &("", "")));
                return Ok(());
            }
            Tell::Removed(gone) => {
                let uids: Vec<String> = gone.iter().map(|gone| without_nul(&gone.uid)).collect();
                out.extend(self.signal(number, "ObjectsRemoved", &uids));
                return Ok(());
            }
            Tell::Added(told) => ("ObjectsAdded", told),
            Tell::Modified(told) => ("ObjectsModified", told),
        };
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for item in told {
            let Some(head) = item.head else { continue };
            if bytes >= BYTES {
                out.extend(self.signal(number, member, &mem::take(&mut texts)));
                bytes = 0;
            }
            let before = texts.len();
            self.add(&mut texts, cards, reader, &head, item.bytes.as_deref().unwrap_or_default())?;
            bytes += texts.iter().skip(before).map(String::len).sum::<usize>();
        }
        out.extend(self.signal(number, member, &texts));
        Ok(())
    }

    /// What a client is told of a contact: a card and the UID, or the UID.
    fn add(
        &self,
        texts: &mut Vec<String>,
        cards: &mut Cards,
        reader: &Reader,
        head: &ItemHead,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        match self.interest {
            Interest::Whole => texts.push(cards.card(reader, head, bytes)?),
            Interest::Short => texts.push(cards.short(reader, head)?),
            Interest::Uids => {}
        }
        texts.push(without_nul(&head.uid));
        Ok(())
    }
}
