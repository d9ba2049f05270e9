//! The sentences of the report, shared by the terminal and the HTML page.

use crate::chart::{MeasureUnit, UtcOffsetFn, format_date, format_time_of_day};
use crate::query_log::QueryLogReport;
use crate::query_log::cache_simulation::{BudgetTrial, CacheReport, UNLIMITED_BYTES};
use crate::query_log::cost::{CollectionCost, CostReport, QueryWork};
use crate::query_log::fan_out::FanOutReport;
use crate::query_log::interner::LoggedQuery;
use crate::query_log::reuse::ReuseReport;
use crate::query_log::view_lifetimes::{LifetimeReport, ViewEnd, ViewLifetime};

/// Formats a number with its noun: `1 view`, `2 views`, `3 queries`.
#[must_use]
pub fn format_count(number: u64, noun: &str) -> String {
    let count = MeasureUnit::Count.format(number as f64);
    match noun.strip_suffix("ry") {
        _ if number == 1 => format!("{count} {noun}"),
        Some(stem) => format!("{count} {stem}ries"),
        None => format!("{count} {noun}s"),
    }
}

/// Formats a time in microseconds.
#[must_use]
pub fn format_duration(us: f64) -> String {
    MeasureUnit::Time.format(us)
}

/// Formats a share in per cent.
#[must_use]
pub fn format_share(part: u64, all: u64) -> String {
    MeasureUnit::Share.format(part as f64 / all.max(1) as f64)
}

/// Formats a budget: `64 KiB`, `none`, `no limit`.
#[must_use]
pub fn format_budget(bytes: u64) -> String {
    match bytes {
        0 => "none".into(),
        UNLIMITED_BYTES => "no limit".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => MeasureUnit::Bytes.format(bytes as f64),
    }
}

/// Formats a query for people. Times are shortened: `2026-03-02` stands for `(make-time
/// "20260302T000000Z")`.
#[must_use]
pub fn format_query(query: &str) -> String {
    const MAKE_TIME_PREFIX: &str = "(make-time \"";
    let (mut text, mut rest) = (String::new(), query);
    while let Some((before, behind)) = rest.split_once(MAKE_TIME_PREFIX) {
        text.push_str(before);
        let time =
            behind.split_once("\")").and_then(|(time, rest)| Some((format_ical_time(time)?, rest)));
        rest = match &time {
            Some((time, rest)) => {
                text.push_str(time);
                rest
            }
            None => {
                text.push_str(MAKE_TIME_PREFIX);
                behind
            }
        };
    }
    text + rest
}

/// Formats `20260302T093000Z` as `2026-03-02 09:30`.
fn format_ical_time(time: &str) -> Option<String> {
    let time = time.strip_suffix('Z')?;
    let (date, clock) = time.split_at_checked(8)?;
    let clock = clock.strip_prefix('T').filter(|clock| clock.len() == 6)?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(date) || !digits(clock) {
        return None;
    }
    let (year, day) = date.split_at_checked(4)?;
    let (month, day) = day.split_at_checked(2)?;
    let date = format!("{year}-{month}-{day}");
    let (hour, rest) = clock.split_at_checked(2)?;
    let (minute, second) = rest.split_at_checked(2)?;
    Some(match (clock, second) {
        ("000000", _) => date,
        (_, "00") => format!("{date} {hour}:{minute}"),
        _ => format!("{date} {hour}:{minute}:{second}"),
    })
}

/// Formats the collection and the kind of a query: `Work, event`.
#[must_use]
pub fn format_query_target(query: &LoggedQuery) -> String {
    let collection = query.collection.as_deref().unwrap_or("all collections");
    match &query.kind {
        Some(kind) => format!("{collection}, {kind}"),
        None => collection.to_string(),
    }
}

/// Formats a collection and its backend: `Work (local)`.
#[must_use]
pub fn format_collection_cost(cost: &CollectionCost) -> String {
    let collection = cost.collection.as_deref().unwrap_or("all collections");
    format!("{collection} ({})", cost.group.backend)
}

/// Formats a range of numbers: `3`, `5 - 8`.
#[must_use]
pub fn format_count_range(least: u64, most: u64) -> String {
    let write = |number: u64| MeasureUnit::Count.format(number as f64);
    if least == most { write(least) } else { format!("{} - {}", write(least), write(most)) }
}

