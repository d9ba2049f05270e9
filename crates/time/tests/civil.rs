//! The calendar, day by day.

use larder_time::civil::{
    CivilTime, DAY_SECONDS, Date, FIRST_DAY_NUMBER, LAST_DAY_NUMBER, Weekday, first_day_of_month,
    first_day_of_week_one, first_day_of_year, week_year_and_number, weeks_in_year,
};

/// Counts through every day of the calendar.
#[test]
fn every_day_follows_the_one_before() {
    let mut expected = Date::new(1, 1, 1).expect("the first");
    for day in FIRST_DAY_NUMBER..=LAST_DAY_NUMBER {
        let date = Date::from_day_number(day);
        assert_eq!(date, expected, "day {day}");
        assert_eq!(date.day_number(), day);
        if date.day == 1 {
            assert_eq!(first_day_of_month(date.year, date.month), day);
            assert!(date.month > 1 || first_day_of_year(date.year) == day);
        }
        let next = Date::new(date.year, date.month, date.day + 1)
            .or_else(|| Date::new(date.year, date.month + 1, 1))
            .or_else(|| Date::new(date.year + 1, 1, 1));
        match next {
            Some(next) => expected = next,
            None => assert_eq!(day, LAST_DAY_NUMBER),
        }
    }
    assert_eq!(Weekday::from_day_number(0), Weekday::Thursday);
    assert_eq!(Date::from_day_number(i64::MAX).year, 9999);
    assert_eq!(Date::from_day_number(i64::MIN).year, 1);
}

#[test]
fn weeks_are_those_of_iso_8601() {
    let check = |year, month, day, expected| {
        let date = Date::new(year, month, day).expect("a date");
        assert_eq!(week_year_and_number(date.day_number(), Weekday::Monday), expected, "{date:?}");
    };
    check(2005, 1, 1, (2004, 53));
    check(2005, 1, 2, (2004, 53));
    check(2005, 12, 31, (2005, 52));
    check(2007, 1, 1, (2007, 1));
    check(2008, 12, 29, (2009, 1));
    check(2010, 1, 3, (2009, 53));
    check(2011, 1, 1, (2010, 52));
    for year in 1..9999 {
        let weeks = weeks_in_year(year, Weekday::Sunday);
        assert!(matches!(weeks, 52 | 53), "{year} has {weeks}");
        let first = first_day_of_week_one(year, Weekday::Sunday);
        assert_eq!(week_year_and_number(first.max(FIRST_DAY_NUMBER), Weekday::Sunday).1, 1);
    }
}

#[test]
fn nothing_leaves_the_calendar() {
    assert_eq!(CivilTime::MIN.to_string(), "00010101T000000");
    assert_eq!(CivilTime::MAX.to_string(), "99991231T235959");
    assert_eq!(CivilTime::MAX.saturating_add(i64::MAX), CivilTime::MAX);
    assert_eq!(CivilTime::MIN.saturating_add(i64::MIN), CivilTime::MIN);
    assert_eq!(CivilTime::new(CivilTime::MAX.seconds() + 1), None);
    assert_eq!(CivilTime::midnight(i64::MIN), CivilTime::MIN);
    assert_eq!(CivilTime::from_date(Date { year: 1970, month: 1, day: 1 }, DAY_SECONDS), None);
    assert_eq!(Date::new(1900, 2, 29), None);
}
