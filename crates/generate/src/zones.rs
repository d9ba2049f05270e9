//! Time zones: the four zones of generated events, and files that repeat the same definitions
//! hundreds of times.
//!
//! The names follow real programs: EDS and libical add a prefix, others do not. The offsets are
//! valid from 2007 on, which suffices for generated events.

use super::dates::DayNumber;
use super::line_writer::LineWriter;
use super::random::SplitMix64;

/// The rules of daylight saving time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DaylightSaving {
    Never,
    /// From the last Sunday of March to the last Sunday of October.
    Europe,
    /// From the second Sunday of March to the first Sunday of November.
    America,
}

/// A time zone: its standard offset, its daylight saving rule, and the names of both observances.
pub(super) struct FakeZone {
    /// Its TZID.
    pub(super) tzid: &'static str,
    location: &'static str,
    standard_offset_hours: i64,
    daylight_saving: DaylightSaving,
    names: [&'static str; 2],
}

impl FakeZone {
    /// Returns the UTC offset in minutes at daytime on this day.
    pub(super) fn utc_offset_minutes(&self, day: DayNumber) -> i64 {
        let (year, ..) = day.to_date();
        let [from, to] = match self.daylight_saving {
            DaylightSaving::Never => return self.standard_offset_hours * 60,
            DaylightSaving::Europe => {
                [3, 10].map(|month| DayNumber::from_nth_weekday(year, month, 6, None))
            }
            DaylightSaving::America => [(3, 2), (11, 1)]
                .map(|(month, nth)| DayNumber::from_nth_weekday(year, month, 6, Some(nth))),
        };
        (self.standard_offset_hours + i64::from(from <= day && day < to)) * 60
    }

    /// Writes the definition under this TZID: its own name or a name with a prefix.
    pub(super) fn write_definition(&self, id: &str, lines: &mut LineWriter<'_>) {
        let [winter, summer] = self.names;
        let (east, more) = (self.standard_offset_hours, self.standard_offset_hours + 1);
        lines.put("BEGIN:VTIMEZONE").end_line();
        lines.put("TZID:").put(id).end_line();
        lines.put("X-LIC-LOCATION:").put(self.location).end_line();
        match self.daylight_saving {
            DaylightSaving::Never => {
                write_observance("STANDARD", winter, [east, east], "19700101T000000", "", lines);
            }
            DaylightSaving::Europe => {
                let [march, october] = [(3, "T020000"), (10, "T030000")];
                write_yearly_observance("DAYLIGHT", summer, [east, more], march, None, lines);
                write_yearly_observance("STANDARD", winter, [more, east], october, None, lines);
            }
            DaylightSaving::America => {
                let [march, november] = [(3, "T020000"), (11, "T020000")];
                write_yearly_observance("DAYLIGHT", summer, [east, more], march, Some(2), lines);
                write_yearly_observance("STANDARD", winter, [more, east], november, Some(1), lines);
            }
        }
        lines.put("END:VTIMEZONE").end_line();
    }
}

/// Writes an observance that begins each year on the `nth` or last Sunday of a month.
fn write_yearly_observance(
    kind: &str,
    name: &str,
    offsets: [i64; 2],
    (month, time): (u64, &str),
    nth: Option<i64>,
    lines: &mut LineWriter<'_>,
) {
    let first = if nth.is_some() { 2007 } else { 1981 };
    let start = format!("{}{time}", DayNumber::from_nth_weekday(first, month, 6, nth));
    let rule = format!("RRULE:FREQ=YEARLY;BYMONTH={month};BYDAY={}SU", nth.unwrap_or(-1));
    write_observance(kind, name, offsets, &start, &rule, lines);
}

fn write_observance(
    kind: &str,
    name: &str,
    offsets: [i64; 2],
    start: &str,
    rule: &str,
    lines: &mut LineWriter<'_>,
) {
    let [from, to] =
        offsets.map(|hours| format!("{}{:02}00", if hours < 0 { '-' } else { '+' }, hours.abs()));
    lines.put("BEGIN:").put(kind).end_line();
    lines.put("TZNAME:").put(name).end_line();
    lines.put("TZOFFSETFROM:").put(&from).end_line();
    lines.put("TZOFFSETTO:").put(&to).end_line();
    lines.put("DTSTART:").put(start).end_line();
    if !rule.is_empty() {
        lines.put(rule).end_line();
    }
    lines.put("END:").put(kind).end_line();
}

/// The zones that a generated calendar defines and its events use.
pub(super) static ZONES: [FakeZone; 4] = [
    FakeZone {
        tzid: "Europe/Berlin",
        location: "Europe/Berlin",
        standard_offset_hours: 1,
        daylight_saving: DaylightSaving::Europe,
        names: ["CET", "CEST"],
    },
    FakeZone {
        tzid: "/freeassociation.sourceforge.net/Europe/Berlin",
        location: "Europe/Berlin",
        standard_offset_hours: 1,
        daylight_saving: DaylightSaving::Europe,
        names: ["CET", "CEST"],
    },
    FakeZone {
        tzid: "America/New_York",
        location: "America/New_York",
        standard_offset_hours: -5,
        daylight_saving: DaylightSaving::America,
        names: ["EST", "EDT"],
    },
    FakeZone {
        tzid: "Asia/Tokyo",
        location: "Asia/Tokyo",
        standard_offset_hours: 9,
        daylight_saving: DaylightSaving::Never,
        names: ["JST", "JST"],
    },
];

/// Chooses one of [`ZONES`] by weight.
pub(super) fn pick_zone(random: &mut SplitMix64) -> &'static FakeZone {
    &ZONES[match random.next_below(100) {
        0..45 => 0,
        45..60 => 1,
        60..85 => 2,
        _ => 3,
    }]
}

