//! One invented component of a calendar: drawn here, written elsewhere.
//!
//! Knows what calendars hold (meetings that repeat, one of them moved, tasks that are half done) and nothing of
//! how it is written. A detached occurrence draws its master again, so that nothing has to be kept.

use super::contact::{Email, emails, fill, note};
use super::dates::{Day, Every};
use super::names::Culture;
use super::random::Random;
use super::subjects;
use super::zones::{self, Zone};
use std::borrow::Cow;

/// The days over which everything is spread: 2017 to 2026.
pub(super) const DAYS: u64 = 3_652;
/// How many components may lie between a master and the detached occurrences of it.
const REACH: u64 = 64;
/// How far into an endless series its detached occurrences are.
const ENDLESS: u64 = 24;

/// What a component is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Event,
    Todo,
    Journal,
}

/// What the times of a component mean.
#[derive(Clone)]
pub(super) enum Clock {
    /// Whole days.
    Dates,
    /// The time on any wall.
    Floating,
    Utc,
    Zoned {
        id: Cow<'static, str>,
        zone: &'static Zone,
    },
}

/// A day and a minute of it, on some clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) day: Day,
    pub(super) minute: i64,
}

impl Moment {
    /// So many minutes later.
    pub(super) fn plus(self, minutes: i64) -> Moment {
        let minute = self.minute + minutes;
        Moment { day: self.day.plus(minute.div_euclid(1_440)), minute: minute.rem_euclid(1_440) }
    }
}

/// How it repeats.
pub(super) struct Series {
    pub(super) every: Every,
    /// Where it has an end: how many there are, and the last of them.
    pub(super) end: Option<(u64, Moment)>,
    /// Whether the end is said as UNTIL and not as COUNT.
    pub(super) until: bool,
    pub(super) exceptions: Vec<Moment>,
}

/// Who was asked to come; the first is who asks.
pub(super) struct Guest {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) answer: &'static str,
}

/// A reminder.
pub(super) struct Alarm {
    pub(super) trigger: Trigger,
    pub(super) repeat: bool,
    pub(super) seen: bool,
}

/// When a reminder goes off.
#[derive(Clone, Copy)]
pub(super) enum Trigger {
    Before(&'static str),
    AtEnd(&'static str),
    /// So many minutes before the start, said as a time of UTC.
    Absolute(i64),
}

/// Everything that a component says.
pub(super) struct Component {
    pub(super) kind: Kind,
    pub(super) uid: String,
    pub(super) clock: Clock,
    pub(super) start: Moment,
    /// In minutes, also of whole days.
    pub(super) length: i64,
    pub(super) series: Option<Series>,
    /// The occurrence that this one is there instead of.
    pub(super) instead_of: Option<Moment>,
    pub(super) subject: String,
    pub(super) location: Option<String>,
    pub(super) note: Option<String>,
    pub(super) categories: Option<&'static str>,
    pub(super) guests: Vec<Guest>,
    pub(super) alarm: Option<Alarm>,
    pub(super) status: Option<&'static str>,
    /// 1 to 9.
    pub(super) priority: Option<u64>,
    pub(super) private: bool,
    /// Of a task, in percent.
    pub(super) done: u64,
    pub(super) created: Moment,
    pub(super) changed: Moment,
    pub(super) sequence: u64,
    /// A number for small choices of form.
    pub(super) habit: u64,
}

/// The part that a component has in a calendar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Series,
    Detached,
    Single,
}

impl Part {
    fn draw(random: &mut Random) -> Part {
        match random.below(1_000) {
            0..200 => Part::Series,
            200..232 => Part::Detached,
            _ => Part::Single,
        }
    }
}

/// What a population of components is drawn from.
pub(super) struct Drawing {
    pub(super) cultures: Vec<Culture>,
    pub(super) seed: u64,
    /// Whether all are events.
    pub(super) events: bool,
}

impl Drawing {
    /// Component `index`. What its stream and that of its master yield, and nothing else, decides.
    pub(super) fn component(&self, index: u64) -> Component {
        let random = &mut Random::of(self.seed, index);
        match Part::draw(random) {
            Part::Series => self.master(random),
            Part::Detached => match self.detached(index, random) {
                Some(component) => component,
                None => self.single(random),
            },
            Part::Single => self.single(random),
        }
    }

    /// The UID of the series or single component nearest to `index`, at or before it.
    pub(super) fn uid(&self, index: u64) -> String {
        let whole = |index: &u64| Part::draw(&mut Random::of(self.seed, *index)) != Part::Detached;
        let nearest = (0..=index).rev().take(REACH as usize).find(whole);
        self.component(nearest.unwrap_or(index)).uid
    }

    /// An event in a zone: nothing that repeats.
    pub(super) fn event_in(&self, index: u64, id: String, zone: &'static Zone) -> Component {
        let random = &mut Random::of(self.seed, index);
        let mut component = self.draw(Kind::Event, random);
        if let Clock::Dates = component.clock {
            component.start.minute = minute(random);
            component.length = length(random);
        }
        component.clock = Clock::Zoned { id: Cow::Owned(id), zone };
        component
    }

