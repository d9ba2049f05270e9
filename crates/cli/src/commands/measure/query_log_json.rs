//! The report of a query log as JSON; docs/output.md documents it.

use larder_measure::query_log::cache_simulation::{BudgetTrial, CacheReport, UNLIMITED_BYTES};
use larder_measure::query_log::cost::{CostGroup, CostReport, QueryWork};
use larder_measure::query_log::fan_out::FanOutReport;
use larder_measure::query_log::histogram::Histogram;
use larder_measure::query_log::log_reader::LoggedEvictionReason;
use larder_measure::query_log::reuse::{OriginCounts, ReuseReport};
use larder_measure::query_log::view_lifetimes::{LifetimeReport, ViewLifetime};
use larder_measure::query_log::{LoggedQuery, QueryLogReport};
use serde_json::{Map, Value, json};

/// Returns the whole report.
pub(super) fn report_json(log: &str, report: &QueryLogReport) -> Value {
    let broken = report.bad_lines.samples.iter();
    json!({
        "log": log,
        "lines": report.lines,
        "unknown": report.unknown_lines,
        "broken": report.bad_lines.lines,
        "broken_lines": broken.map(|(line, why)| json!({ "line": line, "why": why })).collect::<Vec<_>>(),
        "processes": report.process_count,
        "from_us": report.time_span.0,
        "to_us": report.time_span.1,
        "reuse": reuse_json(&report.reuse),
        "lives": lifetimes_json(&report.lifetimes),
        "cost": cost_json(&report.cost),
        "worth": cache_worth_json(&report.cache),
        "informed": notified_views_json(&report.fan_out),
    })
}