/// The prefix of TZIDs of old programs.
const TZID_PREFIX: &str = "/softwarestudio.org/Olson_20011030_5/";
/// The number of definitions in a cycle.
const DEFINITIONS_PER_CYCLE: u64 = 538;
/// The number of definitions in a cycle that are of the first repeated zone.
const MAIN_ZONE_DEFINITIONS_PER_CYCLE: u64 = 318;

/// The zones of a file with repeated definitions; most definitions are of the first zone.
static REPEATED_ZONES: [FakeZone; 6] = [
    repeated_zone("Africa/Algiers", 1, DaylightSaving::Never, ["CET", "CET"]),
    repeated_zone("Europe/Berlin", 1, DaylightSaving::Europe, ["CET", "CEST"]),
    repeated_zone("America/New_York", -5, DaylightSaving::America, ["EST", "EDT"]),
    repeated_zone("Europe/London", 0, DaylightSaving::Europe, ["GMT", "BST"]),
    repeated_zone("Asia/Tokyo", 9, DaylightSaving::Never, ["JST", "JST"]),
    repeated_zone("Africa/Abidjan", 0, DaylightSaving::Never, ["GMT", "GMT"]),
];

const fn repeated_zone(
    location: &'static str,
    east: i64,
    summer: DaylightSaving,
    names: [&'static str; 2],
) -> FakeZone {
    FakeZone {
        tzid: location,
        location,
        standard_offset_hours: east,
        daylight_saving: summer,
        names,
    }
}

/// Returns the TZID and the zone of definition `index` in a file with repeated definitions.
pub(super) fn nth_repeated_definition(index: u64) -> (String, &'static FakeZone) {
    let before = |index: u64| {
        u128::from(index) * u128::from(MAIN_ZONE_DEFINITIONS_PER_CYCLE)
            / u128::from(DEFINITIONS_PER_CYCLE)
    };
    let zone = match before(index) < before(index.saturating_add(1)) {
        true => &REPEATED_ZONES[0],
        false => &REPEATED_ZONES[1 + (index % (REPEATED_ZONES.len() as u64 - 1)) as usize],
    };
    ([TZID_PREFIX, zone.location].concat(), zone)
}
