//! Zones: gaps and folds, definitions compared with the zones of the system, and the resolution of
//! a TZID.

use larder_time::civil::{CivilTime, Instant};
use larder_time::rule::Rule;
use larder_time::value::{IcalDateTime, UtcOffset};
use larder_time::zone::{
    OffsetDifference, Vtimezone, Zone, ZoneDatabase, ZoneObservance, has_same_offsets,
    offset_differences,
};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) static ZONES: LazyLock<ZoneDatabase> =
    LazyLock::new(|| ZoneDatabase::new(jiff::tz::db().clone()));

pub(crate) fn zone(name: &str) -> Zone {
    ZONES.get(name).unwrap_or_else(|| panic!("the system has no {name}"))
}

pub(crate) fn civil(text: &str) -> CivilTime {
    IcalDateTime::parse(text).expect("a date or a date-time").civil
}

pub(crate) fn utc(text: &str) -> Instant {
    Instant::from_seconds_clamped(civil(text).seconds())
}

/// Builds a definition of lines `STANDARD|DAYLIGHT onset from to rule|-`.
fn definition(parts: &[&str]) -> Vtimezone {
    let observance = |part: &&str| {
        let [kind, onset, from, to, rule] =
            part.split(' ').collect::<Vec<_>>().try_into().expect("five words");
        let (dates, rules): (Vec<&str>, Vec<&str>) =
            rule.split('|').filter(|text| *text != "-").partition(|text| !text.contains('='));
        ZoneObservance {
            is_daylight: kind == "DAYLIGHT",
            onset: civil(onset),
            offset_from: UtcOffset::parse(from).expect("an offset"),
            offset_to: UtcOffset::parse(to).expect("an offset"),
            rules: rules.into_iter().map(|text| Rule::parse(text).expect("a rule")).collect(),
            rdates: dates
                .into_iter()
                .map(|text| IcalDateTime::parse(text).expect("a date"))
                .collect(),
        }
    };
    Vtimezone { observances: parts.iter().map(observance).collect() }
}

const BERLIN: [&str; 2] = [
    "DAYLIGHT 19810329T020000 +0100 +0200 FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3",
    "STANDARD 19961027T030000 +0200 +0100 FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10",
];

#[test]
fn local_times_have_instants() {
    let check = |name: &str, shown: &str, moment: &str| {
        let found = zone(name).to_instant(civil(shown));
        assert_eq!(
            CivilTime::from_seconds_clamped(found.seconds()).to_string(),
            moment,
            "{name} {shown}"
        );
    };
    check("Europe/Berlin", "20260701T120000", "20260701T100000");
    check("Europe/Berlin", "20260101T120000", "20260101T110000");
    // In a gap: the offset before it applies, so 02:30 is 03:30.
    check("Europe/Berlin", "20260329T015959", "20260329T005959");
    check("Europe/Berlin", "20260329T023000", "20260329T013000");
    check("Europe/Berlin", "20260329T030000", "20260329T010000");
    // In a fold: the first pass.
    check("Europe/Berlin", "20261025T023000", "20261025T003000");
    check("Europe/Berlin", "20261025T030000", "20261025T020000");
    // Before 1970, in a summer of double daylight saving, and after 2050, where the table of
    // transitions ends.
    check("Europe/Berlin", "19450701T120000", "19450701T090000");
    check("Europe/Berlin", "20600701T120000", "20600701T100000");
    check("Europe/Berlin", "20600328T023000", "20600328T013000");
    check("Europe/Berlin", "20601031T023000", "20601031T003000");
    check("Europe/Berlin", "99990701T120000", "99990701T100000");
    check("America/New_York", "20260308T023000", "20260308T073000");
    check("America/New_York", "20261101T013000", "20261101T053000");
    // A whole day was skipped.
    check("Pacific/Apia", "20111230T120000", "20111230T220000");
    check("Australia/Lord_Howe", "20260405T014500", "20260404T144500");
    check("UTC", "20260701T120000", "20260701T120000");
    let berlin = zone("Europe/Berlin");
    assert_eq!(berlin.to_civil(utc("20260329T013000")), civil("20260329T033000"));
    assert_eq!(berlin.to_civil(berlin.to_instant(CivilTime::MAX)), CivilTime::MAX);
    assert_eq!(berlin.to_civil(Instant::MAX), CivilTime::MAX);
    assert_eq!(berlin.to_civil(Instant::MIN), CivilTime::MIN);
}

