//! Generates the values of a calendar component.
//!
//! The values are independent of iCalendar; `ical_writer` writes them. An override generates its
//! master again, so that no state is kept.

use super::contact::{FakeEmail, draw_emails, draw_note, fill_pattern};
use super::dates::{DayNumber, RecurrencePattern};
use super::event_texts;
use super::person_names::Culture;
use super::random::SplitMix64;
use super::zones::{self, FakeZone};
use std::borrow::Cow;

/// The number of days of the period of all components, 2017 to 2026.
pub(super) const POPULATION_DAYS: u64 = 3_652;
/// The maximum number of components between a master and its overrides.
const MAX_MASTER_DISTANCE_COMPONENTS: u64 = 64;
/// The number of occurrences of an endless series that may be overridden.
const ENDLESS_SERIES_OCCURRENCES: u64 = 24;

/// The kind of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FakeComponentType {
    Event,
    Todo,
    Journal,
}

/// The form of the times of a component.
#[derive(Clone)]
pub(super) enum TimeForm {
    /// Whole days.
    Date,
    /// Floating time.
    Floating,
    Utc,
    Zoned {
        id: Cow<'static, str>,
        zone: &'static FakeZone,
    },
}

/// A day and a minute of that day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WallTime {
    pub(super) day: DayNumber,
    pub(super) minute: i64,
}

impl WallTime {
    /// Returns the time a number of minutes later.
    pub(super) fn add_minutes(self, minutes: i64) -> WallTime {
        let minute = self.minute + minutes;
        WallTime {
            day: self.day.add_days(minute.div_euclid(1_440)),
            minute: minute.rem_euclid(1_440),
        }
    }
}

/// The recurrence of a master.
pub(super) struct FakeSeries {
    pub(super) pattern: RecurrencePattern,
    /// The number of occurrences and the last one; `None` for an endless series.
    pub(super) end: Option<(u64, WallTime)>,
    /// Whether the end is written as UNTIL instead of COUNT.
    pub(super) has_until: bool,
    pub(super) exceptions: Vec<WallTime>,
}

/// An attendee; the first in the list is the organizer.
pub(super) struct FakeAttendee {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) participation_status: &'static str,
}

/// An alarm.
pub(super) struct FakeAlarm {
    pub(super) trigger: AlarmTrigger,
    pub(super) has_repeat: bool,
    pub(super) is_acknowledged: bool,
}

/// The trigger of an alarm.
#[derive(Clone, Copy)]
pub(super) enum AlarmTrigger {
    RelativeToStart(&'static str),
    RelativeToEnd(&'static str),
    /// A number of minutes before the start, written as a UTC time.
    Absolute(i64),
}

/// The values of a component.
pub(super) struct FakeComponent {
    pub(super) component_type: FakeComponentType,
    pub(super) uid: String,
    pub(super) time_form: TimeForm,
    pub(super) start: WallTime,
    /// The length in minutes, also of all-day components.
    pub(super) length_minutes: i64,
    pub(super) series: Option<FakeSeries>,
    /// The occurrence that this component overrides.
    pub(super) recurrence_id: Option<WallTime>,
    pub(super) summary: String,
    pub(super) location: Option<String>,
    pub(super) note: Option<String>,
    pub(super) categories: Option<&'static str>,
    pub(super) attendees: Vec<FakeAttendee>,
    pub(super) alarm: Option<FakeAlarm>,
    pub(super) status: Option<&'static str>,
    /// From 1 to 9.
    pub(super) priority: Option<u64>,
    pub(super) is_private: bool,
    /// The progress of a task in percent.
    pub(super) percent_complete: u64,
    pub(super) created: WallTime,
    pub(super) last_modified: WallTime,
    pub(super) sequence: u64,
    /// Random bits that select variants of the format.
    pub(super) style_bits: u64,
}

/// The role of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComponentRole {
    Master,
    Override,
    Single,
}

impl ComponentRole {
    fn draw(random: &mut SplitMix64) -> ComponentRole {
        match random.next_below(1_000) {
            0..200 => ComponentRole::Master,
            200..232 => ComponentRole::Override,
            _ => ComponentRole::Single,
        }
    }
}

/// The population of a calendar, from which its components are generated.
pub(super) struct Population {
    pub(super) cultures: Vec<Culture>,
    pub(super) seed: u64,
    /// Whether all components are events.
    pub(super) events_only: bool,
}

impl Population {
    /// Generates component `index`. The result depends only on its own pseudo-random stream and on
    /// the stream of its master.
    pub(super) fn draw_component(&self, index: u64) -> FakeComponent {
        let random = &mut SplitMix64::from_seed(self.seed, index);
        match ComponentRole::draw(random) {
            ComponentRole::Master => self.draw_master(random),
            ComponentRole::Override => match self.draw_override(index, random) {
                Some(component) => component,
                None => self.draw_single(random),
            },
            ComponentRole::Single => self.draw_single(random),
        }
    }

