//! Questions to a generated calendar, as calendar programs ask them in a day's work.
//!
//! Each is drawn once and written in the two languages that understand it, so that two programs can be asked the same.
//! Apart from the calendars, of which it knows the years, the words and the UIDs.

use super::dates::Day;
use super::event::{DAYS, Drawing};
use super::names::Culture;
use super::random::Random;
use super::subjects;
use std::io;

/// Added to the seed, so that questions do not share the streams of components.
const APART: u64 = 0x5155_4553;

/// Writes `n` questions to the calendar that `calendar` makes of `of` components (not none), `seed` and
/// `events`: on each line its kind, the search line (of kind `alarms` the window that `find --alarms` takes), and
/// the same as an expression of evolution-data-server, separated by tabs. Days are those of UTC.
///
/// The kinds, in a hundred: `day` 25, `week` 20, `month` 20, `list` (thirty days from one on) 10, `alarms` (of a
/// day) 10, `words` 10, `uid` 5. The same arguments give the same bytes.
///
/// # Errors
/// Whatever `out` answers to a write.
pub fn queries(
    n: u64,
    of: u64,
    seed: u64,
    events: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let drawing = Drawing { cultures: Culture::all(), seed, events };
    for index in 0..n {
        let random = &mut Random::of(seed.wrapping_add(APART), index);
        let [kind, line, sexp] = draw(&drawing, of, random);
        writeln!(out, "{kind}\t{line}\t{sexp}")?;
    }
    Ok(())
}

fn draw(drawing: &Drawing, of: u64, random: &mut Random) -> [String; 3] {
    let day = Day::of(2017, 1, 1).plus(random.below(DAYS) as i64);
    let (year, month, _) = day.date();
    let window = |kind: &str, first: Day, last: Day| {
        let sexp = range("occur-in-time-range?", first, last);
        [kind.to_owned(), format!("when:{}..{}", iso(first), iso(last.plus(-1))), sexp]
    };
    match random.below(100) {
        0..25 => {
            let sexp = range("occur-in-time-range?", day, day.plus(1));
            ["day".to_owned(), format!("when:{}", iso(day)), sexp]
        }
        25..45 => {
            let monday = day.plus(-day.weekday());
            window("week", monday, monday.plus(7))
        }
        45..65 => {
            let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            let sexp =
                range("occur-in-time-range?", Day::of(year, month, 1), Day::of(next.0, next.1, 1));
            ["month".to_owned(), format!("when:{year}-{month:02}"), sexp]
        }
        65..75 => window("list", day, day.plus(30)),
        75..85 => {
            let sexp = range("has-alarms-in-range?", day, day.plus(1));
            ["alarms".to_owned(), format!("{}..{}", iso(day), iso(day)), sexp]
        }
        85..95 => {
            let word = random.word(subjects::WORDS);
            ["words".to_owned(), word.to_owned(), format!("(contains? \"any\" \"{word}\")")]
        }
        _ => {
            let uid = drawing.uid(random.below(of));
            ["uid".to_owned(), format!("uid:={uid}"), format!("(uid? \"{uid}\")")]
        }
    }
}

fn range(function: &str, from: Day, to: Day) -> String {
    format!("({function} (make-time \"{from}T000000Z\") (make-time \"{to}T000000Z\"))")
}

fn iso(day: Day) -> String {
    let (year, month, day) = day.date();
    format!("{year:04}-{month:02}-{day:02}")
}
