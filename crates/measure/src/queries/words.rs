//! What a log shows, in a sentence or two for each question: the same on a terminal and on the page.

use crate::chart::{Clock, Unit, date, moment};
use crate::queries::Report;
use crate::queries::cost::{Cost, Group, Work};
use crate::queries::informed::Informed;
use crate::queries::lives::{End, Life, Lives};
use crate::queries::names::Question;
use crate::queries::reuse::Reuse;
use crate::queries::worth::{Trial, UNLIMITED, Worth};

/// `1 view`, `2 views`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", Unit::Count.write(number as f64), if number == 1 { "" } else { "s" })
}

/// A time in microseconds.
#[must_use]
pub fn time(us: f64) -> String {
    Unit::Time.write(us)
}

/// A share in per cent.
#[must_use]
pub fn share(part: u64, all: u64) -> String {
    Unit::Share.write(part as f64 / all.max(1) as f64)
}

/// A budget: `64 KiB`, `none`, `no limit`.
#[must_use]
pub fn budget(bytes: u64) -> String {
    match bytes {
        0 => "none".into(),
        UNLIMITED => "no limit".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => Unit::Bytes.write(bytes as f64),
    }
}

/// A question for people: times as one reads them, `2026-03-02` for `(make-time "20260302T000000Z")`.
#[must_use]
pub fn question(query: &str) -> String {
    const TIME: &str = "(make-time \"";
    let (mut text, mut rest) = (String::new(), query);
    while let Some((before, behind)) = rest.split_once(TIME) {
        text.push_str(before);
        let time = behind.split_once("\")").and_then(|(time, rest)| Some((readable(time)?, rest)));
        rest = match &time {
            Some((time, rest)) => {
                text.push_str(time);
                rest
            }
            None => {
                text.push_str(TIME);
                behind
            }
        };
    }
    text + rest
}

