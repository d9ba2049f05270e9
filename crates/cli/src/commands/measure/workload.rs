//! `larder measure browse`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::output::{STRONG_STYLE, format_bytes, format_grouped};
use crate::output_path::OutputPath;
use larder_measure::calendar_workload::{Workload, WorkloadResult, render_html, run_workload};
use larder_measure::process_cost::min_median_max;
use larder_query::views::{Views, ViewsOptions};
use larder_store::FilePrivacy;
use larder_time::civil::{CivilTime, Instant};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Page through the calendar as calendar programs do, and measure memory and open views
///
/// Each view is opened, receives its answer, and is closed. --query-log records the queries for
/// `larder measure queries`.
#[derive(Debug, clap::Args)]
pub(crate) struct BrowseArgs {
    /// Page back N months and open every view: day, week, work week, month, list [default: 30,
    /// unless --reopen or --day is given]
    #[arg(long, value_name = "N")]
    months: Option<u32>,
    /// Open and close the current month N times, with a new client each time
    #[arg(long, value_name = "N", default_value_t = 0)]
    reopen: u32,
    /// Simulate a working day: a panel, alarms each minute, a calendar each hour, names being typed
    #[arg(long)]
    day: bool,
    /// Wait this long for each simulated minute, so that other programs can write
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "day")]
    pace: u64,
    /// Repeat everything N times
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// The memory budget of the answer cache; 0 disables it
    #[arg(long, value_name = "BYTES", value_parser = crate::byte_size::parse_bytes)]
    cache: Option<u64>,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
}

impl BrowseArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        // A store of an older version is migrated first.
        drop(context.open_reader()?);
        let user_locale = &context.settings.user_locale;
        let today = user_locale.zone.to_civil(user_locale.now).day_number();
        let months = self.months.unwrap_or(if self.reopen > 0 || self.day { 0 } else { 30 });
        let day = self.day.then(|| Duration::from_millis(self.pace));
        let load = Workload {
            months_back: months,
            month_toggles: self.reopen,
            working_day_pace: day,
            rounds: self.repeat,
            first_day: today,
        };
        let now = Arc::new(AtomicI64::new(user_locale.now.seconds()));
        let clock = Arc::clone(&now);
        let options = ViewsOptions {
            zones: Arc::clone(&user_locale.zones),
            cache_bytes: self.cache.map_or(context.cache_budget_bytes, |bytes| {
                usize::try_from(bytes).unwrap_or(usize::MAX)
            }),
            log: context.log.clone(),
            clock: Arc::new(move || Instant::from_seconds_clamped(clock.load(Ordering::Relaxed))),
            ..ViewsOptions::default()
        };
        let views = Views::open(&context.dir, options)?;
        let mut set_clock = |civil| {
            let at = user_locale.zone.to_instant(CivilTime::from_seconds_clamped(civil));
            now.store(at.seconds(), Ordering::Relaxed);
        };
        let settings = Arc::new(context.settings.clone());
        let found = run_workload(&views, &settings, &load, &mut set_clock)?;
        if let Some(path) = &self.html {
            let page = render_html(&found, &format!("{}.", capitalize(&load.describe())));
            context.write_output(path, FilePrivacy::Private, page.as_bytes())?;
        }
        match context.format {
            OutputFormat::Json => context.out.print_json(&to_json(&load, &found))?,
            _ => print_text(context, &load, &found)?,
        }
        Ok(CommandStatus::Done)
    }
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn open_time_spread(found: &WorkloadResult) -> Option<[u64; 3]> {
    min_median_max(
        found.open_times.iter().map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
    )
}

fn print_text(
    context: &mut CommandContext,
    load: &Workload,
    found: &WorkloadResult,
) -> Result<(), CommandFailure> {
    let out = &mut context.out;
    let (views, items) =
        (format_grouped(found.views_opened as u64), format_grouped(found.items_received as u64));
    let took = found.samples.last().map_or(0.0, |last| last.elapsed.as_secs_f64());
    out.print_line(format!("{STRONG_STYLE}{}{STRONG_STYLE:#}", capitalize(&load.describe())))?;
    out.print_line(format!("{views} views opened, {items} items received, in {took:.2} s"))?;
    if let Some([least, median, most]) = open_time_spread(found) {
        let ms = |us: u64| us as f64 / 1000.0;
        out.print_line(format!(
            "median time to open a view and receive its items: {:.2} ms ({:.2} to {:.2})",
            ms(median),
            ms(least),
            ms(most)
        ))?;
    }
    let (most, left) = (found.peak_open_views(), found.views_left_open());
    out.print_line(format!("at most {most} open at once, {left} left open"))?;
    let [before, most, first, fifth, last] = found.memory_stages().map(format_bytes);
    let after = match load.rounds {
        1 => format!("{last} after"),
        2..=5 => format!("{first} after the first round, {last} after the last"),
        _ => {
            format!("{first} after the first round, {fifth} after the fifth, {last} after the last")
        }
    };
    out.print_line(format!("memory: {before} before, peak {most}, {after}"))?;
    Ok(())
}

fn to_json(load: &Workload, found: &WorkloadResult) -> serde_json::Value {
    let samples =
        |samples: &[larder_measure::calendar_workload::MemorySample]| -> Vec<serde_json::Value> {
            let sample = |sample: &larder_measure::calendar_workload::MemorySample| {
                let at = u64::try_from(sample.elapsed.as_micros()).unwrap_or(u64::MAX);
                json!({ "at_us": at, "anonymous_bytes": sample.anonymous_bytes, "open": sample.open_views })
            };
            samples.iter().map(sample).collect()
        };
    let opened = open_time_spread(found)
        .map(|[min, median, max]| json!({ "min": min, "median": median, "max": max }));
    json!({
        "months": load.months_back,
        "reopened": load.month_toggles,
        "day": load.working_day_pace.is_some(),
        "repeat": load.rounds,
        "views": found.views_opened,
        "items": found.items_received,
        "opened_us": opened,
        "most_open": found.peak_open_views(),
        "left_open": found.views_left_open(),
        "rounds": samples(&found.round_ends),
        "samples": samples(&found.samples),
    })
}