#[test]
fn definitions_behave_like_system_zones() {
    let defined_zone = Zone::from_vtimezone(definition(&BERLIN), "Custom");
    let berlin = zone("Europe/Berlin");
    let (from, to) = (utc("19970101"), utc("21000101"));
    assert!(has_same_offsets(&defined_zone, &berlin, from, to));
    // The same holds after the end of the table of transitions, in the gap and in the fold.
    for shown in [
        "22500328T013000",
        "22500328T023000",
        "22500328T033000",
        "22500701",
        "22501031T023000",
        "22501031T033000",
        "98760101",
    ] {
        assert_eq!(
            defined_zone.to_instant(civil(shown)),
            berlin.to_instant(civil(shown)),
            "{shown}"
        );
    }
    // Before the first onset, its TZOFFSETFROM applies.
    assert_eq!(defined_zone.offset(utc("19700701")), 3600);
    let one = Zone::from_vtimezone(definition(&["STANDARD 16010101T000000 -0300 -0500 -"]), "One");
    assert_eq!((one.offset(utc("15000101")), one.offset(utc("20260101"))), (-10_800, -18_000));
    // UNTIL of a zone is in UTC, by the offset before the transition.
    let until = Zone::from_vtimezone(
        definition(&[
            "DAYLIGHT 20070311T020000 -0500 -0400 FREQ=YEARLY;BYMONTH=3;BYDAY=2SU;UNTIL=20090308T070000Z",
            "STANDARD 20071104T020000 -0400 -0500 FREQ=YEARLY;BYMONTH=11;BYDAY=1SU;UNTIL=20091101T060000Z",
            "DAYLIGHT 20150308T020000 -0500 -0400 20160313T020000|20170312T070000Z",
        ]),
        "Until",
    );
    let changes = until.transitions(Instant::MIN, Instant::MAX);
    assert_eq!(changes.len(), 7, "{changes:?}");
    assert_eq!(changes.last(), Some(&(utc("20150308T070000"), -14_400)));
    assert_eq!(Zone::from_vtimezone(Vtimezone::default(), "").offset(utc("20260101")), 0);
}

/// A definition with more transitions than any real zone is cut off, not followed without end.
#[test]
fn hostile_definitions_are_bounded() {
    let parts: Vec<&str> = (0..200)
        .map(|n| match n % 2 {
            0 => "DAYLIGHT 20000101T000000 +0100 +0200 FREQ=SECONDLY;INTERVAL=2",
            _ => "STANDARD 20000101T000001 +0200 +0100 FREQ=SECONDLY;INTERVAL=2;COUNT=1000000000",
        })
        .collect();
    let defined_zone = Zone::from_vtimezone(definition(&parts), "Hostile");
    assert!(defined_zone.transitions(Instant::MIN, Instant::MAX).len() < 20_000);
    let _ = defined_zone.to_instant(civil("20260101"));
    assert!(!defined_zone.is_complete());
    // Rules that take long to yield an occurrence, or never do: all of them share one budget.
    for rule in [
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=SECONDLY;BYHOUR=0;COUNT=5000000",
        "FREQ=MINUTELY;BYMONTH=3;BYDAY=SU;BYHOUR=2;BYMINUTE=0",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU",
    ] {
        let parts: Vec<_> = (0..5_000)
            .map(|n| format!("STANDARD {}0101T000000 +0100 +0200 {rule}", 1600 + n % 400))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let defined_zone = Zone::from_vtimezone(definition(&parts), "Hostile");
        assert!(!defined_zone.is_complete());
        for year in 2000..3000 {
            let _ = defined_zone.to_instant(civil(&format!("{year}0101")));
        }
    }
    // A definition without an end is complete if its rules are plain.
    let defined_zone = Zone::from_vtimezone(definition(&BERLIN), "Berlin");
    assert!(defined_zone.is_complete());
    assert_eq!(defined_zone.offset(utc("99000701")), 7_200);
    assert_eq!(defined_zone.offset(utc("99000101")), 3_600);
}