    /// Returns the UID of the nearest series or single component at or before `index`.
    pub(super) fn nearest_uid(&self, index: u64) -> String {
        let has_own_uid = |index: &u64| {
            ComponentRole::draw(&mut SplitMix64::from_seed(self.seed, *index))
                != ComponentRole::Override
        };
        let nearest =
            (0..=index).rev().take(MAX_MASTER_DISTANCE_COMPONENTS as usize).find(has_own_uid);
        self.draw_component(nearest.unwrap_or(index)).uid
    }

    /// Generates a single event in a time zone.
    pub(super) fn draw_event_in_zone(
        &self,
        index: u64,
        id: String,
        zone: &'static FakeZone,
    ) -> FakeComponent {
        let random = &mut SplitMix64::from_seed(self.seed, index);
        let mut component = self.draw_base(FakeComponentType::Event, random);
        if let TimeForm::Date = component.time_form {
            component.start.minute = draw_start_minute(random);
            component.length_minutes = draw_length_minutes(random);
        }
        component.time_form = TimeForm::Zoned { id: Cow::Owned(id), zone };
        component
    }

    fn draw_single(&self, random: &mut SplitMix64) -> FakeComponent {
        let kind = match random.next_below(100) {
            _ if self.events_only => FakeComponentType::Event,
            0..2 => FakeComponentType::Journal,
            2..9 => FakeComponentType::Todo,
            _ => FakeComponentType::Event,
        };
        let mut component = self.draw_base(kind, random);
        if kind == FakeComponentType::Event && random.roll_percent(4) {
            let days = random.next_between(1, 13) as i64;
            component.length_minutes += days * 1_440;
        }
        component
    }

    fn draw_master(&self, random: &mut SplitMix64) -> FakeComponent {
        let todo = random.roll_percent(4) && !self.events_only;
        let mut component = self.draw_base(
            if todo { FakeComponentType::Todo } else { FakeComponentType::Event },
            random,
        );
        let pattern = draw_pattern(component.start.day, random);
        if pattern == RecurrencePattern::Yearly {
            let culture = Culture::pick(&self.cultures, random);
            let name = &random.pick_early(&culture.given).written;
            component.summary = ["🎂 ", name].concat();
            component.time_form = TimeForm::Date;
            component.categories = Some("Birthday");
            component.attendees.clear();
        }
        if let TimeForm::Date = component.time_form {
            component.start.minute = 0;
            component.length_minutes = 1_440;
        }
        component.start.day = pattern.first_on_or_after(component.start.day);
        component.series = Some(FakeSeries::draw(pattern, component.start, random));
        component
    }

    /// Generates an override of the nearest preceding series; `None` if the series has no
    /// occurrence left to override.
    fn draw_override(&self, index: u64, random: &mut SplitMix64) -> Option<FakeComponent> {
        let mut nth = 1;
        for before in (index.saturating_sub(MAX_MASTER_DISTANCE_COMPONENTS)..index).rev() {
            let stream = &mut SplitMix64::from_seed(self.seed, before);
            match ComponentRole::draw(stream) {
                ComponentRole::Master => {
                    return self.draw_master(stream).into_override(nth, random);
                }
                ComponentRole::Override => nth += 1,
                ComponentRole::Single => {}
            }
        }
        None
    }

