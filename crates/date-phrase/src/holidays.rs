//! Holidays with a fixed date: "christmas".
//!
//! Only a few, because most holidays have different dates in different countries. Titles contain
//! the names of holidays as often as dates do, so a holiday matches only at the end of a phrase:
//! "until christmas", but not "until christmas party". In a sentence without another date, a
//! holiday next to a time is the date.

use crate::calendar_span::{CalendarSpan, next_yearly_date};
use crate::context::PhraseContext;
use crate::time_of_day::{is_phrase_end, match_part_of_day, match_time, match_time_range};
use crate::tokens::{PhraseToken, skip_tokens};
use crate::vocabulary::WordMeaning;

/// Matches a holiday: the next one, the current day included.
pub(crate) fn match_holiday(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    const FIXED_HOLIDAYS: [(WordMeaning, u8, i64); 5] = [
        (WordMeaning::ChristmasEve, 12, 24),
        (WordMeaning::Christmas, 12, 25),
        (WordMeaning::DayAfterChristmas, 12, 26),
        (WordMeaning::NewYearsEve, 12, 31),
        (WordMeaning::NewYearsDay, 1, 1),
    ];
    let found = FIXED_HOLIDAYS
        .iter()
        .filter_map(|feast| Some((context.match_meaning(words, feast.0)?, feast)));
    // "christmas eve" begins with "christmas", so the longest match counts.
    let (used, (_, month, day)) = found.max_by_key(|(used, _)| *used)?;
    let following = skip_tokens(words, used);
    let ended = words.get(used - 1).is_some_and(|word| word.has_stop)
        || is_phrase_end(following, context)
        || match_part_of_day(following, context).is_some()
        || match_time_range(following, context).is_some()
        || matches!(match_time(following, context), Ok(Some(_)));
    let day = next_yearly_date(*month, *day, context.base).filter(|_| ended)?;
    Some((used, CalendarSpan::from_day(day).relative_unless_fixed(context).into_weak()))
}