/// Formats the rows visited for each item returned; `-` if none was returned.
#[must_use]
pub fn format_scan_ratio(work: &QueryWork) -> String {
    let round = |ratio: f64| MeasureUnit::Count.format((ratio * 10.0).round() / 10.0);
    work.rows_per_item().map_or("-".into(), round)
}

/// Formats a range of view counts: `no view`, `1 view`, `3 - 4 views`.
#[must_use]
pub fn format_view_count(least: u64, most: u64) -> String {
    match most {
        0 => "no view".into(),
        1 => "1 view".into(),
        _ => format!("{} views", format_count_range(least, most)),
    }
}

/// Formats the time of an event, with its day if the log covers several days.
#[must_use]
pub fn format_log_time(at: i64, log: (i64, i64), clock: UtcOffsetFn<'_>) -> String {
    let time = format_time_of_day(at, clock, true);
    match format_date(log.0, clock) == format_date(log.1, clock) {
        true => time,
        false => format!("{} {time}", format_date(at, clock)),
    }
}

/// Describes the size and the period of a log.
#[must_use]
pub fn describe_log(report: &QueryLogReport, clock: UtcOffsetFn<'_>) -> String {
    let (first, last) = report.time_span;
    let (day, end) = (format_date(first, clock), format_date(last, clock));
    let (from, to) =
        (format_time_of_day(first, clock, true), format_time_of_day(last, clock, true));
    let time = match day == end {
        true => format!("{day}, {from} to {to}"),
        false => format!("{day} {from} to {end} {to}"),
    };
    let processes = match report.process_count {
        1 => "1 process".to_string(),
        number => format!("{} processes", MeasureUnit::Count.format(number as f64)),
    };
    format!("{} from {processes}, {time}.", format_count(report.lines, "line"))
}

/// Describes the repetition of queries and the origin of their answers.
#[must_use]
pub fn describe_reuse(reuse: &ReuseReport) -> String {
    let all = reuse.answers.total();
    if all == 0 {
        return "No queries.".into();
    }
    format!(
        "{} to {}; {} of the answers repeat an earlier query. {} executed, {} from the cache, {} from an open view.",
        format_count(all, "answer"),
        format_count(reuse.query_count, "different query"),
        format_share(reuse.repeat_answers, all),
        format_share(reuse.answers.executed, all),
        format_share(reuse.answers.cache, all),
        format_share(reuse.answers.shared, all),
    )
}

/// Describes the lifetimes of views.
#[must_use]
pub fn describe_lifetimes(lives: &LifetimeReport) -> String {
    if lives.opened == 0 {
        return "No view was opened.".into();
    }
    let peak = MeasureUnit::Count.format(lives.peak_open as f64);
    let mut text =
        format!("{} opened, at most {peak} at a time. ", format_views_were(lives.opened));
    text.push_str(&match lives.unclosed_count {
        0 => "All were closed.".to_string(),
        _ => describe_unclosed_views(lives),
    });
    if lives.lifetimes_us.count > 0 {
        text.push_str(&format!(
            " The closed views were open for {} (median), at most {}.",
            format_duration(lives.lifetimes_us.quantile(0.5) as f64),
            format_duration(lives.lifetimes_us.max as f64)
        ));
    }
    text
}

fn format_views_were(number: u64) -> String {
    format!("{} {}", format_count(number, "view"), if number == 1 { "was" } else { "were" })
}

/// Describes the views that were never closed, by the cause of their end.
#[must_use]
pub fn describe_unclosed_views(lives: &LifetimeReport) -> String {
    let parts = [
        (lives.leaked, "leaked (the process ended normally)"),
        (lives.process_died, "open when their process died"),
        (lives.open_at_end, "still open when the log ended"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, cause)| format!("{} {cause}", MeasureUnit::Count.format(number as f64)))
        .collect();
    format!("{} never closed: {}.", format_views_were(lives.unclosed_count), parts.join(", "))
}

/// Describes the use of the answer cache.
#[must_use]
pub fn describe_cache_residency(lives: &LifetimeReport) -> String {
    let residency = &lives.cache_residency;
    if residency.answers == 0 {
        return "No answer was cached.".into();
    }
    format!(
        "{} cached, {} of them used before they were evicted; peak memory {}.",
        format_count(residency.answers, "answer"),
        format_share(residency.answers_used, residency.answers),
        MeasureUnit::Bytes.format(residency.peak_bytes as f64),
    )
}