    /// Generates the values that single components and masters share.
    fn draw_base(&self, kind: FakeComponentType, random: &mut SplitMix64) -> FakeComponent {
        let culture = Culture::pick(&self.cultures, random);
        let uid = [random.next_bits(), random.next_bits(), random.next_bits() >> 32];
        let start = WallTime {
            day: DayNumber::from_date(2017, 1, 1)
                .add_days(random.next_below(POPULATION_DAYS) as i64),
            minute: 0,
        };
        let (all_day, floating) = match kind {
            FakeComponentType::Journal => (80, 10),
            _ => (12, 3),
        };
        let clock = match random.next_below(100) {
            roll if roll < all_day => TimeForm::Date,
            roll if roll < all_day + floating => TimeForm::Floating,
            85.. => TimeForm::Utc,
            _ => {
                let zone = zones::pick_zone(random);
                TimeForm::Zoned { id: Cow::Borrowed(zone.tzid), zone }
            }
        };
        let (start, length) = match clock {
            TimeForm::Date => (start, 1_440),
            _ => (start.add_minutes(draw_start_minute(random)), draw_length_minutes(random)),
        };
        let created = start.add_minutes(-(random.next_between(60, 90 * 1_440) as i64));
        let journal = kind == FakeComponentType::Journal;
        FakeComponent {
            component_type: kind,
            uid: format!("{:016x}{:016x}{:08x}", uid[0], uid[1], uid[2]),
            time_form: clock,
            start,
            length_minutes: length,
            series: None,
            recurrence_id: None,
            summary: draw_summary(culture, random),
            location: (!journal && random.roll_percent(50)).then(|| draw_location(culture, random)),
            note: (journal || random.roll_percent(38)).then(|| draw_note(culture.place, random)),
            categories: random
                .roll_percent(25)
                .then(|| random.pick_word(event_texts::EVENT_CATEGORIES)),
            attendees: match !journal && random.roll_percent(26) {
                true => draw_attendees(&self.cultures, random),
                false => Vec::new(),
            },
            alarm: (!journal && random.roll_percent(30)).then(|| FakeAlarm::draw(kind, random)),
            status: draw_status(kind, random),
            priority: random.roll_percent(8).then(|| random.next_between(1, 9)),
            is_private: random.roll_percent(6),
            percent_complete: random.next_below(5) * 25,
            created,
            last_modified: created.add_minutes(random.next_below(20 * 1_440) as i64),
            sequence: random.next_below(4),
            style_bits: random.next_bits(),
        }
    }
}

impl FakeComponent {
    /// Turns a master into its `nth` override (from 1). Each override replaces a different
    /// occurrence.
    fn into_override(mut self, nth: u64, random: &mut SplitMix64) -> Option<FakeComponent> {
        let series = self.series.take()?;
        // Overrides use even positions, because odd positions may be in EXDATE.
        let max = (series.end.map_or(ENDLESS_SERIES_OCCURRENCES, |(count, _)| count) - 1) / 2;
        if nth > max.min(7) {
            return None;
        }
        let occurrence = 2 * (nth + 8 * random.next_below((max - nth) / 8 + 1));
        let original = series.nth_occurrence(self.start, occurrence);
        let dates = matches!(self.time_form, TimeForm::Date);
        let days = |days: u64| days as i64 * 1_440;
        self.recurrence_id = Some(original);
        self.start = original.add_minutes(match random.next_below(10) {
            0..4 if !dates => random.next_between(2, 16) as i64 * 15 - 120,
            0..7 => days(random.next_between(1, 3)),
            7 => days(random.next_between(30, 200)),
            _ => 0,
        });
        if random.roll_percent(40) {
            self.summary.push_str(" (!)");
        }
        self.alarm = self.alarm.filter(|alarm| !matches!(alarm.trigger, AlarmTrigger::Absolute(_)));
        self.last_modified = original.add_minutes(-(random.next_between(30, 9 * 1_440) as i64));
        self.created = self.created.min(self.last_modified);
        self.sequence += 1;
        Some(self)
    }
}

impl FakeSeries {
    fn draw(pattern: RecurrencePattern, start: WallTime, random: &mut SplitMix64) -> FakeSeries {
        let endless =
            random.next_below(1_000) < if pattern == RecurrencePattern::Yearly { 500 } else { 65 };
        let mut series = FakeSeries {
            pattern,
            end: None,
            has_until: random.roll_percent(50),
            exceptions: Vec::new(),
        };
        let mut max = ENDLESS_SERIES_OCCURRENCES;
        if !endless {
            let weeks = match pattern {
                RecurrencePattern::Yearly => 52 * random.next_between(4, 12),
                _ => *random.pick(&[2, 3, 4, 5, 6, 8, 9, 10, 10, 11, 12, 14, 16, 20, 26, 39, 52]),
            };
            let last = start.day.add_days(7 * weeks as i64);
            let (mut count, mut day) = (1, start.day);
            loop {
                let next = pattern.next_occurrence(start.day, day);
                if next >= last && count >= 3 {
                    break;
                }
                (day, count) = (next, count + 1);
            }
            series.end = Some((count, WallTime { day, ..start }));
            max = count;
        }
        if random.roll_percent(15) {
            let number = random.next_between(1, 3);
            series.exceptions = (0..number)
                .map(|at| 2 * at + 1)
                .filter(|&occurrence| occurrence < max)
                .map(|occurrence| series.nth_occurrence(start, occurrence))
                .collect();
        }
        series
    }

