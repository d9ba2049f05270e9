//! The sentences of the report, shared by the terminal and the HTML page.

use crate::chart::{MeasureUnit, UtcOffsetFn, format_date, format_time_of_day};
use crate::query_log::QueryLogReport;
use crate::query_log::cache_simulation::{BudgetTrial, CacheReport, UNLIMITED_BYTES};
use crate::query_log::cost::{CostGroup, CostReport, QueryWork};
use crate::query_log::fan_out::FanOutReport;
use crate::query_log::interner::LoggedQuery;
use crate::query_log::reuse::ReuseReport;
use crate::query_log::view_lifetimes::{LifetimeReport, ViewEnd, ViewLifetime};

/// `1 view`, `2 views`.
#[must_use]
pub fn format_count(number: u64, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        MeasureUnit::Count.format(number as f64),
        if number == 1 { "" } else { "s" }
    )
}

/// A time in microseconds.
#[must_use]
pub fn format_duration(us: f64) -> String {
    MeasureUnit::Time.format(us)
}

/// A share in per cent.
#[must_use]
pub fn format_share(part: u64, all: u64) -> String {
    MeasureUnit::Share.format(part as f64 / all.max(1) as f64)
}

/// A budget: `64 KiB`, `none`, `no limit`.
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

/// A question for people: times as one reads them, `2026-03-02` for `(make-time
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

/// `20260302T093000Z` as `2026-03-02 09:30`.
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
pub fn format_query_target(question: &LoggedQuery) -> String {
    let collection = question.collection.as_deref().unwrap_or("all collections");
    match &question.kind {
        Some(kind) => format!("{collection}, {kind}"),
        None => collection.to_string(),
    }
}

/// The collection of a group, and its kind of source.
#[must_use]
pub fn format_cost_group(group: &CostGroup) -> String {
    let collection = group.collection.as_deref().unwrap_or("all collections");
    format!("{collection} ({})", group.source)
}

/// `3`, `5 - 8`.
#[must_use]
pub fn format_count_range(least: u64, most: u64) -> String {
    let write = |number: u64| MeasureUnit::Count.format(number as f64);
    if least == most { write(least) } else { format!("{} - {}", write(least), write(most)) }
}

/// Items visited for each that was given; `-` where none was.
#[must_use]
pub fn format_scan_ratio(work: &QueryWork) -> String {
    let round = |ratio: f64| MeasureUnit::Count.format((ratio * 10.0).round() / 10.0);
    work.scanned_per_returned().map_or("-".into(), round)
}

/// `no view`, `1 view`, `3 - 4 views`.
#[must_use]
pub fn format_view_count(least: u64, most: u64) -> String {
    match most {
        0 => "no view".into(),
        1 => "1 view".into(),
        _ => format!("{} views", format_count_range(least, most)),
    }
}

/// When something was: with its day where the log has several.
#[must_use]
pub fn format_log_time(at: i64, log: (i64, i64), clock: UtcOffsetFn<'_>) -> String {
    let time = format_time_of_day(at, clock, true);
    match format_date(log.0, clock) == format_date(log.1, clock) {
        true => time,
        false => format!("{} {time}", format_date(at, clock)),
    }
}

/// How much of a log there is, and of when it is.
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
    format!("{} of {processes}, {time}.", format_count(report.lines, "line"))
}

/// Which questions are asked, and how often.
#[must_use]
pub fn describe_reuse(reuse: &ReuseReport) -> String {
    let all = reuse.answers.total();
    if all == 0 {
        return "Nothing was asked.".into();
    }
    format!(
        "{} to {}; {} to one that had been asked before. {} worked out, {} from the cache, {} from an open view.",
        format_count(all, "answer"),
        format_count(reuse.query_count, "question"),
        format_share(reuse.repeat_answers, all),
        format_share(reuse.answers.run, all),
        format_share(reuse.answers.cache, all),
        format_share(reuse.answers.shared, all),
    )
}

/// How long views live.
#[must_use]
pub fn describe_lifetimes(lives: &LifetimeReport) -> String {
    if lives.opened == 0 {
        return "No view was opened.".into();
    }
    let at_once = MeasureUnit::Count.format(lives.peak_open as f64);
    let mut text =
        format!("{} opened, {at_once} at once at most. ", format_views_were(lives.opened));
    text.push_str(&match lives.unclosed_count() {
        0 => "All were closed.".to_string(),
        _ => describe_unclosed_views(lives),
    });
    if lives.lifetimes_us.count > 0 {
        text.push_str(&format!(
            " Those that were closed lived {} in the median, {} at most.",
            format_duration(lives.lifetimes_us.quantile(0.5) as f64),
            format_duration(lives.lifetimes_us.max as f64)
        ));
    }
    text
}

fn format_views_were(number: u64) -> String {
    format!("{} {}", format_count(number, "view"), if number == 1 { "was" } else { "were" })
}