/// Describes a view: its client, query, opening and end.
#[must_use]
pub fn describe_view_lifetime(
    life: &ViewLifetime,
    log: (i64, i64),
    clock: UtcOffsetFn<'_>,
) -> String {
    let end = match life.end {
        ViewEnd::Closed => "closed after",
        ViewEnd::Leaked => "leaked after",
        ViewEnd::ProcessDied => "process died after",
        ViewEnd::Open => "open for",
    };
    format!(
        "{}: {} ({}), opened {}, {end} {}; view {} of process {}",
        life.client,
        format_query(&life.query.query),
        format_query_target(&life.query),
        format_log_time(life.opened_at, log, clock),
        format_duration(life.duration_us as f64),
        life.view,
        life.pid
    )
}

/// Describes the cost of queries.
#[must_use]
pub fn describe_cost(cost: &CostReport) -> String {
    let run = &cost.executed;
    if run.us.count == 0 {
        return "No query was executed.".into();
    }
    let mut text = format!(
        "{} executed: {} on average, {} at most.",
        format_count(run.us.count, "query"),
        format_duration(run.us.mean()),
        format_duration(run.us.max as f64)
    );
    if run.returned > 0 {
        let ratio = format_scan_ratio(run);
        text.push_str(&format!(" Rows visited for each item returned: {ratio}."));
    }
    if cost.cached_us.count > 0 {
        let mean = format_duration(cost.cached_us.mean());
        text.push_str(&format!(" Cached answers took {mean} on average."));
    }
    text
}

/// Describes the benefit of the cache.
#[must_use]
pub fn describe_cache(cache: &CacheReport) -> String {
    if cache.answers == 0 {
        return "No queries.".into();
    }
    let budgets = match cache.budgets.as_slice() {
        [] => String::new(),
        [one] => format!("; budget: {}", format_budget(*one)),
        all => {
            let all: Vec<String> = all.iter().map(|bytes| format_budget(*bytes)).collect();
            format!("; budgets: {}", all.join(", "))
        }
    };
    let mut text = format!(
        "Cache hits: {} of {} ({}){budgets}.",
        MeasureUnit::Count.format(cache.hits as f64),
        format_count(cache.answers, "answer"),
        MeasureUnit::Share.format(cache.hit_rate),
    );
    let unlimited = cache.trials.last().copied().unwrap_or_default();
    match cache.smallest_sufficient_budget() {
        None => text.push_str(" No budget would give a hit."),
        Some(sufficient) => text.push_str(&format!(
            " An unlimited cache would have a hit rate of {} and use up to {}; a budget of {} would reach {}.",
            MeasureUnit::Share.format(unlimited.hit_rate),
            MeasureUnit::Bytes.format(unlimited.peak_bytes as f64),
            format_budget(sufficient.budget_bytes),
            MeasureUnit::Share.format(sufficient.hit_rate),
        )),
    }
    text
}

/// Describes the replay of the log's own budget next to the recorded figures, as a check of the
/// simulation.
#[must_use]
pub fn describe_replay_accuracy(cache: &CacheReport) -> Option<String> {
    let BudgetTrial { hits, .. } = cache.recorded?;
    Some(format!(
        "Check: the replay of the log's own budget has {}, the log {}. Figures for larger budgets \
         are lower bounds.",
        format_count(hits, "cache hit"),
        MeasureUnit::Count.format(cache.hits as f64),
    ))
}

/// Describes the views notified of a change.
#[must_use]
pub fn describe_fan_out(fan_out: &FanOutReport) -> String {
    if fan_out.changes == 0 {
        return "No changes.".into();
    }
    let mean = |sum: u64| {
        MeasureUnit::Count.format((sum as f64 / fan_out.changes as f64 * 10.0).round() / 10.0)
    };
    format!(
        "{} of {}. Mean per change: views open {}, queries tested {}, views notified {}, time {} (at most {}).",
        format_count(fan_out.changes, "change"),
        format_count(fan_out.items, "item"),
        mean(fan_out.views_open),
        mean(fan_out.queries_tested),
        mean(fan_out.views_notified),
        format_duration(fan_out.us.mean()),
        format_duration(fan_out.us.max as f64)
    )
}
