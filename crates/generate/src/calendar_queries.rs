//! Queries for a generated calendar, such as calendar programs run during a day.
//!
//! Each query is written in two syntaxes, so that two programs can run the same query. The queries
//! use the years, words and UIDs of the calendar.

use super::dates::DayNumber;
use super::event::{POPULATION_DAYS, Population};
use super::event_texts;
use super::person_names::Culture;
use super::random::SplitMix64;
use std::io;

/// Added to the seed, so that queries do not share the pseudo-random streams of components.
const QUERY_SEED_OFFSET: u64 = 0x5155_4553;

/// Writes `n` queries for the calendar of [`write_calendar`](super::write_calendar) with
/// `component_count` components (at least one), `seed` and `events`. Each line has the kind, the
/// search line (for `alarms` the range of `find --alarms`), and the S-expression of
/// evolution-data-server, separated by tabs. Days are in UTC.
///
/// The kinds in percent: `day` 25, `week` 20, `month` 20, `list` (thirty days from any day) 10,
/// `alarms` (of a day) 10, `words` 10, `uid` 5. Equal arguments give equal bytes.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_queries(
    n: u64,
    component_count: u64,
    seed: u64,
    events: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let population = Population { cultures: Culture::load_all(), seed, events_only: events };
    for index in 0..n {
        let random = &mut SplitMix64::from_seed(seed.wrapping_add(QUERY_SEED_OFFSET), index);
        let [kind, line, sexp] = draw_query(&population, component_count, random);
        writeln!(out, "{kind}\t{line}\t{sexp}")?;
    }
    Ok(())
}

fn draw_query(
    population: &Population,
    component_count: u64,
    random: &mut SplitMix64,
) -> [String; 3] {
    let day = DayNumber::from_date(2017, 1, 1).add_days(random.next_below(POPULATION_DAYS) as i64);
    let (year, month, _) = day.to_date();
    let range_query = |kind: &str, first: DayNumber, last: DayNumber| {
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
            range_query("week", monday, monday.add_days(7))
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
        65..75 => range_query("list", day, day.add_days(30)),
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
            let uid = population.nearest_uid(random.next_below(component_count));
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