/// How many views were never closed, by what became of them.
#[must_use]
pub fn describe_unclosed_views(lives: &LifetimeReport) -> String {
    let parts = [
        (lives.leaked, "leaked (the process ended in order)"),
        (lives.process_died, "open when the process broke off"),
        (lives.open_at_end, "still open when the log ended"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", MeasureUnit::Count.format(number as f64)))
        .collect();
    format!("{} never closed: {}.", format_views_were(lives.unclosed_count()), parts.join(", "))
}

/// How long answers were kept.
#[must_use]
pub fn describe_cache_residency(lives: &LifetimeReport) -> String {
    let kept = &lives.cache_residency;
    if kept.answers == 0 {
        return "No answer was kept.".into();
    }
    format!(
        "{} kept, and {} of them used before they went; {} in memory at most.",
        format_count(kept.answers, "answer"),
        format_share(kept.answers_used, kept.answers),
        MeasureUnit::Bytes.format(kept.peak_bytes as f64),
    )
}

/// One view that was never closed.
#[must_use]
pub fn describe_view_lifetime(
    life: &ViewLifetime,
    log: (i64, i64),
    clock: UtcOffsetFn<'_>,
) -> String {
    let end = match life.end {
        ViewEnd::Closed => "closed after",
        ViewEnd::Leaked => "leaked after",
        ViewEnd::ProcessDied => "broken off after",
        ViewEnd::Open => "open for",
    };
    format!(
        "{}: {} ({}), opened {}, {end} {}; view {} of process {}",
        life.client,
        format_query(&life.query.query),
        format_query_target(&life.query),
        format_log_time(life.opened_at, log, clock),
        format_duration(life.duration_us() as f64),
        life.view,
        life.pid
    )
}

/// How long answers take.
#[must_use]
pub fn describe_cost(cost: &CostReport) -> String {
    let run = &cost.executed;
    if run.us.count == 0 {
        return "No answer was worked out.".into();
    }
    let mut text = format!(
        "{} worked out: {} in the mean, {} at worst.",
        format_count(run.us.count, "answer"),
        format_duration(run.us.mean()),
        format_duration(run.us.max as f64)
    );
    if run.returned > 0 {
        let ratio = format_scan_ratio(run);
        text.push_str(&format!(" {ratio} visited for each item that was given."));
    }
    if cost.cached_us.count > 0 {
        let mean = format_duration(cost.cached_us.mean());
        text.push_str(&format!(" Answers that were ready took {mean} in the mean."));
    }
    text
}

/// Describes the benefit of the cache.
#[must_use]
pub fn describe_cache(worth: &CacheReport) -> String {
    if worth.answers == 0 {
        return "Nothing was asked.".into();
    }
    let budget_of = match worth.budgets.as_slice() {
        [] => String::new(),
        [one] => format!(" (budget: {})", format_budget(*one)),
        all => {
            let all: Vec<String> = all.iter().map(|bytes| format_budget(*bytes)).collect();
            format!(" (budgets: {})", all.join(", "))
        }
    };
    let mut text = format!(
        "Of {}, {} had been kept{budget_of}: {}.",
        format_count(worth.answers, "answer"),
        MeasureUnit::Count.format(worth.hits as f64),
        MeasureUnit::Share.format(worth.hit_rate(worth.hits)),
    );
    let best = worth.trials.last().copied().unwrap_or_default();
    match worth.smallest_sufficient_budget() {
        None => text.push_str(" No budget would have given any."),
        Some(enough) => text.push_str(&format!(
            " Without a limit it would have been {}, with {} kept at most; a budget of {} gives {}.",
            MeasureUnit::Share.format(worth.hit_rate(best.hits)),
            MeasureUnit::Bytes.format(best.peak_bytes as f64),
            format_budget(enough.budget_bytes),
            MeasureUnit::Share.format(worth.hit_rate(enough.hits)),
        )),
    }
    text
}

/// How near the replay is to what the log says of its own budget.
#[must_use]
pub fn describe_replay_accuracy(worth: &CacheReport) -> Option<String> {
    let BudgetTrial { hits, .. } = worth.recorded?;
    Some(format!(
        "Played again with the log's own budget, {} had been kept; the log has {}. A budget above the log's own gives what is \
         said here at least.",
        format_count(hits, "answer"),
        MeasureUnit::Count.format(worth.hits as f64),
    ))
}

/// How many views a change informs.
#[must_use]
pub fn describe_fan_out(informed: &FanOutReport) -> String {
    if informed.changes == 0 {
        return "Nothing changed.".into();
    }
    let mean = |sum: u64| {
        MeasureUnit::Count.format((sum as f64 / informed.changes as f64 * 10.0).round() / 10.0)
    };
    format!(
        "{} of {}. In the mean: views open {}, questions tested {}, views told {}, {} ({} at worst).",
        format_count(informed.changes, "change"),
        format_count(informed.items, "item"),
        mean(informed.views_open),
        mean(informed.queries_tested),
        mean(informed.views_notified),
        format_duration(informed.us.mean()),
        format_duration(informed.us.max as f64)
    )
}
