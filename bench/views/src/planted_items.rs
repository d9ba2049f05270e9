//! Planted items: a change of each concerns a known number of the open views.
//!
//! Each is in a collection of its own, at a time and with words that no other query has.

use crate::Result;
use crate::bench_queries::{
    format_iso_date, line_query, sexp_query, system_zones, time_range_sexp,
};
use larder_query::views::ViewQuery;
use larder_store::{
    BatchChange, CalendarContext, CollectionType, ItemPut, Kind, Operation, Precondition, Store,
    StoreOptions,
};
use larder_time::civil::Date;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The numbers of views that a change concerns.
pub(crate) const AFFECTED_VIEW_COUNTS: [usize; 5] = [0, 10, 20, 50, 100];
/// Words that no generated item has.
const UNIQUE_WORDS: [&str; 6] =
    ["xqjvzwqjxvz", "qvjwzxqvwjq", "wzjvxwqxzqv", "zvxjwqzxvwj", "jqvzjwxvqzx", "vwvjzqwxjqz"];

/// An item whose changes concern a known number of views.
#[derive(Clone)]
pub(crate) struct PlantedItem {
    pub(crate) kind: Kind,
    pub(crate) affected_views: usize,
    collection: Arc<str>,
    /// The day of the event, counted from 1970.
    day_number: i64,
}

/// Returns all planted items.
pub(crate) fn planted_items() -> Vec<PlantedItem> {
    let item = |kind: Kind, affected_views: usize, year: i32| PlantedItem {
        kind,
        affected_views,
        collection: format!("planted-{}-{affected_views}", kind.name()).into(),
        day_number: Date::new(year, 6, 13).map_or(0, Date::day_number),
    };
    let planted = AFFECTED_VIEW_COUNTS.into_iter().zip((2041..).step_by(3));
    planted
        .flat_map(|(affected_views, year)| {
            [item(Kind::Event, affected_views, year), item(Kind::Contact, affected_views, year)]
        })
        .collect()
}

impl PlantedItem {
    pub(crate) fn description(&self) -> String {
        format!("{} that concerns {} views", self.kind.name(), self.affected_views)
    }

    fn uid(&self) -> String {
        format!("{}@example.org", self.collection)
    }