/// `20260302T093000Z` as `2026-03-02 09:30`.
fn readable(time: &str) -> Option<String> {
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

/// What is asked of which collection and kind: `Work, event`.
#[must_use]
pub fn about(question: &Question) -> String {
    let collection = question.collection.as_deref().unwrap_or("all collections");
    match &question.kind {
        Some(kind) => format!("{collection}, {kind}"),
        None => collection.to_string(),
    }
}

/// The collection of a group, and its kind of source.
#[must_use]
pub fn group(group: &Group) -> String {
    let collection = group.collection.as_deref().unwrap_or("all collections");
    format!("{collection} ({})", group.source)
}

/// `3`, `5 - 8`.
#[must_use]
pub fn span(least: u64, most: u64) -> String {
    let write = |number: u64| Unit::Count.write(number as f64);
    if least == most { write(least) } else { format!("{} - {}", write(least), write(most)) }
}

/// Items visited for each that was given; `-` where none was.
#[must_use]
pub fn ratio(work: &Work) -> String {
    let round = |ratio: f64| Unit::Count.write((ratio * 10.0).round() / 10.0);
    work.scanned_per_returned().map_or("-".into(), round)
}

/// `no view`, `1 view`, `3 - 4 views`.
#[must_use]
pub fn views(least: u64, most: u64) -> String {
    match most {
        0 => "no view".into(),
        1 => "1 view".into(),
        _ => format!("{} views", span(least, most)),
    }
}

/// When something was: with its day where the log has several.
#[must_use]
pub fn when(at: i64, log: (i64, i64), clock: Clock<'_>) -> String {
    let time = moment(at, clock, true);
    match date(log.0, clock) == date(log.1, clock) {
        true => time,
        false => format!("{} {time}", date(at, clock)),
    }
}

/// How much of a log there is, and of when it is.
#[must_use]
pub fn log(report: &Report, clock: Clock<'_>) -> String {
    let (first, last) = report.time;
    let (day, end) = (date(first, clock), date(last, clock));
    let (from, to) = (moment(first, clock, true), moment(last, clock, true));
    let time = match day == end {
        true => format!("{day}, {from} to {to}"),
        false => format!("{day} {from} to {end} {to}"),
    };
    let processes = match report.processes {
        1 => "1 process".to_string(),
        number => format!("{} processes", Unit::Count.write(number as f64)),
    };
    format!("{} of {processes}, {time}.", count(report.lines, "line"))
}

/// Which questions are asked, and how often.
#[must_use]
pub fn reuse(reuse: &Reuse) -> String {
    let all = reuse.answers.all();
    if all == 0 {
        return "Nothing was asked.".into();
    }
    format!(
        "{} to {}; {} to one that had been asked before. {} worked out, {} from the cache, {} from an open view.",
        count(all, "answer"),
        count(reuse.questions, "question"),
        share(reuse.again, all),
        share(reuse.answers.run, all),
        share(reuse.answers.cache, all),
        share(reuse.answers.shared, all),
    )
}

/// How long views live.
#[must_use]
pub fn lives(lives: &Lives) -> String {
    if lives.opened == 0 {
        return "No view was opened.".into();
    }
    let at_once = Unit::Count.write(lives.at_once as f64);
    let mut text = format!("{} opened, {at_once} at once at most. ", views_were(lives.opened));
    text.push_str(&match lives.never_closed() {
        0 => "All were closed.".to_string(),
        _ => never(lives),
    });
    if lives.lives.number > 0 {
        text.push_str(&format!(
            " Those that were closed lived {} in the median, {} at most.",
            time(lives.lives.quantile(0.5) as f64),
            time(lives.lives.most as f64)
        ));
    }
    text
}

fn views_were(number: u64) -> String {
    format!("{} {}", count(number, "view"), if number == 1 { "was" } else { "were" })
}

/// How many views were never closed, by what became of them.
#[must_use]
pub fn never(lives: &Lives) -> String {
    let parts = [
        (lives.leaked, "leaked (the process ended in order)"),
        (lives.broken_off, "open when the process broke off"),
        (lives.open, "still open when the log ended"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", Unit::Count.write(number as f64)))
        .collect();
    format!("{} never closed: {}.", views_were(lives.never_closed()), parts.join(", "))
}

/// How long answers were kept.
#[must_use]
pub fn kept(lives: &Lives) -> String {
    let kept = &lives.kept;
    if kept.kept == 0 {
        return "No answer was kept.".into();
    }
    format!(
        "{} kept, and {} of them used before they went; {} in memory at most.",
        count(kept.kept, "answer"),
        share(kept.used, kept.kept),
        Unit::Bytes.write(kept.peak as f64),
    )
}

/// One view that was never closed.
#[must_use]
pub fn life(life: &Life, log: (i64, i64), clock: Clock<'_>) -> String {
    let end = match life.end {
        End::Closed => "closed after",
        End::Leaked => "leaked after",
        End::BrokenOff => "broken off after",
        End::Open => "open for",
    };
    format!(
        "{}: {} ({}), opened {}, {end} {}; view {} of process {}",
        life.client,
        question(&life.question.query),
        about(&life.question),
        when(life.opened, log, clock),
        time(life.us() as f64),
        life.view,
        life.pid
    )
}

/// How long answers take.
#[must_use]
pub fn cost(cost: &Cost) -> String {
    let run = &cost.run;
    if run.us.number == 0 {
        return "No answer was worked out.".into();
    }
    let mut text = format!(
        "{} worked out: {} in the mean, {} at worst.",
        count(run.us.number, "answer"),
        time(run.us.mean()),
        time(run.us.most as f64)
    );
    if run.returned > 0 {
        let ratio = ratio(run);
        text.push_str(&format!(" {ratio} visited for each item that was given."));
    }
    if cost.ready.number > 0 {
        let mean = time(cost.ready.mean());
        text.push_str(&format!(" Answers that were ready took {mean} in the mean."));
    }
    text
}

/// Is the cache worth its memory?
#[must_use]
pub fn worth(worth: &Worth) -> String {
    if worth.askings == 0 {
        return "Nothing was asked.".into();
    }
    let budget_of = match worth.budgets.as_slice() {
        [] => String::new(),
        [one] => format!(" (budget: {})", budget(*one)),
        all => {
            let all: Vec<String> = all.iter().map(|bytes| budget(*bytes)).collect();
            format!(" (budgets: {})", all.join(", "))
        }
    };
    let mut text = format!(
        "Of {}, {} had been kept{budget_of}: {}.",
        count(worth.askings, "answer"),
        Unit::Count.write(worth.hits as f64),
        Unit::Share.write(worth.rate(worth.hits)),
    );
    let best = worth.trials.last().copied().unwrap_or_default();
    match worth.enough() {
        None => text.push_str(" No budget would have given any."),
        Some(enough) => text.push_str(&format!(
            " Without a limit it would have been {}, with {} kept at most; a budget of {} gives {}.",
            Unit::Share.write(worth.rate(best.hits)),
            Unit::Bytes.write(best.peak as f64),
            budget(enough.budget),
            Unit::Share.write(worth.rate(enough.hits)),
        )),
    }
    text
}

/// How near the replay is to what the log says of its own budget.
#[must_use]
pub fn honesty(worth: &Worth) -> Option<String> {
    let Trial { hits, .. } = worth.recorded?;
    Some(format!(
        "Played again with the log's own budget, {} had been kept; the log has {}. A budget above the log's own gives what is \
         said here at least.",
        count(hits, "answer"),
        Unit::Count.write(worth.hits as f64),
    ))
}

/// How many views a change informs.
#[must_use]
pub fn informed(informed: &Informed) -> String {
    if informed.changes == 0 {
        return "Nothing changed.".into();
    }
    let mean =
        |sum: u64| Unit::Count.write((sum as f64 / informed.changes as f64 * 10.0).round() / 10.0);
    format!(
        "{} of {}. In the mean: views open {}, questions tested {}, views told {}, {} ({} at worst).",
        count(informed.changes, "change"),
        count(informed.items, "item"),
        mean(informed.open),
        mean(informed.asked),
        mean(informed.told),
        time(informed.us.mean()),
        time(informed.us.most as f64)
    )
}
