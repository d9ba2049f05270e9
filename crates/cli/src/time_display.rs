//! Times of items as text: `Fri 6 Mar 2026, 12:30-13:30 (1 hour), Europe/Prague`.

use larder_present::description;
use larder_present::local_time::{describe_due, describe_span, format_clock};
use larder_query::UserLocale;
use larder_query::local_time::LocalTimeSpan;
use larder_store::Kind;
use larder_time::civil::DAY_SECONDS;
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::zone::Zone;

/// From a time of winter to one of summer.
const HALF_YEAR_SECONDS: i64 = 182 * DAY_SECONDS;

/// Formats start and end in the item's zone, and in the user's zone if that differs. Returns `None`
/// without a time.
pub(crate) fn format_times(
    kind: Kind,
    start: Option<&CalendarDateTime>,
    end: Option<&CalendarDateTime>,
    user_locale: &UserLocale,
) -> Option<String> {
    let language = &user_locale.language;
    let due = end.filter(|_| kind.has_due_time());
    let first = start.or(end)?;
    let mut text = match (start, due) {
        (Some(start), None) => {
            describe_span(&LocalTimeSpan::from_start_and_end(start, end), language)
        }
        (start, due) => {
            let begins = start
                .filter(|start| due != Some(start))
                .map(|start| LocalTimeSpan::from_start_and_end(start, None));
            let begins = begins.map(|when| format!("{}, ", describe_due(&when, language)));
            // In the zone of the start, which is printed after it.
            let timed = start.filter(|start| !start.is_date);
            let until = |due| {
                timed.map_or(LocalTimeSpan::from_start_and_end(due, None), |at| {
                    LocalTimeSpan::from_start_and_end(at, Some(due))
                })
            };
            let due = due.map(|due| format!("due {}", describe_due(&until(due), language)));
            format!("{}{}", begins.unwrap_or_default(), due.unwrap_or_default())
        }
    };
    if !first.is_date {
        text.push_str(&format!(", {}", zone_display_name(first)));
    }
    if let Some(clock) = skipped_clock_time(first) {
        text.push_str(&format!("; {clock} does not exist on that day"));
    }
    if let Some(here) = format_local_equivalent(first, user_locale) {
        text.push_str(&format!("; here {here}"));
    }
    Some(text)
}

/// Formats a recurrence rule in words, with its end in the zone of the item, that of its start or,
/// without a start, of its due time.
pub(crate) fn format_rule(
    rule: &str,
    own_time: Option<&CalendarDateTime>,
    user_locale: &UserLocale,
) -> String {
    let zone = own_time.map_or(Zone::UTC, zone_of_date_time);
    description::describe_rule(rule, &zone, &user_locale.language)
}

/// Formats a recurrence rule beside times in the user's zone. Its days and its end are those of the
/// item's zone, which is named if it shows another time.
pub(crate) fn format_rule_with_zone(
    rule: &str,
    own_time: Option<&CalendarDateTime>,
    user_locale: &UserLocale,
) -> String {
    let text = format_rule(rule, own_time, user_locale);
    // Clocks that agree at the start may differ in the other half of the year.
    let differs = |time: &&CalendarDateTime| {
        let later = time.civil.saturating_add(HALF_YEAR_SECONDS);
        let later = CalendarDateTime::from_civil(later, time.zone_reference.clone());
        let is_other = |at: &CalendarDateTime| format_local_equivalent(at, user_locale).is_some();
        is_other(time) || !time.is_date && is_other(&later)
    };
    match own_time.filter(differs) {
        Some(time) => format!("{text}, {}", zone_display_name(time)),
        None => text,
    }
}

/// Formats a time in the user's zone if that shows another time.
fn format_local_equivalent(time: &CalendarDateTime, user_locale: &UserLocale) -> Option<String> {
    if time.is_date || time.zone_reference == ZoneReference::Floating {
        return None;
    }
    let zone = zone_of_date_time(time);
    let at = zone.to_instant(time.civil);
    let civil = user_locale.zone.to_civil(at);
    let here = CalendarDateTime::from_civil(civil, ZoneReference::Floating);
    (civil != zone.to_civil(at)).then(|| {
        describe_due(&LocalTimeSpan::from_start_and_end(&here, None), &user_locale.language)
    })
}

/// Returns the time of day if it does not exist on that day, as clocks are set forward.
fn skipped_clock_time(time: &CalendarDateTime) -> Option<String> {
    let zone = zone_of_date_time(time);
    let shown = zone.to_civil(zone.to_instant(time.civil));
    (!time.is_date && shown != time.civil).then(|| format_clock(time.civil))
}

fn zone_of_date_time(time: &CalendarDateTime) -> Zone {
    match &time.zone_reference {
        ZoneReference::Zone(zone) => zone.clone(),
        ZoneReference::Utc | ZoneReference::Floating => Zone::UTC,
    }
}

fn zone_display_name(time: &CalendarDateTime) -> &str {
    match &time.zone_reference {
        ZoneReference::Utc => "UTC",
        ZoneReference::Floating => "floating",
        ZoneReference::Zone(zone) => zone.name(),
    }
}