    fn single(&self, random: &mut Random) -> Component {
        let kind = match random.below(100) {
            _ if self.events => Kind::Event,
            0..2 => Kind::Journal,
            2..9 => Kind::Todo,
            _ => Kind::Event,
        };
        let mut component = self.draw(kind, random);
        if kind == Kind::Event && random.percent(4) {
            let days = random.between(1, 13) as i64;
            component.length += days * 1_440;
        }
        component
    }

    fn master(&self, random: &mut Random) -> Component {
        let todo = random.percent(4) && !self.events;
        let mut component = self.draw(if todo { Kind::Todo } else { Kind::Event }, random);
        let every = every(component.start.day, random);
        if every == Every::Year {
            let culture = Culture::pick(&self.cultures, random);
            let name = &random.pick_early(&culture.given).written;
            component.subject = ["🎂 ", name].concat();
            component.clock = Clock::Dates;
            component.categories = Some("Birthday");
            component.guests.clear();
        }
        if let Clock::Dates = component.clock {
            component.start.minute = 0;
            component.length = 1_440;
        }
        component.start.day = every.first(component.start.day);
        component.series = Some(Series::draw(every, component.start, random));
        component
    }

    /// A changed occurrence of the nearest series before; none where that has no more to change.
    fn detached(&self, index: u64, random: &mut Random) -> Option<Component> {
        let mut nth = 1;
        for before in (index.saturating_sub(REACH)..index).rev() {
            let stream = &mut Random::of(self.seed, before);
            match Part::draw(stream) {
                Part::Series => return self.master(stream).change(nth, random),
                Part::Detached => nth += 1,
                Part::Single => {}
            }
        }
        None
    }

    /// What singles and masters have in common.
    fn draw(&self, kind: Kind, random: &mut Random) -> Component {
        let culture = Culture::pick(&self.cultures, random);
        let uid = [random.bits(), random.bits(), random.bits() >> 32];
        let start = Moment { day: Day::of(2017, 1, 1).plus(random.below(DAYS) as i64), minute: 0 };
        let (whole, floating) = match kind {
            Kind::Journal => (80, 10),
            _ => (12, 3),
        };
        let clock = match random.below(100) {
            roll if roll < whole => Clock::Dates,
            roll if roll < whole + floating => Clock::Floating,
            85.. => Clock::Utc,
            _ => {
                let zone = zones::pick(random);
                Clock::Zoned { id: Cow::Borrowed(zone.id), zone }
            }
        };
        let (start, length) = match clock {
            Clock::Dates => (start, 1_440),
            _ => (start.plus(minute(random)), length(random)),
        };
        let created = start.plus(-(random.between(60, 90 * 1_440) as i64));
        let journal = kind == Kind::Journal;
        Component {
            kind,
            uid: format!("{:016x}{:016x}{:08x}", uid[0], uid[1], uid[2]),
            clock,
            start,
            length,
            series: None,
            instead_of: None,
            subject: subject(culture, random),
            location: (!journal && random.percent(50)).then(|| location(culture, random)),
            note: (journal || random.percent(38)).then(|| note(culture.place, random)),
            categories: random.percent(25).then(|| random.word(subjects::CATEGORIES)),
            guests: match !journal && random.percent(26) {
                true => guests(&self.cultures, random),
                false => Vec::new(),
            },
            alarm: (!journal && random.percent(30)).then(|| Alarm::draw(kind, random)),
            status: status(kind, random),
            priority: random.percent(8).then(|| random.between(1, 9)),
            private: random.percent(6),
            done: random.below(5) * 25,
            created,
            changed: created.plus(random.below(20 * 1_440) as i64),
            sequence: random.below(4),
            habit: random.bits(),
        }
    }
}

impl Component {
    /// This master as its `nth` detached occurrence (from 1): each of them takes the place of another one.
    fn change(mut self, nth: u64, random: &mut Random) -> Option<Component> {
        let series = self.series.take()?;
        // Even places; odd ones may be exceptions.
        let most = (series.end.map_or(ENDLESS, |(count, _)| count) - 1) / 2;
        if nth > most.min(7) {
            return None;
        }
        let place = 2 * (nth + 8 * random.below((most - nth) / 8 + 1));
        let usual = series.occurrence(self.start, place);
        let dates = matches!(self.clock, Clock::Dates);
        let days = |days: u64| days as i64 * 1_440;
        self.instead_of = Some(usual);
        self.start = usual.plus(match random.below(10) {
            0..4 if !dates => random.between(2, 16) as i64 * 15 - 120,
            0..7 => days(random.between(1, 3)),
            7 => days(random.between(30, 200)),
            _ => 0,
        });
        if random.percent(40) {
            self.subject.push_str(" (!)");
        }
        self.alarm = self.alarm.filter(|alarm| !matches!(alarm.trigger, Trigger::Absolute(_)));
        self.changed = usual.plus(-(random.between(30, 9 * 1_440) as i64));
        self.created = self.created.min(self.changed);
        self.sequence += 1;
        Some(self)
    }
}

impl Series {
    fn draw(every: Every, start: Moment, random: &mut Random) -> Series {
        let endless = random.below(1_000) < if every == Every::Year { 500 } else { 65 };
        let mut series =
            Series { every, end: None, until: random.percent(50), exceptions: Vec::new() };
        let mut most = ENDLESS;
        if !endless {
            let weeks = match every {
                Every::Year => 52 * random.between(4, 12),
                _ => *random.pick(&[2, 3, 4, 5, 6, 8, 9, 10, 10, 11, 12, 14, 16, 20, 26, 39, 52]),
            };
            let last = start.day.plus(7 * weeks as i64);
            let (mut count, mut day) = (1, start.day);
            loop {
                let next = every.after(start.day, day);
                if next >= last && count >= 3 {
                    break;
                }
                (day, count) = (next, count + 1);
            }
            series.end = Some((count, Moment { day, ..start }));
            most = count;
        }
        if random.percent(15) {
            let number = random.between(1, 3);
            series.exceptions = (0..number)
                .map(|at| 2 * at + 1)
                .filter(|&place| place < most)
                .map(|place| series.occurrence(start, place))
                .collect();
        }
        series
    }

