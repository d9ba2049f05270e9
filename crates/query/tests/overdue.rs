//! `is:overdue`: tasks with an open occurrence that was due.

use crate::book::{Book, search_request, uids};
use crate::calendar::component;
use larder_query::{Query, QueryContext};
use larder_time::civil::CivilTime;
use larder_time::value::IcalDateTime;
use larder_time::zone::ZoneDatabase;

fn book() -> Book {
    let items = [
        "VTODO\nUID:moment\nDUE:20260330T170000Z",
        "VTODO\nUID:day\nDUE;VALUE=DATE:20260330",
        "VTODO\nUID:done\nDUE:20260328T110000Z\nCOMPLETED:20260329T100000Z\nSTATUS:COMPLETED",
        "VTODO\nUID:cancelled\nDUE:20260328T110000Z\nSTATUS:CANCELLED",
        "VTODO\nUID:never\nSUMMARY:Some day",
        "VEVENT\nUID:event\nDTSTART:20260328T110000Z\nDUE:20260328T110000Z",
        "VTODO\nUID:long\nDTSTART:20260330T200000Z\nDURATION:PT1H",
        // Only the first occurrence is evaluated, so the rule is cheap.
        "VTODO\nUID:far\nDTSTART:19700101T000000Z\nDUE:99980101T000000Z\nRRULE:FREQ=SECONDLY",
        // The first occurrence is completed, the second is due on 30 March.
        "VTODO\nUID:weekly\nDTSTART:20260323T080000Z\nDUE:20260323T160000Z\nRRULE:FREQ=WEEKLY",
        "VTODO\nUID:weekly\nRECURRENCE-ID:20260323T080000Z\nDTSTART:20260323T080000Z\nDUE:20260323T160000Z\nSTATUS:COMPLETED",
        // Monthly on a day; the occurrence of February was moved to 31 March.
        "VTODO\nUID:monthly\nDTSTART;VALUE=DATE:20260228\nDUE;VALUE=DATE:20260228\nRRULE:FREQ=MONTHLY",
        "VTODO\nUID:monthly\nRECURRENCE-ID;VALUE=DATE:20260228\nDTSTART;VALUE=DATE:20260331\nDUE;VALUE=DATE:20260331",
    ]
    .map(component);
    Book::calendar(items.iter().map(String::as_str))
}

#[test]
fn a_task_is_overdue_after_its_due_time() {
    let book = book();
    let overdue = |now: &str| {
        let mut settings = QueryContext::default();
        settings.user_locale.zone = ZoneDatabase::open_bundled().get("Europe/Berlin").unwrap();
        let civil: CivilTime = IcalDateTime::parse(now).unwrap().civil;
        settings.user_locale.now = settings.user_locale.zone.to_instant(civil);
        uids(&book.reader(), &search_request(Query::parse_with("is:overdue", &settings).unwrap()))
    };
    let none: [&str; 0] = [];
    assert_eq!(overdue("20260323T120000"), none);
    // The next occurrence of `monthly` is due on 28 March, and overdue after that day.
    assert_eq!(overdue("20260328T235959"), none);
    assert_eq!(overdue("20260329T000000"), ["monthly"]);
    assert_eq!(overdue("20260330T175959"), ["monthly"]);
    assert_eq!(overdue("20260330T180001"), ["weekly", "monthly"]);
    assert_eq!(overdue("20260330T225959"), ["moment", "weekly", "monthly"]);
    assert_eq!(overdue("20260330T230000"), ["moment", "long", "weekly", "monthly"]);
    assert_eq!(overdue("20260331T000001"), ["moment", "day", "long", "weekly", "monthly"]);
    // The override is overdue like other tasks.
    let all = ["moment", "day", "long", "weekly", "monthly", "monthly"];
    assert_eq!(overdue("20260401T000001"), all);
}

/// An alarm before a due date is relative to the beginning of that day (RFC 5545, DUE).
#[test]
fn alarms_are_relative_to_the_start_of_the_due_date() {
    let alarm = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER;RELATED=END:-P1D\nEND:VALARM";
    let tasks = [
        format!("VTODO\nUID:due\nDUE;VALUE=DATE:20261205\n{alarm}"),
        format!("VTODO\nUID:days\nDTSTART;VALUE=DATE:20261203\nDUE;VALUE=DATE:20261205\n{alarm}"),
        format!(
            "VEVENT\nUID:fair\nDTSTART;VALUE=DATE:20261204\nDTEND;VALUE=DATE:20261205\n{alarm}"
        ),
    ]
    .map(|lines| component(&lines));
    let book = Book::calendar(tasks.iter().map(String::as_str));
    let find = |line: &str| {
        uids(
            &book.reader(),
            &search_request(Query::parse_with(line, &QueryContext::default()).unwrap()),
        )
    };
    assert_eq!(find("alarm:2026-12-04"), ["due", "days", "fair"]);
    let none: [&str; 0] = [];
    assert_eq!(find("alarm:2026-12-05"), none);
}