    /// Returns occurrence `n`, from 0, of a series that begins at `start`.
    fn nth_occurrence(&self, start: WallTime, n: u64) -> WallTime {
        let day = (0..n).fold(start.day, |day, _| self.pattern.next_occurrence(start.day, day));
        WallTime { day, ..start }
    }
}

impl FakeAlarm {
    fn draw(kind: FakeComponentType, random: &mut SplitMix64) -> FakeAlarm {
        let trigger = match random.next_below(20) {
            _ if kind == FakeComponentType::Todo => {
                AlarmTrigger::RelativeToEnd(random.pick_word(&["PT0S", "-PT1H", "-P1D"]))
            }
            0 => AlarmTrigger::RelativeToEnd(random.pick_word(&["PT0S", "-PT5M"])),
            1 => AlarmTrigger::Absolute(random.next_between(1, 48) as i64 * 30),
            2..10 => AlarmTrigger::RelativeToStart("-PT15M"),
            _ => AlarmTrigger::RelativeToStart(
                random.pick_word(&["-PT5M", "PT0S", "-PT30M", "-PT1H", "-P1D", "-P1W"]),
            ),
        };
        FakeAlarm {
            trigger,
            has_repeat: random.roll_percent(5),
            is_acknowledged: random.roll_percent(10),
        }
    }
}

/// Chooses the recurrence pattern of a series that begins near a day.
fn draw_pattern(start: DayNumber, random: &mut SplitMix64) -> RecurrencePattern {
    let first = 1 << start.weekday();
    match random.next_below(100) {
        0..40 => {
            let more = if random.roll_percent(30) { 1 << random.next_below(5) } else { 0 };
            RecurrencePattern::Weekly { interval: 1, days: first | more }
        }
        40..50 => RecurrencePattern::Weekly { interval: 2, days: first },
        50..58 => RecurrencePattern::Workdays,
        58..70 => RecurrencePattern::Daily,
        70..80 => RecurrencePattern::MonthlyByDay,
        80..92 => RecurrencePattern::MonthlyByWeekday,
        _ => RecurrencePattern::Yearly,
    }
}

/// Chooses a start between 7:00 and 20:45, most often on the hour.
fn draw_start_minute(random: &mut SplitMix64) -> i64 {
    let quarter = if random.roll_percent(60) { 0 } else { random.next_below(4) };
    (random.next_between(7, 20) * 60 + quarter * 15) as i64
}

fn draw_length_minutes(random: &mut SplitMix64) -> i64 {
    *random.pick(&[15, 30, 30, 45, 60, 60, 60, 60, 90, 90, 120, 180, 240])
}

fn draw_summary(culture: &Culture, random: &mut SplitMix64) -> String {
    let name = &random.pick_early(&culture.given).written;
    let number = random.roll_percent(20).then(|| format!(" {}", random.next_below(1_000)));
    random.pick_word(event_texts::SUMMARY_TEMPLATES).replace("{}", name)
        + &number.unwrap_or_default()
}

fn draw_location(culture: &Culture, random: &mut SplitMix64) -> String {
    if random.roll_percent(60) {
        return fill_pattern(random.pick_word(event_texts::ROOM_PATTERNS), random);
    }
    let &(city, ..) = random.pick(culture.place.cities);
    format!("{}, {city}", fill_pattern(random.pick_word(culture.place.streets), random))
}

fn draw_attendees(cultures: &[Culture], random: &mut SplitMix64) -> Vec<FakeAttendee> {
    let number = 2 + random.next_below(3);
    (0..number)
        .map(|_| {
            let culture = Culture::pick(cultures, random);
            let (given, family) =
                (random.pick_early(&culture.given), random.pick_early(&culture.family));
            let name = format!("{} {}", given.written, family.written);
            let address = draw_emails(given, family, true, random).into_iter().next();
            let address = address.map_or_else(String::new, |FakeEmail { address, .. }| address);
            let answers = ["ACCEPTED", "ACCEPTED", "NEEDS-ACTION", "DECLINED", "TENTATIVE"];
            FakeAttendee { name, address, participation_status: random.pick_word(&answers) }
        })
        .collect()
}

fn draw_status(kind: FakeComponentType, random: &mut SplitMix64) -> Option<&'static str> {
    match (kind, random.next_below(100)) {
        (FakeComponentType::Event, 0..55) => Some("CONFIRMED"),
        (FakeComponentType::Event, 55..62) => Some("TENTATIVE"),
        (FakeComponentType::Event, 62..65) => Some("CANCELLED"),
        (FakeComponentType::Todo, 0..35) => Some("COMPLETED"),
        (FakeComponentType::Todo, 35..60) => Some("NEEDS-ACTION"),
        (FakeComponentType::Todo, 60..75) => Some("IN-PROCESS"),
        (FakeComponentType::Journal, 0..50) => Some("FINAL"),
        _ => None,
    }
}
