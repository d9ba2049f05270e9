//! The calendar, day by day.

use larder_time::civil::{
    Civil, DAY, Date, FIRST_DAY, LAST_DAY, Weekday, month_start, week_of, week_one, weeks_in,
    year_start,
};

/// Every day there is, by counting.
#[test]
fn every_day_follows_the_one_before() {
    let mut expected = Date::new(1, 1, 1).expect("the first");
    for day in FIRST_DAY..=LAST_DAY {
        let date = Date::of_day(day);
        assert_eq!(date, expected, "day {day}");
        assert_eq!(date.day_number(), day);
        if date.day == 1 {
            assert_eq!(month_start(date.year, date.month), day);
            assert!(date.month > 1 || year_start(date.year) == day);
        }
        let next = Date::new(date.year, date.month, date.day + 1)
            .or_else(|| Date::new(date.year, date.month + 1, 1))
            .or_else(|| Date::new(date.year + 1, 1, 1));
        match next {
            Some(next) => expected = next,
            None => assert_eq!(day, LAST_DAY),
        }
    }
    assert_eq!(Weekday::of_day(0), Weekday::Thursday);
    assert_eq!(Date::of_day(i64::MAX).year, 9999);
    assert_eq!(Date::of_day(i64::MIN).year, 1);
}

#[test]
fn weeks_as_in_iso_8601() {
    let check = |year, month, day, expected| {
        let date = Date::new(year, month, day).expect("a date");
        assert_eq!(week_of(date.day_number(), Weekday::Monday), expected, "{date:?}");
    };
    check(2005, 1, 1, (2004, 53));
    check(2005, 1, 2, (2004, 53));
    check(2005, 12, 31, (2005, 52));
    check(2007, 1, 1, (2007, 1));
    check(2008, 12, 29, (2009, 1));
    check(2010, 1, 3, (2009, 53));
    check(2011, 1, 1, (2010, 52));
    for year in 1..9999 {
        let weeks = weeks_in(year, Weekday::Sunday);
        assert!(matches!(weeks, 52 | 53), "{year} has {weeks}");
        let first = week_one(year, Weekday::Sunday);
        assert_eq!(week_of(first.max(FIRST_DAY), Weekday::Sunday).1, 1);
    }
}

#[test]
fn nothing_leaves_the_calendar() {
    assert_eq!(Civil::MIN.to_string(), "00010101T000000");
    assert_eq!(Civil::MAX.to_string(), "99991231T235959");
    assert_eq!(Civil::MAX.plus(i64::MAX), Civil::MAX);
    assert_eq!(Civil::MIN.plus(i64::MIN), Civil::MIN);
    assert_eq!(Civil::new(Civil::MAX.seconds() + 1), None);
    assert_eq!(Civil::midnight(i64::MIN), Civil::MIN);
    assert_eq!(Civil::at(Date { year: 1970, month: 1, day: 1 }, DAY), None);
    assert_eq!(Date::new(1900, 2, 29), None);
}