    /// Occurrence `place`, from 0, of a series that begins at `start`.
    fn occurrence(&self, start: Moment, place: u64) -> Moment {
        let day = (0..place).fold(start.day, |day, _| self.every.after(start.day, day));
        Moment { day, ..start }
    }
}

impl Alarm {
    fn draw(kind: Kind, random: &mut Random) -> Alarm {
        let trigger = match random.below(20) {
            _ if kind == Kind::Todo => Trigger::AtEnd(random.word(&["PT0S", "-PT1H", "-P1D"])),
            0 => Trigger::AtEnd(random.word(&["PT0S", "-PT5M"])),
            1 => Trigger::Absolute(random.between(1, 48) as i64 * 30),
            2..10 => Trigger::Before("-PT15M"),
            _ => {
                Trigger::Before(random.word(&["-PT5M", "PT0S", "-PT30M", "-PT1H", "-P1D", "-P1W"]))
            }
        };
        Alarm { trigger, repeat: random.percent(5), seen: random.percent(10) }
    }
}

/// How a series repeats that begins about that day.
fn every(start: Day, random: &mut Random) -> Every {
    let first = 1 << start.weekday();
    match random.below(100) {
        0..40 => {
            let more = if random.percent(30) { 1 << random.below(5) } else { 0 };
            Every::Week { interval: 1, days: first | more }
        }
        40..50 => Every::Week { interval: 2, days: first },
        50..58 => Every::Workday,
        58..70 => Every::Day,
        70..80 => Every::MonthDay,
        80..92 => Every::MonthWeekday,
        _ => Every::Year,
    }
}

/// When things begin: from seven in the morning, more of them on the hour.
fn minute(random: &mut Random) -> i64 {
    let quarter = if random.percent(60) { 0 } else { random.below(4) };
    (random.between(7, 20) * 60 + quarter * 15) as i64
}

fn length(random: &mut Random) -> i64 {
    *random.pick(&[15, 30, 30, 45, 60, 60, 60, 60, 90, 90, 120, 180, 240])
}

fn subject(culture: &Culture, random: &mut Random) -> String {
    let name = &random.pick_early(&culture.given).written;
    let number = random.percent(20).then(|| format!(" {}", random.below(1_000)));
    random.word(subjects::SUBJECTS).replace("{}", name) + &number.unwrap_or_default()
}

fn location(culture: &Culture, random: &mut Random) -> String {
    if random.percent(60) {
        return fill(random.word(subjects::ROOMS), random);
    }
    let &(city, ..) = random.pick(culture.place.cities);
    format!("{}, {city}", fill(random.word(culture.place.streets), random))
}

fn guests(cultures: &[Culture], random: &mut Random) -> Vec<Guest> {
    let number = 2 + random.below(3);
    (0..number)
        .map(|_| {
            let culture = Culture::pick(cultures, random);
            let (given, family) =
                (random.pick_early(&culture.given), random.pick_early(&culture.family));
            let name = format!("{} {}", given.written, family.written);
            let address = emails(given, family, true, random).into_iter().next();
            let address = address.map_or_else(String::new, |Email { address, .. }| address);
            let answers = ["ACCEPTED", "ACCEPTED", "NEEDS-ACTION", "DECLINED", "TENTATIVE"];
            Guest { name, address, answer: random.word(&answers) }
        })
        .collect()
}

fn status(kind: Kind, random: &mut Random) -> Option<&'static str> {
    match (kind, random.below(100)) {
        (Kind::Event, 0..55) => Some("CONFIRMED"),
        (Kind::Event, 55..62) => Some("TENTATIVE"),
        (Kind::Event, 62..65) => Some("CANCELLED"),
        (Kind::Todo, 0..35) => Some("COMPLETED"),
        (Kind::Todo, 35..60) => Some("NEEDS-ACTION"),
        (Kind::Todo, 60..75) => Some("IN-PROCESS"),
        (Kind::Journal, 0..50) => Some("FINAL"),
        _ => None,
    }
}
