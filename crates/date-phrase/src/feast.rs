//! Days that have a name, and the same date in each year: "christmas".
//!
//! Few, as most are on other dates in other places. Titles have them as often, so they are weak, and read where a
//! phrase ends behind them alone: "until christmas", but not "until christmas party". Where no other date is said, one
//! beside a time is the date.

use super::clock::{clock, ends, part, two_clocks};
use super::date::{Span, next_date};
use super::reading::{Context, Word, after};
use super::vocabulary::WordMeaning;

/// The next one, the present day included.
pub(crate) fn feast(words: &[Word], context: &Context) -> Option<(usize, Span)> {
    const FEASTS: [(WordMeaning, u8, i64); 5] = [
        (WordMeaning::ChristmasEve, 12, 24),
        (WordMeaning::Christmas, 12, 25),
        (WordMeaning::DayAfterChristmas, 12, 26),
        (WordMeaning::NewYearsEve, 12, 31),
        (WordMeaning::NewYearsDay, 1, 1),
    ];
    let found = FEASTS.iter().filter_map(|feast| Some((context.term(words, feast.0)?, feast)));
    // "christmas eve" begins with "christmas".
    let (used, (_, month, day)) = found.max_by_key(|(used, _)| *used)?;
    let behind = after(words, used);
    let ended = words.get(used - 1).is_some_and(|word| word.stop)
        || ends(behind, context)
        || part(behind, context).is_some()
        || two_clocks(behind, context).is_some()
        || matches!(clock(behind, context), Ok(Some(_)));
    let day = next_date(*month, *day, context.base).filter(|_| ended)?;
    Some((used, Span::day(day).counted(context).weak()))
}
