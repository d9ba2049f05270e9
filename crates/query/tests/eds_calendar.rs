//! The calendar functions of evolution-data-server, with their edge cases. The expected results are
//! the results of its evaluator (`e-cal-backend-sexp.c`); "differs" marks a deliberate difference.
//!
//! `[A B]` stands for two calls of `make-time`.

use crate::book::{Book, search_request, uids};
use crate::calendar::component;
use larder_query::{Query, QueryContext};
use larder_time::civil::Instant;
use larder_time::value::IcalDateTime;
use larder_time::zone::ZoneDatabase;
use std::fmt::Write as _;

fn book() -> Book {
    let items = [
        "VEVENT\nUID:meet\nDTSTART;TZID=Europe/Berlin:20260330T100000\nDURATION:PT1H\nSUMMARY:Réunion Façade
         LOCATION:Café\nDESCRIPTION:wie besprochen\nORGANIZER;CN=Bob:mailto:bob@example.org
         ATTENDEE;CN=Anna:mailto:anna@example.org\nCATEGORIES:Work,Home\nPRIORITY:1\nSTATUS:CONFIRMED
         BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT15M\nREPEAT:1\nDURATION:PT5M\nEND:VALARM",
        "VEVENT\nUID:day\nDTSTART;VALUE=DATE:20260330\nCLASS:PRIVATE\nPRIORITY:5\nATTACH:https://example.org/a",
        "VEVENT\nUID:float\nDTSTART:20260330T233000\nDTEND:20260330T234500\nSUMMARY:facade\nPRIORITY:0",
        "VEVENT\nUID:zero\nDTSTART:20260330T120000Z\nCLASS:PUBLIC",
        "VEVENT\nUID:week\nDTSTART:20260302T090000Z\nDTEND:20260302T093000Z\nRRULE:FREQ=WEEKLY;COUNT=10
         EXDATE:20260309T090000Z",
        "VEVENT\nUID:week\nRECURRENCE-ID:20260316T090000Z\nDTSTART:20260401T090000Z\nDTEND:20260401T093000Z",
        "VEVENT\nUID:birthday\nDTSTART;VALUE=DATE:19700330\nRRULE:FREQ=YEARLY",
        "VTODO\nUID:task\nDUE:20260330T170000Z\nSTATUS:NEEDS-ACTION\nPERCENT-COMPLETE:50\nPRIORITY:9",
        "VTODO\nUID:done\nDTSTART:20260328T100000Z\nDUE:20260328T110000Z\nCOMPLETED:20260329T100000Z\nSTATUS:COMPLETED",
        "VJOURNAL\nUID:memo\nDTSTART;VALUE=DATE:20260330\nCATEGORIES:work\nCOMMENT:sehr schön",
    ]
    .map(component);
    Book::calendar(items.iter().map(String::as_str))
}

const ALL: &[&str] =
    &["meet", "day", "float", "zero", "week", "week", "birthday", "task", "done", "memo"];

/// The context of all queries: Berlin, 30 March 2026, in the afternoon.
fn settings() -> QueryContext {
    let mut settings = QueryContext::default();
    settings.user_locale.zone = ZoneDatabase::open_bundled().get("Europe/Berlin").unwrap();
    settings.user_locale.now = instant("20260330T120000");
    settings
}

fn instant(text: &str) -> Instant {
    Instant::from_seconds_clamped(IcalDateTime::parse(text).unwrap().civil.seconds())
}

/// Expands the `[A B]` of an expression.
fn day_range(text: &str) -> String {
    let mut expanded = String::new();
    for part in text.split_inclusive(']') {
        match part.split_once('[') {
            None => expanded += part,
            Some((before, range)) => {
                let (from, to) = range.trim_end_matches(']').split_once(' ').unwrap();
                write!(expanded, "{before}(make-time \"{from}\") (make-time \"{to}\")").unwrap();
            }
        }
    }
    expanded
}