/// Adds the fields of one object to another.
fn merge_objects(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

fn list_json<T>(of: &[T], value: impl Fn(&T) -> Value) -> Value {
    of.iter().map(value).collect()
}

fn question_json(question: &LoggedQuery) -> Value {
    json!({
        "query": question.query,
        "kind": question.kind,
        "collection": question.collection,
    })
}

fn origins_json(answers: &OriginCounts) -> Value {
    json!({
        "answers": answers.total(),
        "run": answers.run,
        "cache": answers.cache,
        "shared": answers.shared,
    })
}

fn spread_json(of: &Histogram) -> Value {
    if of.count == 0 {
        return json!({ "number": 0 });
    }
    json!({
        "number": of.count,
        "mean": of.mean(),
        "median": of.quantile(0.5),
        "p95": of.quantile(0.95),
        "max": of.max,
    })
}

fn reuse_json(it: &ReuseReport) -> Value {
    merge_objects(
        origins_json(&it.answers),
        json!({
            "questions": it.query_count,
            "repeated": it.repeated_query_count,
            "again": it.repeat_answers,
            "most_asked": list_json(&it.most_frequent, |often| {
                let more = json!({ "us": often.us });
                merge_objects(merge_objects(question_json(&often.query), origins_json(&often.answers)), more)
            }),
            "times": list_json(&it.repeat_buckets, |times| json!({
                "from": times.min, "to": times.max,
                "questions": times.queries, "answers": times.answers,
            })),
            "clients": list_json(&it.clients, |(client, answers)| {
                merge_objects(json!({ "client": client }), origins_json(answers))
            }),
            "day": it.answers_over_time.buckets().map(|(at, answers)| {
                merge_objects(json!({ "at_us": at }), origins_json(answers))
            }).collect::<Vec<_>>(),
            "day_us": it.answers_over_time.bucket_width_micros,
            "memory": it.resident_bytes.buckets().map(|(at, held)| json!({
                "at_us": at, "kept": held.cached_max, "open": held.open_max,
            })).collect::<Vec<_>>(),
            "memory_us": it.resident_bytes.bucket_width_micros,
        }),
    )
}

fn lifetime_json(life: &ViewLifetime) -> Value {
    let about = json!({
        "client": life.client, "pid": life.pid, "view": life.view, "end": life.end.key(),
        "opened_us": life.opened_at, "open_us": life.duration_us(),
    });
    merge_objects(about, question_json(&life.query))
}

fn lifetimes_json(it: &LifetimeReport) -> Value {
    let why = |why: &LoggedEvictionReason| match why {
        LoggedEvictionReason::Stale => "stale",
        LoggedEvictionReason::Budget => "budget",
        LoggedEvictionReason::Other => "other",
    };
    let mut gone: Map<String, Value> = it
        .cache_residency
        .lifetimes_us
        .iter()
        .map(|(of, lives)| (why(of).to_string(), spread_json(lives)))
        .collect();
    gone.insert("ended".into(), spread_json(&it.cache_residency.lifetimes_to_end_us));
    json!({
        "opened": it.opened,
        "closed": it.closed,
        "never_closed": it.unclosed_count(),
        "leaked": it.leaked,
        "broken_off": it.process_died,
        "open": it.open_at_end,
        "at_once": it.peak_open,
        "life_us": spread_json(&it.lifetimes_us),
        "never": list_json(&it.unclosed, lifetime_json),
        "clients": list_json(&it.clients, |client| json!({
            "client": client.client, "opened": client.opened, "leaked": client.leaked,
            "broken_off": client.process_died, "open": client.open_at_end, "life_us": spread_json(&client.lifetimes_us),
        })),
        "kept": {
            "kept": it.cache_residency.answers, "used": it.cache_residency.answers_used, "peak_bytes": it.cache_residency.peak_bytes, "life_us": gone,
        },
    })
}

fn work_json(work: &QueryWork) -> Value {
    json!({
        "us": spread_json(&work.us),
        "scanned": work.scanned,
        "tested": work.tested,
        "returned": work.returned,
        "scanned_per_returned": work.rows_per_item(),
    })
}

fn cost_json(it: &CostReport) -> Value {
    let worst = |group: &CostGroup| json!({ "source": group.source, "worst": question_json(&group.slowest_query) });
    json!({
        "run": work_json(&it.executed),
        "ready_us": spread_json(&it.cached_us),
        "collections": list_json(&it.collections, |group| {
            let of = json!({ "collection": group.collection });
            merge_objects(merge_objects(of, worst(group)), work_json(&group.work))
        }),
        "sources": list_json(&it.sources, |group| merge_objects(worst(group), work_json(&group.work))),
        "dearest": list_json(&it.costliest, |(of, cost)| merge_objects(question_json(of), work_json(cost))),
    })
}

fn cache_worth_json(it: &CacheReport) -> Value {
    let trial = |trial: &BudgetTrial| {
        json!({
            "budget": (trial.budget_bytes != UNLIMITED_BYTES).then_some(trial.budget_bytes),
            "hits": trial.hits,
            "rate": it.hit_rate(trial.hits),
            "peak_bytes": trial.peak_bytes,
            "saved_us": trial.saved_us,
            "stale": trial.stale_answers,
            "dropped": trial.evicted_answers,
        })
    };
    json!({
        "askings": it.answers,
        "hits": it.hits,
        "rate": it.hit_rate(it.hits),
        "budgets": it.budgets,
        "recorded": it.recorded.as_ref().map(trial),
        "trials": list_json(&it.trials, trial),
        "answer_bytes": spread_json(&it.answer_bytes),
    })
}

fn notified_views_json(it: &FanOutReport) -> Value {
    let [added, modified, removed] = it.items_delivered;
    json!({
        "changes": it.changes,
        "items": it.items,
        "open": it.views_open,
        "asked": it.queries_tested,
        "told": it.views_notified,
        "us": spread_json(&it.us),
        "views": list_json(&it.views_notified_buckets, |(from, to, changes)| json!({
            "from": from, "to": to, "changes": changes,
        })),
        "collections": list_json(&it.collections, |of| json!({
            "collection": of.collection, "kind": of.kind, "changes": of.changes,
            "asked": of.queries_tested, "told": of.views_notified, "most": of.max_views_notified,
        })),
        "added": added,
        "modified": modified,
        "removed": removed,
        "fresh": list_json(&it.resets, |(why, number)| json!({ "why": why, "number": number })),
    })
}
