//! Items of which it is known how many of the open views a change of theirs concerns: each in a collection of its own, with words and
//! at a time that nobody else asks for.

use crate::Outcome;
use crate::questions::{iso, line, range, sexp, zones};
use larder_query::views::Question;
use larder_store::{Change, Expect, Family, Frame, Kind, Operation, Options, Put, Store};
use larder_time::civil::Date;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// So many views a change concerns.
pub(crate) const CONCERNED: [usize; 5] = [0, 10, 20, 50, 100];
/// Nobody is called so.
const WORDS: [&str; 6] =
    ["xqjvzwqjxvz", "qvjwzxqvwjq", "wzjvxwqxzqv", "zvxjwqzxvwj", "jqvzjwxvqzx", "vwvjzqwxjqz"];

#[derive(Clone)]
pub(crate) struct Planted {
    pub(crate) kind: Kind,
    pub(crate) concerned: usize,
    collection: Arc<str>,
    /// The day on which it happens, since 1970.
    day: i64,
}

/// All of them.
pub(crate) fn all() -> Vec<Planted> {
    let of = |kind: Kind, concerned: usize, year: i32| Planted {
        kind,
        concerned,
        collection: format!("planted-{}-{concerned}", kind.name()).into(),
        day: Date::new(year, 6, 13).map_or(0, Date::day_number),
    };
    let planted = CONCERNED.into_iter().zip((2041..).step_by(3));
    planted
        .flat_map(|(concerned, year)| {
            [of(Kind::Event, concerned, year), of(Kind::Contact, concerned, year)]
        })
        .collect()
}

impl Planted {
    pub(crate) fn name(&self) -> String {
        format!("{} that {} ask for", self.kind.name(), self.concerned)
    }

    fn uid(&self) -> String {
        format!("{}@example.org", self.collection)
    }

    /// Its words, of which no part is found elsewhere.
    fn words(&self) -> Vec<String> {
        let own = APART[self.concerned % APART.len()];
        WORDS.iter().map(|word| word.chars().flat_map(|letter| [letter, own]).collect()).collect()
    }

    fn bytes(&self, count: usize) -> String {
        let (uid, words) = (self.uid(), self.words());
        let [a, b, c, d, e, f] =
            [0, 1, 2, 3, 4, 5].map(|n| words.get(n).map_or("", String::as_str));
        match self.kind {
            Kind::Contact => format!(
                "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{a} {b}\r\nN:{b};{a};;;\r\nNICKNAME:{c}\r\nORG:{d};{e}\r\n\
                 TITLE:{f}\r\nEMAIL;TYPE=WORK:{a}@{c}.qq\r\nEMAIL;TYPE=HOME:{b}@{d}.qq\r\nEMAIL:{c}@{d}.qq\r\n\
                 TEL;TYPE=CELL:+43 664 0000000\r\nNOTE:seen {count} times\r\nEND:VCARD\r\n"
            ),
            _ => {
                let day = iso(self.day).replace('-', "");
                format!(
                    "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20220101T000000Z\r\nDTSTART:{day}T100000Z\r\nDTEND:{day}T113000Z\r\n\
                     SUMMARY:{a} {b} {c}\r\nLOCATION:{d}\r\nDESCRIPTION:{e} {f}\\, seen {count} times\r\nCLASS:PUBLIC\r\n\
                     SEQUENCE:{count}\r\nORGANIZER;CN={f}:mailto:{f}@example.org\r\nEND:VEVENT\r\n"
                )
            }
        }
    }

    /// A change of it: how often it was seen.
    pub(crate) fn change(&self, store: &Store, count: usize) -> Outcome<Change> {
        let bytes = self.bytes(count).into_bytes();
        let prepared = match self.kind {
            Kind::Contact => {
                store
                    .deriver_for(&self.collection, Family::Contacts)?
                    .contact(bytes)
                    .map_err(|_| "not a contact")?
                    .0
            }
            _ => {
                store
                    .deriver_for(&self.collection, Family::Calendar)?
                    .component(bytes, &Frame::default())
                    .map_err(|_| "not an event")?
                    .0
            }
        };
        let (collection, uid) = (Arc::clone(&self.collection), self.uid());
        let (derived_uid, expect) = (false, Expect::Anything);
        Ok(Change::Put(Put { collection, uid, derived_uid, prepared, expect }))
    }

