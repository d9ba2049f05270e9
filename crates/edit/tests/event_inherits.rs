//! What a changed occurrence has of its series follows a change of that; what it says otherwise
//! stays, and is counted.

use crate::event::{CHANGED, DAILY, act, bytes, calendar, edit, select_occurrence};

/// An occurrence that was only moved has its words of the series; one with words of its own keeps
/// those, and that is said.
#[test]
fn what_a_changed_occurrence_has_of_its_series() {
    let alarm = "BEGIN:VALARM\nACTION:DISPLAY\nDESCRIPTION:A\nTRIGGER:-PT5M\nEND:VALARM";
    let (series, moved) =
        (format!("{DAILY}\nLOCATION:Hall\n{alarm}"), CHANGED.replace("SUMMARY:B", "SUMMARY:A"));
    let same = format!("{moved}\nLOCATION:Hall\n{alarm}");
    let other = format!("{}\nLOCATION:Bar", CHANGED.replace("20260306T120000", "20260307T120000"));
    for (scope, at) in [("all", ""), ("future", "20260305T120000")] {
        let mut book = calendar(&[&series, &same, &other]);
        let settings = edit(&[("location", "Room"), ("summary", "C"), ("alarm", "10m")]);
        let done = act(&mut book, "u", select_occurrence(scope, at), &settings, "new").unwrap();
        assert_eq!((done.changed.len(), done.diverged_overrides), (2, 1), "{scope}");
        let all = bytes(&book);
        let with = |text: &str| all.iter().filter(|item| item.contains(text)).count();
        let words = ["LOCATION:Room", "SUMMARY:C", "TRIGGER:-PT10M", "LOCATION:Bar", "SUMMARY:B"];
        assert_eq!(words.map(with), [2, 2, 2, 1, 1], "{scope}: {all:#?}");
        assert_eq!(book.store.check().unwrap().faults, []);
    }
    // What says that a task is done is the same together, or not at all.
    let tasks =
        "SUMMARY:T\nDTSTART:20260305T120000Z\nDUE:20260305T130000Z\nRRULE:FREQ=DAILY;COUNT=3";
    let done = "RECURRENCE-ID:20260306T120000Z\nDTSTART:20260306T120000Z\nDUE:20260306T130000Z\nSTATUS:COMPLETED\nCOMPLETED:20260306T100000Z";
    let mut book = calendar(&[tasks, done]);
    let half =
        act(&mut book, "u", select_occurrence("all", ""), &edit(&[("percent", "50")]), "new")
            .unwrap();
    assert_eq!((half.diverged_overrides, half.changed.len()), (1, 1));
    assert!(bytes(&book).iter().any(|item| item.contains("COMPLETED:20260306T100000Z")));
    // An alarm at a moment is of the series alone, and what names an alarm is no word of the
    // occurrence.
    let at = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER;VALUE=DATE-TIME:20260305T080000Z\nEND:VALARM";
    let named = alarm.replace("TRIGGER", "X-MINE:1\nTRIGGER");
    let mut book = calendar(&[&format!("{DAILY}\n{alarm}\n{at}"), &format!("{moved}\n{named}")]);
    let rings =
        act(&mut book, "u", select_occurrence("all", ""), &edit(&[("alarm", "10m")]), "new")
            .unwrap();
    assert_eq!((rings.diverged_overrides, rings.changed.len()), (0, 2));
    // How long it takes is of the series, unless it was changed.
    let longer = CHANGED.replace("20260306T120000", "20260307T120000") + "\nDURATION:PT3H";
    let mut book = calendar(&[DAILY, &format!("{moved}\nDURATION:PT1H"), &longer]);
    let lasts =
        act(&mut book, "u", select_occurrence("all", ""), &edit(&[("for", "2h")]), "new").unwrap();
    assert_eq!((lasts.diverged_overrides, lasts.changed.len()), (1, 2));
    let all = bytes(&book).concat();
    let ends = ["20260305T140000", "DTEND;TZID=Europe/Prague:20260306T200000", "DURATION:PT3H"];
    assert!(ends.iter().all(|text| all.contains(text)), "{all}");
    // What it has to itself is no matter where that is not asked for; where the series moves, it is
    // told.
    let mut book = calendar(&[&series, &other]);
    let done =
        act(&mut book, "u", select_occurrence("all", ""), &edit(&[("priority", "1")]), "new")
            .unwrap();
    assert_eq!(done.diverged_overrides, 0);
    let done = act(&mut book, "u", select_occurrence("all", ""), &edit(&[("move", "+1h")]), "new")
        .unwrap();
    assert_eq!(done.diverged_overrides, 1);
}