    /// The words of the item; no trigram of them is in another item.
    fn words(&self) -> Vec<String> {
        let separator = SEPARATOR_LETTERS[self.affected_views % SEPARATOR_LETTERS.len()];
        UNIQUE_WORDS
            .iter()
            .map(|word| word.chars().flat_map(|letter| [letter, separator]).collect())
            .collect()
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
                let day = format_iso_date(self.day_number).replace('-', "");
                format!(
                    "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20220101T000000Z\r\nDTSTART:{day}T100000Z\r\nDTEND:{day}T113000Z\r\n\
                     SUMMARY:{a} {b} {c}\r\nLOCATION:{d}\r\nDESCRIPTION:{e} {f}\\, seen {count} times\r\nCLASS:PUBLIC\r\n\
                     SEQUENCE:{count}\r\nORGANIZER;CN={f}:mailto:{f}@example.org\r\nEND:VEVENT\r\n"
                )
            }
        }
    }

    /// A change of the item, with this count in its text.
    pub(crate) fn item_put(&self, store: &Store, count: usize) -> Result<BatchChange> {
        let bytes = self.bytes(count).into_bytes();
        let parsed = match self.kind {
            Kind::Contact => store
                .extractor_for_collection(&self.collection, CollectionType::AddressBook)?
                .parse_contact(bytes)
                .map_err(|_| "not a contact")?,
            _ => store
                .extractor_for_collection(&self.collection, CollectionType::Calendar)?
                .parse_component(bytes, &CalendarContext::default())
                .map_err(|_| "not an event")?,
        };
        Ok(BatchChange::Put(ItemPut {
            collection: Arc::clone(&self.collection),
            uid: self.uid(),
            derived_uid: false,
            parsed,
            precondition: Precondition::Any,
        }))
    }

    /// `affected_views` queries that this item answers, and no other item does.
    pub(crate) fn matching_queries(&self) -> Vec<ViewQuery> {
        let mut sources: Vec<Box<dyn Iterator<Item = ViewQuery> + '_>> = match self.kind {
            Kind::Contact => {
                vec![
                    Box::new(self.prefix_queries()),
                    Box::new(self.completion_queries()),
                    Box::new(self.exact_queries()),
                ]
            }
            _ => vec![
                Box::new(self.time_range_queries()),
                Box::new(self.prefix_queries()),
                Box::new(self.exact_queries()),
            ],
        };
        let mut all = Vec::with_capacity(self.affected_views);
        while all.len() < self.affected_views && !sources.is_empty() {
            sources.retain_mut(|source| {
                let next = (all.len() < self.affected_views).then(|| source.next()).flatten();
                let has_more = next.is_some();
                all.extend(next);
                has_more
            });
        }
        all
    }

    /// Queries for time ranges that contain the event.
    fn time_range_queries(&self) -> impl Iterator<Item = ViewQuery> + '_ {
        (0..100).map(|n| {
            let (from, to) = (self.day_number - n % 40, self.day_number + 1 + n / 2);
            match n % 3 {
                0 => line_query(&format!(
                    "when:{}..{}",
                    format_iso_date(from),
                    format_iso_date(to - 1)
                ))
                .with_kind(Kind::Event),
                1 => sexp_query(&time_range_sexp(from, to, 0)).with_collection(&self.collection),
                _ => sexp_query(&time_range_sexp(from, to, 2)),
            }
        })
    }

    /// Queries for the beginnings of the words, as a person types them.
    fn prefix_queries(&self) -> impl Iterator<Item = ViewQuery> + '_ {
        (4..10).flat_map(move |letters| {
            let prefix = move |word: String| word.chars().take(letters).collect::<String>();
            self.words()
                .into_iter()
                .take(3)
                .map(move |word| line_query(&prefix(word)).with_kind(self.kind))
        })
    }

    /// Queries of a program that completes addresses.
    fn completion_queries(&self) -> impl Iterator<Item = ViewQuery> + '_ {
        let words: Vec<String> = self.words().into_iter().take(3).collect();
        (4..14).flat_map(move |letters| {
            let queries = |word: &String| {
                let text: String = word.chars().take(letters).collect();
                let begins_with = |field: &str| format!("(beginswith \"{field}\" \"{text}\")");
                [
                    sexp_query(&format!(
                        "(or {} {})",
                        begins_with("full_name"),
                        begins_with("email")
                    ))
                    .with_kind(Kind::Contact),
                    sexp_query(&begins_with("email")),
                    sexp_query(&format!(
                        "(or {} {} {})",
                        begins_with("full_name"),
                        begins_with("email"),
                        begins_with("nickname")
                    )),
                ]
            };
            words.iter().flat_map(queries).collect::<Vec<_>>()
        })
    }

    /// Queries for the UID, the address and the collection.
    fn exact_queries(&self) -> impl Iterator<Item = ViewQuery> + '_ {
        let uid = line_query(&format!("uid:={}", self.uid()));
        let mut all = vec![
            uid.clone(),
            line_query("").with_collection(&self.collection),
            uid.with_kind(self.kind),
        ];
        let words = self.words();
        if self.kind == Kind::Contact {
            let addresses = words.iter().zip(words.iter().skip(2)).take(2);
            all.extend(
                addresses.map(|(name, host)| line_query(&format!("email:={name}@{host}.qq"))),
            );
        } else {
            let contains = |word: &String| sexp_query(&format!("(contains? \"any\" \"{word}\")"));
            all.extend(words.iter().take(5).map(contains));
        }
        all.into_iter()
    }
}

/// The letters by which the words of different items differ.
const SEPARATOR_LETTERS: [char; 7] = ['k', 'g', 'p', 'b', 'f', 'h', 'm'];

/// Opens the store for writing, and stores all planted items.
pub(crate) fn open_planted_store(path: &Path) -> Result<Store> {
    let mut store =
        Store::open(path, &StoreOptions { zones: system_zones(), ..StoreOptions::default() })?;
    for planted in planted_items() {
        let change = planted.item_put(&store, 0)?;
        apply_change(&mut store, change)?;
    }
    Ok(store)
}

/// Applies a change as an operation of its own. Returns when that began and when it ended.
pub(crate) fn apply_change(store: &mut Store, change: BatchChange) -> Result<(Instant, Instant)> {
    let mut operation = Operation::new("change", "", 0);
    let began = Instant::now();
    store.apply(&mut operation, vec![change])?;
    Ok((began, Instant::now()))
}