    /// So many questions that it answers, and nothing else does.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let mut sources: Vec<Box<dyn Iterator<Item = Question> + '_>> = match self.kind {
            Kind::Contact => {
                vec![Box::new(self.typed()), Box::new(self.completed()), Box::new(self.named())]
            }
            _ => vec![Box::new(self.windows()), Box::new(self.typed()), Box::new(self.named())],
        };
        let mut all = Vec::with_capacity(self.concerned);
        while all.len() < self.concerned && !sources.is_empty() {
            sources.retain_mut(|source| {
                let next = (all.len() < self.concerned).then(|| source.next()).flatten();
                let more = next.is_some();
                all.extend(next);
                more
            });
        }
        all
    }

    /// Days, weeks, months and whatever else has it in it.
    fn windows(&self) -> impl Iterator<Item = Question> + '_ {
        (0..100).map(|n| {
            let (from, to) = (self.day - n % 40, self.day + 1 + n / 2);
            match n % 3 {
                0 => line(&format!("when:{}..{}", iso(from), iso(to - 1))).of_kind(Kind::Event),
                1 => sexp(&range(from, to, 0)).within(&self.collection),
                _ => sexp(&range(from, to, 2)),
            }
        })
    }

    /// Its words as they are typed.
    fn typed(&self) -> impl Iterator<Item = Question> + '_ {
        (4..10).flat_map(move |letters| {
            let begun = move |word: String| word.chars().take(letters).collect::<String>();
            self.words().into_iter().take(3).map(move |word| line(&begun(word)).of_kind(self.kind))
        })
    }

    /// What completes addresses asks so.
    fn completed(&self) -> impl Iterator<Item = Question> + '_ {
        let words: Vec<String> = self.words().into_iter().take(3).collect();
        (4..14).flat_map(move |letters| {
            let asked = |word: &String| {
                let text: String = word.chars().take(letters).collect();
                let each = |field: &str| format!("(beginswith \"{field}\" \"{text}\")");
                [
                    sexp(&format!("(or {} {})", each("full_name"), each("email")))
                        .of_kind(Kind::Contact),
                    sexp(&each("email")),
                    sexp(&format!(
                        "(or {} {} {})",
                        each("full_name"),
                        each("email"),
                        each("nickname")
                    )),
                ]
            };
            words.iter().flat_map(asked).collect::<Vec<_>>()
        })
    }

    /// By its UID, its address, its collection.
    fn named(&self) -> impl Iterator<Item = Question> + '_ {
        let uid = line(&format!("uid:={}", self.uid()));
        let mut all = vec![uid.clone(), line("").within(&self.collection), uid.of_kind(self.kind)];
        let words = self.words();
        if self.kind == Kind::Contact {
            let addresses = words.iter().zip(words.iter().skip(2)).take(2);
            all.extend(addresses.map(|(name, host)| line(&format!("email:={name}@{host}.qq"))));
        } else {
            let contains = |word: &String| sexp(&format!("(contains? \"any\" \"{word}\")"));
            all.extend(words.iter().take(5).map(contains));
        }
        all.into_iter()
    }
}

/// Letters that keep the words of one apart from those of another.
const APART: [char; 7] = ['k', 'g', 'p', 'b', 'f', 'h', 'm'];

/// Opens the store for changes, with all of these in it.
pub(crate) fn store(path: &Path) -> Outcome<Store> {
    let mut store = Store::open(path, &Options { zones: zones(), ..Options::default() })?;
    for planted in all() {
        let change = planted.change(&store, 0)?;
        apply(&mut store, change)?;
    }
    Ok(store)
}

/// Writes a change as a command of its own, and tells when it began to and when it was done.
pub(crate) fn apply(store: &mut Store, change: Change) -> Outcome<(Instant, Instant)> {
    let mut operation = Operation::new("change", "", 0);
    let began = Instant::now();
    store.apply(&mut operation, vec![change])?;
    Ok((began, Instant::now()))
}
