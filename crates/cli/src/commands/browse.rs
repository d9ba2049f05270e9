use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{STRONG, grouped, size};
use larder_measure::browse::{Browsed, Load, browse, page};
use larder_measure::run::spread;
use larder_query::views::{Views, ViewsOptions};
use larder_time::civil::{Civil, Instant};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Page through the calendar as its programs do, and watch the memory and the views that are open
///
/// Every view that is opened is told its answer, and closed again. With --toggle the present month is opened and closed
/// so often, each time by another client. What is asked can be looked at with --query-log and `larder measure queries`.
#[derive(Debug, clap::Args)]
pub(crate) struct Browse {
    /// Go back so many months in five kinds of views: day, week, work week, month, list; 30 if nothing else is asked for
    #[arg(long, value_name = "N")]
    months: Option<u32>,
    /// Open and close the present month so often
    #[arg(long, value_name = "N", default_value_t = 0)]
    toggle: u32,
    /// Let a working day go by: a panel, alarms each minute, a calendar each hour, names that are typed
    #[arg(long)]
    day: bool,
    /// Give each minute of the day so many milliseconds, for others to write meanwhile
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "day")]
    pace: u64,
    /// Do all that so often
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep answers in so many bytes; 0: keep none
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse)]
    cache: Option<u64>,
    /// Write a page with charts to this file, too
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,
}

impl Browse {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        // A store of an older version is migrated first.
        drop(context.reader()?);
        let asker = &context.settings.asker;
        let today = asker.local.civil(asker.now).day();
        let months = self.months.unwrap_or(if self.toggle > 0 || self.day { 0 } else { 30 });
        let day = self.day.then(|| Duration::from_millis(self.pace));
        let load = Load { months, toggles: self.toggle, day, repeat: self.repeat, today };
        let now = Arc::new(AtomicI64::new(asker.now.seconds()));
        let clock = Arc::clone(&now);
        let options = ViewsOptions {
            zones: Arc::clone(&asker.zones),
            cache: self
                .cache
                .map_or(context.cache, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            log: context.log.clone(),
            clock: Arc::new(move || Instant::clamped(clock.load(Ordering::Relaxed))),
            ..ViewsOptions::default()
        };
        let views = Views::open(&context.dir, options)?;
        let mut set_clock = |civil| {
            let at = asker.local.instant(Civil::clamped(civil));
            now.store(at.seconds(), Ordering::Relaxed);
        };
        let settings = Arc::new(context.settings.clone());
        let found = browse(&views, &settings, &load, &mut set_clock)?;
        if let Some(path) = &self.html {
            std::fs::write(path, page(&found, &format!("{}.", capital(&load.words()))))
                .map_err(|error| Failure::file(path, &error))?;
        }
        match context.format {
            Format::Json => context.out.json(&object(&load, &found))?,
            _ => print(context, &load, &found)?,
        }
        Ok(Code::Done)
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn microseconds(found: &Browsed) -> Option<[u64; 3]> {
    spread(found.opened.iter().map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
}

fn print(context: &mut Context, load: &Load, found: &Browsed) -> Result<(), Failure> {
    let out = &mut context.out;
    let (views, items) = (grouped(found.views as u64), grouped(found.items as u64));
    let took = found.samples.last().map_or(0.0, |last| last.at.as_secs_f64());
    out.line(format!("{STRONG}{}{STRONG:#}", capital(&load.words())))?;
    out.line(format!("{views} views opened, {items} items told, in {took:.2} s"))?;
    if let Some([least, median, most]) = microseconds(found) {
        let ms = |us: u64| us as f64 / 1000.0;
        out.line(format!(
            "a view was opened and told in {:.2} ms (from {:.2} to {:.2})",
            ms(median),
            ms(least),
            ms(most)
        ))?;
    }
    let (most, left) = (found.most_open(), found.left_open());
    out.line(format!("{most} open at once at most, {left} left open"))?;
    let [before, most, first, fifth, last] = found.memory().map(size);
    let after = match load.repeat {
        1 => format!("{last} after"),
        2..=5 => format!("{first} after the first time, {last} after the last"),
        _ => {
            format!("{first} after the first time, {fifth} after the fifth, {last} after the last")
        }
    };
    out.line(format!("memory: {before} before, {most} at most, {after}"))?;
    Ok(())
}

fn object(load: &Load, found: &Browsed) -> serde_json::Value {
    let samples = |samples: &[larder_measure::browse::Sample]| -> Vec<serde_json::Value> {
        let sample = |sample: &larder_measure::browse::Sample| {
            let at = u64::try_from(sample.at.as_micros()).unwrap_or(u64::MAX);
            json!({ "at_us": at, "anonymous_bytes": sample.anonymous, "open": sample.open })
        };
        samples.iter().map(sample).collect()
    };
    let opened = microseconds(found)
        .map(|[min, median, max]| json!({ "min": min, "median": median, "max": max }));
    json!({
        "months": load.months,
        "toggles": load.toggles,
        "day": load.day.is_some(),
        "repeat": load.repeat,
        "views": found.views,
        "items": found.items,
        "opened_us": opened,
        "most_open": found.most_open(),
        "left_open": found.left_open(),
        "rounds": samples(&found.rounds),
        "samples": samples(&found.samples),
    })
}
