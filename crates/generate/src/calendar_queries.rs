//! Questions to a generated calendar, as calendar programs ask them in a day's work.
//!
//! Each is drawn once and written in the two languages that understand it, so that two programs can
//! be asked the same. Apart from the calendars, of which it knows the years, the words and the
//! UIDs.

use super::dates::DayNumber;
use super::event::{POPULATION_DAYS, Population};
use super::event_texts;
use super::person_names::Culture;
use super::random::SplitMix64;
use std::io;

/// Added to the seed, so that questions do not share the streams of components.
const QUERY_SEED_OFFSET: u64 = 0x5155_4553;

/// Writes `n` questions to the calendar that `calendar` makes of `of` components (not none), `seed`
/// and `events`: on each line its kind, the search line (of kind `alarms` the window that `find
/// --alarms` takes), and the same as an expression of evolution-data-server, separated by tabs.
/// Days are those of UTC.
///
/// The kinds, in a hundred: `day` 25, `week` 20, `month` 20, `list` (thirty days from one on) 10,
/// `alarms` (of a day) 10, `words` 10, `uid` 5. The same arguments give the same bytes.
///
/// # Errors
/// Whatever `out` answers to a write.
pub fn write_queries(
    n: u64,
    of: u64,
    seed: u64,
    events: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let drawing = Population { cultures: Culture::load_all(), seed, events_only: events };
    for index in 0..n {
        let random = &mut SplitMix64::from_seed(seed.wrapping_add(QUERY_SEED_OFFSET), index);
        let [kind, line, sexp] = draw_query(&drawing, of, random);
        writeln!(out, "{kind}\t{line}\t{sexp}")?;
    }
    Ok(())
}

fn draw_query(drawing: &Population, of: u64, random: &mut SplitMix64) -> [String; 3] {
    let day = DayNumber::from_date(2017, 1, 1).add_days(random.next_below(POPULATION_DAYS) as i64);
    let (year, month, _) = day.to_date();
    let window = |kind: &str, first: DayNumber, last: DayNumber| {
        let sexp = time_range_sexp("occur-in-time-range?", first, last);
        [
            kind.to_owned(),
            format!("when:{}..{}", format_iso_date(first), format_iso_date(last.add_days(-1))),
            sexp,
        ]
    };
    match random.next_below(100) {
        0..25 => {
            let sexp = time_range_sexp("occur-in-time-range?", day, day.add_days(1));
            ["day".to_owned(), format!("when:{}", format_iso_date(day)), sexp]
        }
        25..45 => {
            let monday = day.add_days(-day.weekday());
            window("week", monday, monday.add_days(7))
        }
        45..65 => {
            let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            let sexp = time_range_sexp(
                "occur-in-time-range?",
                DayNumber::from_date(year, month, 1),
                DayNumber::from_date(next.0, next.1, 1),
            );
            ["month".to_owned(), format!("when:{year}-{month:02}"), sexp]
        }
        65..75 => window("list", day, day.add_days(30)),
        75..85 => {
            let sexp = time_range_sexp("has-alarms-in-range?", day, day.add_days(1));
            [
                "alarms".to_owned(),
                format!("{}..{}", format_iso_date(day), format_iso_date(day)),
                sexp,
            ]
        }
        85..95 => {
            let word = random.pick_word(event_texts::SEARCH_WORDS);
            ["words".to_owned(), word.to_owned(), format!("(contains? \"any\" \"{word}\")")]
        }
        _ => {
            let uid = drawing.nearest_uid(random.next_below(of));
            ["uid".to_owned(), format!("uid:={uid}"), format!("(uid? \"{uid}\")")]
        }
    }
}

fn time_range_sexp(function: &str, from: DayNumber, to: DayNumber) -> String {
    format!("({function} (make-time \"{from}T000000Z\") (make-time \"{to}T000000Z\"))")
}

fn format_iso_date(day: DayNumber) -> String {
    let (year, month, day) = day.to_date();
    format!("{year:04}-{month:02}-{day:02}")
}