#[test]
fn equal_rules_have_one_text() {
    let same = definition(&[
        BERLIN[1],
        "DAYLIGHT 19810329T020000 +0100 +0200 FREQ=YEARLY;INTERVAL=1;WKST=SU;BYMONTH=3;BYDAY=-1SU",
    ]);
    assert_eq!(same.canonical_text(), definition(&BERLIN).canonical_text());
    let other = definition(&BERLIN[..1]);
    assert_ne!(other.canonical_text(), definition(&BERLIN).canonical_text());
    assert_eq!(Zone::from_vtimezone(same, "a"), Zone::from_vtimezone(definition(&BERLIN), "b"));
}

#[test]
fn offset_differences_are_found() {
    // The rules from before 2007.
    let old = Zone::from_vtimezone(
        definition(&[
            "DAYLIGHT 19870405T020000 -0500 -0400 FREQ=YEARLY;BYMONTH=4;BYDAY=1SU",
            "STANDARD 19671029T020000 -0400 -0500 FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU",
        ]),
        "US-Eastern",
    );
    let found = offset_differences(&old, &zone("US/Eastern"), utc("20260101"), utc("20270101"));
    let expected = [
        OffsetDifference {
            from: utc("20260308T070000"),
            to: utc("20260405T070000"),
            first_offset: -18_000,
            second_offset: -14_400,
        },
        OffsetDifference {
            from: utc("20261025T060000"),
            to: utc("20261101T060000"),
            first_offset: -18_000,
            second_offset: -14_400,
        },
    ];
    assert_eq!(found, expected);
    assert!(has_same_offsets(&old, &zone("US/Eastern"), utc("19870601"), utc("20061201")));
}

#[test]
fn tzids_are_resolved() {
    let berlin = definition(&BERLIN);
    let check = |tzid: &str, definition: Option<&Vtimezone>, location, expected: &str| {
        let (from, until) = (utc("20100101"), utc("20460101"));
        let defined_zone =
            definition.map(|definition| Zone::from_vtimezone(definition.clone(), tzid));
        let found = ZONES.resolve(tzid, defined_zone.as_ref(), location, from, until);
        let name = found.zone.as_ref().map_or("-", Zone::name);
        assert_eq!(format!("{:?} {name}", found.matched_by), expected, "{tzid}");
    };
    for name in ["UTC", "Etc/UTC", "GMT", "Z", "utc"] {
        check(name, None, None, "Utc UTC");
    }
    check("Europe/Berlin", None, None, "Name Europe/Berlin");
    check("EUROPE/BERLIN", None, None, "Name Europe/Berlin");
    check("US/Eastern", Some(&berlin), None, "Name US/Eastern");
    check("\"GB\"", None, None, "Name GB");
    check("/citadel.org/20260108_1/America/Phoenix", None, None, "Prefix America/Phoenix");
    check(
        "/softwarestudio.org/Olson_20011030_5/America/Argentina/Ushuaia",
        None,
        None,
        "Prefix America/Argentina/Ushuaia",
    );
    check(
        "/freeassociation.sourceforge.net/Tzfile/Europe/London",
        None,
        None,
        "Prefix Europe/London",
    );
    check("/Mozilla.org/BasicTimezones/GMT", None, None, "Prefix UTC");
    check("/America/New_York", None, None, "Prefix America/New_York");
    check("posix/Europe/Vaduz", None, None, "Prefix Europe/Vaduz");
    check("W. Europe Standard Time", None, None, "Windows Europe/Berlin");
    check("E. South America Standard Time", None, None, "Windows America/Sao_Paulo");
    check("UTC-11", None, None, "Windows Etc/GMT+11");
    check("(UTC-05:00) Eastern Time (US & Canada)", None, None, "Display America/New_York");
    check("Eastern Time (US & Canada)", None, None, "Display America/New_York");
    check("(GMT+01.00) Sarajevo, Skopje, Warsaw, Zagreb", None, None, "Display Europe/Warsaw");
    check("US-Eastern", None, None, "Separator US/Eastern");
    check("Europe_London", None, None, "Separator Europe/London");
    check("America_New_York", None, None, "Separator America/New_York");
    // The definition contradicts its name, and behaves like Berlin.
    check("US-Eastern", Some(&berlin), None, "Behaviour Europe/Budapest");
    check("Customized Time Zone", Some(&berlin), Some("Europe/Vienna"), "Behaviour Europe/Vienna");
    check("Customized Time Zone", Some(&berlin), Some("Asia/Tokyo"), "Behaviour Europe/Budapest");
    // A name that differs by case is another name, if the file defines another zone under it.
    check(
        "Europe/Berlin",
        Some(&definition(&["STANDARD 19700101T000000 +0100 +0100 -"])),
        None,
        "Name Europe/Berlin",
    );
    let fixed = definition(&["STANDARD 19700101T000000 +0117 +0117 -"]);
    check("Europe/berlin", Some(&fixed), None, "Definition Europe/berlin");
    check("Europe/berlin", Some(&berlin), None, "Name Europe/Berlin");
    check("Europe/lisbon", Some(&berlin), None, "Behaviour Europe/Budapest");
    for (name, zone) in [
        ("Alberta Standard Time", "Windows America/Edmonton"),
        ("British Columbia Standard Time", "Windows America/Vancouver"),
        ("Manitoba Standard Time", "Windows America/Winnipeg"),
        ("(UTC-07:00) Alberta", "Display America/Edmonton"),
        ("British Columbia", "Display America/Vancouver"),
        ("(UTC-05:00) Eastern Time (US and Canada)", "Display America/New_York"),
        ("Western/Central Europe", "Display Europe/Berlin"),
        // An offset alone is no zone.
        ("(GMT +01:00)", "Floating -"),
    ] {
        check(name, None, None, zone);
    }
    let odd = definition(&["STANDARD 19700101T000000 +0117 +0117 -"]);
    check("/Europe/CUSTOM", Some(&odd), None, "Definition /Europe/CUSTOM");
    for name in [
        "",
        "0",
        "America-SanJose",
        "US--Fictitious-Eastern",
        "custom_America/New_York",
        "Customized Time Zone",
        "America/New_Yrok",
        "Amsterdam, Belgrade, Berlin, ..",
        "W. Europe Standard Time:20200609T090000",
        "../../etc/passwd",
        "/../x",
    ] {
        check(name, None, None, "Floating -");
    }
    check("Custom", Some(&Vtimezone::default()), None, "Floating -");
}

