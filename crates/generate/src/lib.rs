//! Realistic test data of any size, made from a seed.
//!
//! The data resembles the data of real programs; hard cases are in the samples and the corpora. The
//! generators do not use Larder's parsers, because the data serves to measure them. Each generator
//! is a pure function of its arguments.
//!
//! | module | purpose |
//! |---|---|
//! | `calendar`, `zones` | calendars and time zone definitions |
//! | `event`, `event_texts`, `dates` | the values of events, tasks and memos; their texts; their days |
//! | `contact`, `contact_texts`, `person_names`, `countries` | the values of contacts; their texts, names and countries |
//! | `calendar_queries` | queries that match a generated calendar |
//! | `vcard_writer`, `ical_writer`, `line_writer` | vCard and iCalendar in the style of real programs |
//! | `random` | the pseudo-random numbers |
//!
//! # The mix of [`write_contacts`]
//!
//! | property | share |
//! |---|---|
//! | version | 2.1: 20 %, 3.0: 50 %, 4.0: 30 % |
//! | line endings | CRLF; an eighth of the 3.0 and 4.0 cards have LF; a card never mixes them |
//! | names | 19 cultures by weight: Latin letters plain and with accents (German, French, Spanish, Polish, Czech, Nordic, Turkish, Vietnamese), Greek, Cyrillic (Russian, Ukrainian), Arabic, Hebrew, Devanagari, Thai, Chinese, Japanese, Korean; common names occur more often |
//! | second given name | a fifth of the contacts of cultures that have them |
//! | phone numbers | 1: 50 %, 2: 30 %, 3: 20 %; international and national forms of 18 countries |
//! | e-mail addresses | 1: 55 %, 2: 30 %, 3: 15 %; all in domains reserved by RFC 2606 |
//! | postal addresses | 1: 75 %, 2: 25 %; the first at home, the second at work |
//! | organisation | 60 %; half of these with a department, two thirds with a title |
//! | nickname, categories | 15 %, 35 % (3.0 and 4.0 only) |
//! | birthday, note, web page | 40 %, 50 %, 30 % |
//! | photo | 2 %: 2 to 12 kB of random bytes between the first and last bytes of a JPEG file |
//! | groups (`item1.`) | a third of the 3.0 cards, with labels |
//! | extensions (`X-`) | about half of the cards |
//! | UID | all 3.0 and 4.0 cards, three quarters of the 2.1 cards; in the formats of different programs |
//! | REV | all cards |
//!
//! A card is about 700 bytes long without its photo. Text is UTF-8. In 2.1, a value that is not
//! plain ASCII or is too long for its line is quoted-printable with soft line breaks; in 3.0 and
//! 4.0, lines are folded at 75 octets, never inside a character (RFC 6350 section 3.2).
//!
//! # The mix of [`write_calendar`]
//!
//! | property | share |
//! |---|---|
//! | kinds | VEVENT 92 %, VTODO 6 %, VJOURNAL 2 %; or VEVENT alone |
//! | recurring | 20 %; of these, 40 % are weekly (a third of them on two days), 10 % fortnightly, 8 % Monday to Friday, 12 % daily, 10 % monthly by day, 12 % monthly by numbered weekday, 8 % yearly (birthdays) |
//! | end of the series | 10 % (of the yearly series, half) have none; the others have COUNT or UNTIL with at least three occurrences: two weeks to a year, median about ten weeks; yearly series 4 to 12 years |
//! | EXDATE | one to three in 15 % of the recurring items |
//! | overrides | 3 %, each shortly after its master: most are moved by hours or days, a tenth by months |
//! | all-day items | 15 % (and most VJOURNALs) |
//! | longer than a day | 4 % of the items that do not recur, up to two weeks |
//! | time zones of items with times | Europe/Berlin under two names, America/New_York, Asia/Tokyo, UTC 17 %, floating 3 %; each definition occurs once, at the beginning |
//! | dates | the first days are spread evenly over 2017 to 2026 |
//! | alarm | 30 %: before the start, a few at the end or absolute, repeating, acknowledged |
//! | organizer and one to three attendees | 25 % |
//! | location, description, categories | 50 %, 40 %, 25 % |
//! | extensions (`X-`) | three quarters |
//! | UID, DTSTAMP, CREATED, LAST-MODIFIED, SEQUENCE, SUMMARY, CLASS | all |
//!
//! A component is about 600 bytes long, ordered and folded as by EDS, with CRLF. Subjects are in
//! twenty languages.

mod calendar;
mod calendar_queries;
mod contact;
mod contact_texts;
mod countries;
pub mod dates;
mod event;
mod event_texts;
mod ical_writer;
mod line_writer;
mod person_names;
mod random;
mod vcard_writer;
mod zones;

use std::io;

pub use self::calendar::{write_calendar, write_zone_definitions};
pub use self::calendar_queries::write_queries;

use self::contact::FakeContact;
use self::line_writer::LineWriter;
use self::person_names::Culture;
use self::random::SplitMix64;

/// Returns year, month and day of a day counted from 1970-01-01.
pub fn civil_date(day: i64) -> (i64, u64, u64) {
    dates::DayNumber(day).to_date()
}

/// The number of bytes that are buffered before a write.
const FLUSH_BYTES: usize = 64 * 1024;

/// Writes `n` vCards in the mix that the documentation of this crate describes.
///
/// Equal `n` and `seed` give equal bytes. Contact `i` does not depend on `n`, so a smaller book is
/// a prefix of a larger one with the same seed. Memory does not grow with `n`. Different seeds give
/// different contacts, some of which share names.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_contacts(n: u64, seed: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let cultures = Culture::load_all();
    let mut book = Vec::with_capacity(FLUSH_BYTES * 2);
    let mut line = Vec::new();
    for index in 0..n {
        let contact = FakeContact::draw(&cultures, &mut SplitMix64::from_seed(seed, index));
        vcard_writer::write_contact(
            &contact,
            &mut LineWriter::new(contact.line_ending, &mut line, &mut book),
        );
        if book.len() >= FLUSH_BYTES {
            out.write_all(&book)?;
            book.clear();
        }
    }
    out.write_all(&book)
}
