//! Time zones: the few that events are drawn in, and files that repeat the same ones hundreds of times.
//!
//! The definitions are written as the programs that left them wrote them: EDS and libical with their prefix,
//! others with the bare name. Offsets are those since 2007, which is all that the drawn events need.

use super::card::Card;
use super::dates::Day;
use super::random::Random;

/// When summer time is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Summer {
    Never,
    /// From the last Sunday of March to that of October.
    Europe,
    /// From the second Sunday of March to the first of November.
    America,
}

/// A zone: hours east of Greenwich in winter, its summer, the names of both.
pub(super) struct Zone {
    /// As properties name it.
    pub(super) id: &'static str,
    location: &'static str,
    east: i64,
    summer: Summer,
    names: [&'static str; 2],
}

impl Zone {
    /// Minutes east of Greenwich on a day, for the hours at which people meet.
    pub(super) fn offset(&self, day: Day) -> i64 {
        let (year, ..) = day.date();
        let [from, to] = match self.summer {
            Summer::Never => return self.east * 60,
            Summer::Europe => [3, 10].map(|month| Day::weekday_of(year, month, 6, None)),
            Summer::America => {
                [(3, 2), (11, 1)].map(|(month, nth)| Day::weekday_of(year, month, 6, Some(nth)))
            }
        };
        (self.east + i64::from(from <= day && day < to)) * 60
    }

    /// Writes the definition under a name, which is its own or one with a prefix.
    pub(super) fn write(&self, id: &str, card: &mut Card<'_>) {
        let [winter, summer] = self.names;
        let (east, more) = (self.east, self.east + 1);
        card.put("BEGIN:VTIMEZONE").end();
        card.put("TZID:").put(id).end();
        card.put("X-LIC-LOCATION:").put(self.location).end();
        match self.summer {
            Summer::Never => {
                observance("STANDARD", winter, [east, east], "19700101T000000", "", card);
            }
            Summer::Europe => {
                let [march, october] = [(3, "T020000"), (10, "T030000")];
                yearly("DAYLIGHT", summer, [east, more], march, None, card);
                yearly("STANDARD", winter, [more, east], october, None, card);
            }
            Summer::America => {
                let [march, november] = [(3, "T020000"), (11, "T020000")];
                yearly("DAYLIGHT", summer, [east, more], march, Some(2), card);
                yearly("STANDARD", winter, [more, east], november, Some(1), card);
            }
        }
        card.put("END:VTIMEZONE").end();
    }
}

/// A half of the year that begins on a numbered Sunday, or the last one, of a month.
fn yearly(
    kind: &str,
    name: &str,
    offsets: [i64; 2],
    (month, time): (u64, &str),
    nth: Option<i64>,
    card: &mut Card<'_>,
) {
    let first = if nth.is_some() { 2007 } else { 1981 };
    let start = format!("{}{time}", Day::weekday_of(first, month, 6, nth));
    let rule = format!("RRULE:FREQ=YEARLY;BYMONTH={month};BYDAY={}SU", nth.unwrap_or(-1));
    observance(kind, name, offsets, &start, &rule, card);
}

fn observance(
    kind: &str,
    name: &str,
    offsets: [i64; 2],
    start: &str,
    rule: &str,
    card: &mut Card<'_>,
) {
    let [from, to] =
        offsets.map(|hours| format!("{}{:02}00", if hours < 0 { '-' } else { '+' }, hours.abs()));
    card.put("BEGIN:").put(kind).end();
    card.put("TZNAME:").put(name).end();
    card.put("TZOFFSETFROM:").put(&from).end();
    card.put("TZOFFSETTO:").put(&to).end();
    card.put("DTSTART:").put(start).end();
    if !rule.is_empty() {
        card.put(rule).end();
    }
    card.put("END:").put(kind).end();
}

/// The zones that a calendar begins with and its events are in.
pub(super) static ZONES: [Zone; 4] = [
    Zone {
        id: "Europe/Berlin",
        location: "Europe/Berlin",
        east: 1,
        summer: Summer::Europe,
        names: ["CET", "CEST"],
    },
    Zone {
        id: "/freeassociation.sourceforge.net/Europe/Berlin",
        location: "Europe/Berlin",
        east: 1,
        summer: Summer::Europe,
        names: ["CET", "CEST"],
    },
    Zone {
        id: "America/New_York",
        location: "America/New_York",
        east: -5,
        summer: Summer::America,
        names: ["EST", "EDT"],
    },
    Zone {
        id: "Asia/Tokyo",
        location: "Asia/Tokyo",
        east: 9,
        summer: Summer::Never,
        names: ["JST", "JST"],
    },
];

/// One of [`ZONES`], by how many events are in it.
pub(super) fn pick(random: &mut Random) -> &'static Zone {
    &ZONES[match random.below(100) {
        0..45 => 0,
        45..60 => 1,
        60..85 => 2,
        _ => 3,
    }]
}

/// What old programs put before the name of each zone.
const PREFIX: &str = "/softwarestudio.org/Olson_20011030_5/";
/// Of so many definitions ...
const COPIES: u64 = 538;
/// ... so many are the first of [`REPEATED`].
const SAME: u64 = 318;

/// The zones of a file of copies: the first is most of them.
static REPEATED: [Zone; 6] = [
    repeated("Africa/Algiers", 1, Summer::Never, ["CET", "CET"]),
    repeated("Europe/Berlin", 1, Summer::Europe, ["CET", "CEST"]),
    repeated("America/New_York", -5, Summer::America, ["EST", "EDT"]),
    repeated("Europe/London", 0, Summer::Europe, ["GMT", "BST"]),
    repeated("Asia/Tokyo", 9, Summer::Never, ["JST", "JST"]),
    repeated("Africa/Abidjan", 0, Summer::Never, ["GMT", "GMT"]),
];

const fn repeated(
    location: &'static str,
    east: i64,
    summer: Summer,
    names: [&'static str; 2],
) -> Zone {
    Zone { id: location, location, east, summer, names }
}

/// Definition `index` of a file of copies: its name, and what it says.
pub(super) fn copy(index: u64) -> (String, &'static Zone) {
    let before = |index: u64| u128::from(index) * u128::from(SAME) / u128::from(COPIES);
    let zone = match before(index) < before(index.saturating_add(1)) {
        true => &REPEATED[0],
        false => &REPEATED[1 + (index % (REPEATED.len() as u64 - 1)) as usize],
    };
    ([PREFIX, zone.location].concat(), zone)
}