#[test]
fn data_has_a_fingerprint() {
    let fingerprint = |name: &str| ZONES.fingerprint(&zone(name));
    assert_eq!(fingerprint("Europe/Berlin"), fingerprint("europe/berlin"));
    assert_ne!(fingerprint("Europe/Berlin"), fingerprint("Europe/Paris"));
    assert_ne!(fingerprint("Etc/GMT+1"), fingerprint("Etc/GMT+2"));
    assert_eq!(fingerprint("UTC"), "utc");
    assert_eq!(ZONES.data_version().len(), 16);
}

proptest! {
    #[test]
    fn instants_and_local_times_convert(name in prop::sample::select(vec!["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia", "Etc/GMT+5"]), seconds in -5_000_000_000i64..8_000_000_000) {
        let zone = zone(name);
        let civil = CivilTime::from_seconds_clamped(seconds);
        let jiff = jiff::tz::TimeZone::get(name).expect("a zone");
        let date = civil.date();
        let time = civil.second_of_day();
        let shown = jiff::civil::date(date.year as i16, date.month as i8, date.day as i8)
            .at((time / 3600) as i8, (time / 60 % 60) as i8, (time % 60) as i8, 0);
        let expected = jiff.to_ambiguous_timestamp(shown).compatible().expect("a moment");
        prop_assert_eq!(zone.to_instant(civil).seconds(), expected.as_second());
        let instant = Instant::from_seconds_clamped(seconds);
        let offset = jiff.to_offset(jiff::Timestamp::from_second(seconds).expect("a moment"));
        prop_assert_eq!(zone.offset(instant), offset.seconds());
    }

    #[test]
    fn nothing_panics(tzid in "[-A-Za-z/_+() :.]{0,30}") {
        let _ = ZONES.resolve(&tzid, None, None, Instant::MIN, Instant::MAX);
    }
}

#[test]
fn the_database_is_opened_with_the_first_unknown_name() {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    let zones = ZoneDatabase::with_opener(|| {
        IS_OPEN.store(true, Ordering::Relaxed);
        jiff::tz::db().clone()
    });
    let prague = jiff::tz::db().get("Europe/Prague").unwrap();
    zones.add(Zone::from_system(prague, "Europe/Prague"));
    assert_eq!(zones.get("europe/prague").unwrap().name(), "Europe/Prague");
    assert!(zones.get("UTC").is_some());
    assert!(!IS_OPEN.load(Ordering::Relaxed));
    assert!(zones.get("Asia/Tokyo").is_some());
    assert!(IS_OPEN.load(Ordering::Relaxed));
}
