//! A query log's report as JSON, as docs/output.md has it.

use larder_measure::queries::cost::{Cost, Group, Work};
use larder_measure::queries::informed::Informed;
use larder_measure::queries::lives::{Life, Lives};
use larder_measure::queries::log::Why;
use larder_measure::queries::reuse::{Origins, Reuse};
use larder_measure::queries::spread::Spread;
use larder_measure::queries::worth::{Trial, UNLIMITED, Worth};
use larder_measure::queries::{Question, Report};
use serde_json::{Map, Value, json};

/// The whole report.
pub(super) fn report_json(log: &str, report: &Report) -> Value {
    let broken = report.broken.named.iter();
    json!({
        "log": log,
        "lines": report.lines,
        "unknown": report.unknown,
        "broken": report.broken.lines,
        "broken_lines": broken.map(|(line, why)| json!({ "line": line, "why": why })).collect::<Vec<_>>(),
        "processes": report.processes,
        "from_us": report.time.0,
        "to_us": report.time.1,
        "reuse": reuse(&report.reuse),
        "lives": lives(&report.lives),
        "cost": cost(&report.cost),
        "worth": worth(&report.worth),
        "informed": informed(&report.informed),
    })
}

/// An object, and one more field or several of it.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

fn list<T>(of: &[T], value: impl Fn(&T) -> Value) -> Value {
    of.iter().map(value).collect()
}

fn question(question: &Question) -> Value {
    json!({
        "query": question.query,
        "kind": question.kind,
        "collection": question.collection,
    })
}

fn origins(answers: &Origins) -> Value {
    json!({
        "answers": answers.all(),
        "run": answers.run,
        "cache": answers.cache,
        "shared": answers.shared,
    })
}

fn spread(of: &Spread) -> Value {
    if of.number == 0 {
        return json!({ "number": 0 });
    }
    json!({
        "number": of.number,
        "mean": of.mean(),
        "median": of.quantile(0.5),
        "p95": of.quantile(0.95),
        "max": of.most,
    })
}

fn reuse(it: &Reuse) -> Value {
    with(
        origins(&it.answers),
        json!({
            "questions": it.questions,
            "repeated": it.repeated,
            "again": it.again,
            "most_asked": list(&it.most, |often| {
                let more = json!({ "us": often.us });
                with(with(question(&often.question), origins(&often.answers)), more)
            }),
            "times": list(&it.times, |times| json!({
                "from": times.least, "to": times.most,
                "questions": times.questions, "answers": times.answers,
            })),
            "clients": list(&it.clients, |(client, answers)| {
                with(json!({ "client": client }), origins(answers))
            }),
            "day": it.day.boxes().map(|(at, answers)| {
                with(json!({ "at_us": at }), origins(answers))
            }).collect::<Vec<_>>(),
            "day_us": it.day.width,
            "memory": it.held.boxes().map(|(at, held)| json!({
                "at_us": at, "kept": held.kept, "open": held.open,
            })).collect::<Vec<_>>(),
            "memory_us": it.held.width,
        }),
    )
}

fn life(life: &Life) -> Value {
    let about = json!({
        "client": life.client, "pid": life.pid, "view": life.view, "end": life.end.word(),
        "opened_us": life.opened, "open_us": life.us(),
    });
    with(about, question(&life.question))
}

fn lives(it: &Lives) -> Value {
    let why = |why: &Why| match why {
        Why::Stale => "stale",
        Why::Budget => "budget",
        Why::Other => "other",
    };
    let mut gone: Map<String, Value> =
        it.kept.lives.iter().map(|(of, lives)| (why(of).to_string(), spread(lives))).collect();
    gone.insert("ended".into(), spread(&it.kept.ended));
    json!({
        "opened": it.opened,
        "closed": it.closed,
        "never_closed": it.never_closed(),
        "leaked": it.leaked,
        "broken_off": it.broken_off,
        "open": it.open,
        "at_once": it.at_once,
        "life_us": spread(&it.lives),
        "never": list(&it.never, life),
        "clients": list(&it.clients, |client| json!({
            "client": client.client, "opened": client.opened, "leaked": client.leaked,
            "broken_off": client.broken_off, "open": client.open, "life_us": spread(&client.lives),
        })),
        "kept": {
            "kept": it.kept.kept, "used": it.kept.used, "peak_bytes": it.kept.peak, "life_us": gone,
        },
    })
}

fn work(work: &Work) -> Value {
    json!({
        "us": spread(&work.us),
        "scanned": work.scanned,
        "tested": work.tested,
        "returned": work.returned,
        "scanned_per_returned": work.scanned_per_returned(),
    })
}

fn cost(it: &Cost) -> Value {
    let worst = |group: &Group| json!({ "source": group.source, "worst": question(&group.worst) });
    json!({
        "run": work(&it.run),
        "ready_us": spread(&it.ready),
        "collections": list(&it.collections, |group| {
            let of = json!({ "collection": group.collection });
            with(with(of, worst(group)), work(&group.work))
        }),
        "sources": list(&it.sources, |group| with(worst(group), work(&group.work))),
        "dearest": list(&it.dearest, |(of, cost)| with(question(of), work(cost))),
    })
}

fn worth(it: &Worth) -> Value {
    let trial = |trial: &Trial| {
        json!({
            "budget": (trial.budget != UNLIMITED).then_some(trial.budget),
            "hits": trial.hits,
            "rate": it.rate(trial.hits),
            "peak_bytes": trial.peak,
            "saved_us": trial.saved_us,
            "stale": trial.stale,
            "dropped": trial.dropped,
        })
    };
    json!({
        "askings": it.askings,
        "hits": it.hits,
        "rate": it.rate(it.hits),
        "budgets": it.budgets,
        "recorded": it.recorded.as_ref().map(trial),
        "trials": list(&it.trials, trial),
        "answer_bytes": spread(&it.bytes),
    })
}

fn informed(it: &Informed) -> Value {
    let [added, modified, removed] = it.delivered;
    json!({
        "changes": it.changes,
        "items": it.items,
        "open": it.open,
        "asked": it.asked,
        "told": it.told,
        "us": spread(&it.us),
        "views": list(&it.views, |(from, to, changes)| json!({
            "from": from, "to": to, "changes": changes,
        })),
        "collections": list(&it.collections, |of| json!({
            "collection": of.collection, "kind": of.kind, "changes": of.changes,
            "asked": of.asked, "told": of.told, "most": of.most,
        })),
        "added": added,
        "modified": modified,
        "removed": removed,
        "fresh": list(&it.fresh, |(why, number)| json!({ "why": why, "number": number })),
    })
}