/// Checks all rows and reports all failures together.
fn check(rows: &[(&str, &[&str])]) {
    let book = book();
    let reader = book.reader();
    let mut wrong = String::new();
    for (text, expect) in rows {
        let query = Query::parse_sexp_with(&day_range(text), &settings());
        let request = search_request(query.unwrap_or_else(|error| panic!("{text}: {error}")));
        let (found, walked) =
            (uids(&reader, &request), larder_query::full_scan(&reader, &request).unwrap().len());
        if found != *expect || walked != found.len() {
            writeln!(wrong, "{text} finds {found:?}, not {expect:?}, and {walked}").unwrap();
        }
        let again = Query::parse_sexp_with(&request.query.to_string(), &settings());
        assert_eq!(again.as_ref(), Ok(&request.query), "{text}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn occur_in_time_range_matches_occurrences() {
    check(&[
        // The start of an event is included and its end is not; time zones apply; days are in UTC.
        (
            "(occur-in-time-range? [20260330T080000Z 20260330T083000Z])",
            &["meet", "day", "birthday", "memo"],
        ),
        (
            "(occur-in-time-range? [20260330T085959Z 20260330T090000Z])",
            &["meet", "day", "birthday", "memo"],
        ),
        (
            "(occur-in-time-range? [20260330T090000Z 20260330T093000Z])",
            &["day", "week", "birthday", "memo"],
        ),
        (
            "(occur-in-time-range? [20260330T093000Z 20260330T100000Z])",
            &["day", "birthday", "memo"],
        ),
        // A time without Z and a date are in UTC as well.
        (
            "(occur-in-time-range? [20260330T080000 20260330T083000])",
            &["meet", "day", "birthday", "memo"],
        ),
        ("(occur-in-time-range? [20260329 20260330])", &[]),
        // An event without a duration is in a range that begins at its time, and not in one that
        // ends there.
        (
            "(occur-in-time-range? [20260330T120000Z 20260330T120001Z])",
            &["day", "zero", "birthday", "memo"],
        ),
        (
            "(occur-in-time-range? [20260330T110000Z 20260330T120000Z])",
            &["day", "birthday", "memo"],
        ),
        // Floating times are in UTC unless a time zone is named.
        (
            "(occur-in-time-range? [20260330T233000Z 20260330T234000Z])",
            &["day", "float", "birthday", "memo"],
        ),
        (
            "(occur-in-time-range? [20260330T213000Z 20260330T214000Z] \"Europe/Berlin\")",
            &["day", "float", "birthday", "memo"],
        ),
        ("(occur-in-time-range? [20260330T220000Z 20260330T223000Z] \"Europe/Berlin\")", &[]),
        (
            "(occur-in-time-range? [20260329T220000Z 20260329T223000Z] \"Europe/Berlin\")",
            &["day", "birthday", "memo"],
        ),
        // differs: there the time zone cannot widen the range, and the event is missed.
        (
            "(occur-in-time-range? [20260331T033000Z 20260331T034000Z] \"America/New_York\")",
            &["day", "float", "birthday", "memo"],
        ),
        // An exception, and the old and new time of a moved occurrence; differs: there the new time
        // does not match.
        ("(occur-in-time-range? [20260309T090000Z 20260309T093000Z])", &[]),
        ("(occur-in-time-range? [20260316T090000Z 20260316T093000Z])", &[]),
        ("(occur-in-time-range? [20260401T090000Z 20260401T093000Z])", &["week"]),
        // The last of ten occurrences, and the time after it.
        ("(occur-in-time-range? [20260504T090000Z 20260504T093000Z])", &["week"]),
        ("(occur-in-time-range? [20260511T090000Z 20260511T093000Z])", &[]),
        // A rule without an end: before its start and far in the future.
        ("(occur-in-time-range? [19690101 19700330])", &[]),
        ("(occur-in-time-range? [20990330 20990331])", &["birthday"]),
        ("(occur-in-time-range? [20990331 21000330])", &[]),
        // A task is at its due time, or from its start to its due time.
        (
            "(occur-in-time-range? [20260330T170000Z 20260330T170001Z])",
            &["day", "birthday", "task", "memo"],
        ),
        ("(occur-in-time-range? [20260328T103000Z 20260328T103001Z])", &["done"]),
        // An empty range.
        ("(occur-in-time-range? [20260331 20260330])", &[]),
        ("(occur-in-time-range? [20260330T120000Z 20260330T120000Z])", &[]),
        // The outermost call may lack parentheses; text after it is ignored.
        ("occur-in-time-range? [20990330 20990331]", &["birthday"]),
        ("(occur-in-time-range? [20990330 20990331])) trailing", &["birthday"]),
    ]);
}

#[test]
fn times_of_tasks_starts_and_alarms_are_compared() {
    check(&[
        // Both ends are included.
        ("(due-in-time-range? [20260330T170000Z 20260330T170000Z])", &["task"]),
        ("(due-in-time-range? [20260330T160000Z 20260330T170000Z])", &["task"]),
        ("(due-in-time-range? [20260330T170001Z 20260331T170000Z])", &[]),
        ("(due-in-time-range? [20260328 20260331])", &["task", "done"]),
        ("(completed-before? (make-time \"20260329T100001Z\"))", &["done"]),
        ("(completed-before? (make-time \"20260329T100000Z\"))", &[]),
        // The time itself is included; it is compared in the zone of the event.
        ("(starts-before? (make-time \"19700330T000000Z\"))", &["birthday"]),
        ("(starts-before? (make-time \"20260302T085959Z\"))", &["birthday"]),
        ("(starts-before? (make-time \"20260302T090000Z\"))", &["week", "birthday"]),
        (
            "(starts-before? (make-time \"20260330T080000Z\"))",
            &["meet", "day", "week", "birthday", "done", "memo"],
        ),
        // An item without a start never matches.
        ("(not (starts-before? (make-time \"20300101\")))", &["task"]),
        // An alarm and its repetition.
        ("(has-alarms-in-range? [20260330T074500Z 20260330T074501Z])", &["meet"]),
        ("(has-alarms-in-range? [20260330T074501Z 20260330T075000Z])", &[]),
        ("(has-alarms-in-range? [20260330T075000Z 20260330T075001Z])", &["meet"]),
        ("(has-alarms-in-range? [20260330T075001Z 20270330T075001Z])", &[]),
    ]);
}

#[test]
fn relative_times_are_resolved() {
    check(&[
        // The clock is the user's; in evolution-data-server it is the clock of the service.
        (
            "(occur-in-time-range? (time-now) (time-add-day (time-now) 1))",
            &["day", "float", "zero", "birthday", "task", "memo"],
        ),
        ("(occur-in-time-range? (time-day-begin (time-now)) (time-day-begin (time-now)))", &[]),
        (
            "(occur-in-time-range? (time-day-begin (time-now)) (time-day-end (time-now)) \"Europe/Berlin\")",
            &["meet", "day", "float", "zero", "week", "birthday", "task", "memo"],
        ),
        ("(due-in-time-range? (time-add-day (time-now) -2) (time-now))", &[]),
        ("(due-in-time-range? (time-add-day (time-now) -3) (time-now))", &["done"]),
    ]);
}

#[test]
fn numbers_are_compared() {
    let year = "[20260101 20270101]";
    let count = |text: &str| text.replace("YEAR", year);
    check(&[
        (
            &count("(= 1 (occurrences-count? YEAR))"),
            &["meet", "day", "float", "zero", "week", "birthday", "task", "done", "memo"],
        ),
        // One of ten occurrences is excluded; differs: there the override counts as well.
        (&count("(= (occurrences-count? YEAR) 8)"), &["week"]),
        (&count("(> (occurrences-count? YEAR) 1)"), &["week"]),
        (&count("(< (occurrences-count? YEAR) 1)"), &[]),
        (&count("(and (= (occurrences-count?) 8) (occur-in-time-range? YEAR))"), &["week"]),
        ("(= -1 (occurrences-count?))", ALL),
        ("(= (percent-complete?) 50)", &["task"]),
        ("(> 51 (percent-complete?))", ALL),
        ("(> (percent-complete?) -1)", &["task"]),
    ]);
}

#[test]
fn texts_are_compared() {
    check(&[
        ("(uid? \"WEEK\")", &["week", "week"]),
        ("(uid? \"wee\")", &[]),
        ("(contains? \"any\" \"facade\")", &["meet", "float"]),
        ("(contains? \"summary\" \"FAÇADE\")", &["meet", "float"]),
        ("(contains? \"summary\" \"n f\")", &["meet"]),
        ("(contains? \"any\" \"anna\")", &[]),
        ("(contains? \"location\" \"cafe\")", &["meet"]),
        ("(contains? \"description\" \"besproch\")", &["meet"]),
        ("(contains? \"comment\" \"schon\")", &["memo"]),
        ("(contains? \"attendee\" \"anna\")", &["meet"]),
        ("(contains? \"attendee\" \"EXAMPLE.org\")", &["meet"]),
        ("(contains? \"organizer\" \"bob\")", &["meet"]),
        // Exact values; without CLASS an item is public.
        ("(contains? \"classification\" \"Private\")", &["day"]),
        ("(contains? \"classification\" \"PRIVATE\")", &[]),
        ("(not (contains? \"classification\" \"Public\"))", &["day"]),
        ("(contains? \"status\" \"NEEDS ACTION\")", &["task"]),
        ("(contains? \"status\" \"COMPLETED\")", &["done"]),
        ("(contains? \"status\" \"CONFIRMED\")", &["meet"]),
        ("(not (contains? \"status\" \"NOT STARTED\"))", &["meet", "task", "done"]),
        ("(contains? \"priority\" \"HIGH\")", &["meet"]),
        ("(contains? \"priority\" \"NORMAL\")", &["day"]),
        ("(contains? \"priority\" \"LOW\")", &["task"]),
        ("(not (contains? \"priority\" \"UNDEFINED\"))", &["meet", "day", "task"]),
        ("(contains? \"priority\" \"URGENT\")", &[]),
    ]);
}

#[test]
fn presence_is_tested() {
    check(&[
        ("(not (has-start?))", &["task"]),
        ("(has-end?)", &["float", "week", "week"]),
        ("(has-due?)", &["task", "done"]),
        ("(has-duration?)", &["meet"]),
        ("(has-alarms?)", &["meet"]),
        ("(has-attachments?)", &["day"]),
        ("(has-recurrences?)", &["week", "week", "birthday"]),
        ("(has-categories? \"Work\")", &["meet"]),
        ("(has-categories? \"Home\" \"Work\")", &["meet"]),
        ("(has-categories? \"Home\" \"Play\")", &[]),
        ("(not (has-categories? #f))", &["meet", "memo"]),
        ("(is-completed?)", &["done"]),
        ("#t", ALL),
        ("#f", &[]),
        ("(and)", ALL),
        ("(or)", &[]),
        ("(or (uid? \"zero\") (is-completed?))", &["zero", "done"]),
        ("(and (not (is-completed?)) (has-due?))", &["task"]),
    ]);
}

/// differs: there an invalid call is an error for each object, which then does not match.
#[test]
fn invalid_calls_are_refused() {
    for (text, expect) in [
        ("(occur-in-time-range? (make-time \"20260330\"))", "expected a time"),
        ("(occur-in-time-range? 1 2)", "expected a time"),
        ("(occur-in-time-range? (make-time \"2026\") (time-now))", "2026"),
        ("(occur-in-time-range? [20260330 20260331] \"Nowhere/At all\")", "unknown time zone"),
        ("(contains? \"colour\" \"red\")", "contains? does not support the field"),
        ("(completed-before? \"20260330\")", "expected a time"),
        ("(= 1 2", "unclosed"),
        ("(= (uid? \"a\") 1)", "does not return a number"),
        ("(no-such-function?)", "unknown function"),
        ("(time-now)", "unknown function"),
        ("(stamp \"SUMMARY\" [20260330 20260331])", "contains no date or time"),
        ("(kind \"animal\")", "not a kind of item"),
    ] {
        let error = Query::parse_sexp_with(&day_range(text), &settings()).unwrap_err().to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
}

/// The extensions, which make it possible to write every query as an S-expression.
#[test]
fn extensions_express_every_query() {
    check(&[
        ("(kind \"task\")", &["task", "done"]),
        ("(kind \"memo\")", &["memo"]),
        ("(kind \"contact\")", &[]),
        ("(= (number \"priority\") 5)", &["day"]),
        ("(stamp \"DUE\" [20260330T170000Z 20260330T170001Z])", &["task"]),
        ("(stamp \"dtstart\" [20260330T213000Z 20260330T213001Z] \"Europe/Berlin\")", &["float"]),
    ]);
}
