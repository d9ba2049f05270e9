//! Alarms of a component (VALARM, and the DALARM and AALARM of vCalendar 1.0).

use super::date_time_reader::{DateTimeReader, comparable_instant};
use crate::schedule::{Alarm, MAX_ALARM_REPEATS, MAX_ALARMS_PER_ITEM, Trigger};
use larder_format::component::{Component, Subcomponent, TimeProperty};
use larder_format::kind::Kind;
use larder_time::civil::{DAY_SECONDS, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDuration;

/// Reads the alarms that can ring. Skips alarms of a cancelled or completed item, and alarms with
/// an unknown action.
pub(super) fn read_alarms(
    component: &Component<'_>,
    kind: Kind,
    dates: &mut DateTimeReader<'_>,
) -> Vec<Alarm> {
    let is_over = component.properties_named("STATUS").any(|status| {
        let status = status.value().trim_ascii();
        status.eq_ignore_ascii_case(b"CANCELLED") || status.eq_ignore_ascii_case(b"COMPLETED")
    });
    if is_over || component.properties_named("COMPLETED").next().is_some() {
        return Vec::new();
    }
    let acknowledged = component.time_properties("X-MOZ-LASTACK").next();
    let acknowledged = acknowledged.and_then(|property| dates.resolve(&property));
    let mut reader = AlarmReader {
        component,
        kind,
        acknowledged: acknowledged.as_ref().map(comparable_instant),
        dates,
    };
    let subcomponents = component.subcomponents().iter();
    let alarms = subcomponents.filter(|part| part.depth() == 1 && part.name() == "VALARM");
    let mut found = Vec::new();
    for alarm in alarms.take(MAX_ALARMS_PER_ITEM) {
        found.extend(reader.read_alarm(alarm));
    }
    // In vCalendar 1.0 an alarm is one line: the time, then the action.
    for name in ["DALARM", "AALARM"] {
        for property in component.time_properties(name).take(MAX_ALARMS_PER_ITEM) {
            let time = property.text.split(';').next().unwrap_or_default();
            let time = reader.dates.read(&TimeProperty { text: time.into(), ..property.clone() });
            let trigger = time.map(|time| reader.absolute_trigger(&time));
            found.extend(trigger.map(|trigger| Alarm {
                trigger,
                repeat: 0,
                interval_seconds: 0,
                acknowledged: reader.acknowledged,
                line: property.line,
            }));
        }
    }
    found
}

struct AlarmReader<'a, 'd> {
    component: &'a Component<'a>,
    kind: Kind,
    /// Times up to this instant are acknowledged, of all alarms of the item.
    acknowledged: Option<Instant>,
    dates: &'a mut DateTimeReader<'d>,
}

impl AlarmReader<'_, '_> {
    fn is_due_on_date(&self) -> bool {
        let due = self.component.time_properties("DUE").find(|due| !due.text.is_empty());
        let due = due.and_then(|due| self.dates.resolve(&due));
        self.kind == Kind::Task && due.is_some_and(|due| due.is_date)
    }

    fn read_alarm(&mut self, alarm: &Subcomponent<'_>) -> Option<Alarm> {
        let can_ring = alarm.properties_named("ACTION").next().is_none_or(|action| {
            let action = action.value().trim_ascii();
            ["DISPLAY", "AUDIO", "EMAIL"]
                .iter()
                .any(|known| action.eq_ignore_ascii_case(known.as_bytes()))
        });
        let trigger = alarm
            .time_properties("TRIGGER")
            .find(|trigger| !trigger.text.is_empty())
            .filter(|_| can_ring)?;
        let trigger = self.read_trigger(&trigger)?;
        // REPEAT and DURATION count only together.
        let text = |name: &str| {
            alarm.time_properties(name).next().map(|property| property.text.into_owned())
        };
        let repeat = text("REPEAT").and_then(|repeat| repeat.parse::<u64>().ok());
        let interval = text("DURATION").and_then(|interval| IcalDuration::parse(&interval).ok());
        let interval_seconds = interval.map_or(0, |interval| {
            interval.days.saturating_mul(DAY_SECONDS).saturating_add(interval.seconds)
        });
        let (repeat, interval_seconds) = match repeat {
            Some(repeat) if interval_seconds > 0 => {
                (repeat.min(MAX_ALARM_REPEATS), interval_seconds)
            }
            _ => (0, 0),
        };
        let acknowledged = alarm.time_properties("ACKNOWLEDGED").next();
        let acknowledged = acknowledged.and_then(|property| self.dates.resolve(&property));
        Some(Alarm {
            trigger,
            repeat,
            interval_seconds,
            acknowledged: acknowledged.as_ref().map(comparable_instant).max(self.acknowledged),
            line: alarm.line_number(),
        })
    }

    /// Returns the trigger at a time. One without a zone is by the clock of the start, as in
    /// vCalendar 1.0; of a series it is not known which occurrence it belongs to.
    fn absolute_trigger(&self, time: &CalendarDateTime) -> Trigger {
        let absolute = Trigger::Absolute(comparable_instant(time));
        let is_series = ["RRULE", "RDATE"]
            .iter()
            .any(|name| self.component.properties_named(name).next().is_some());
        if time.zone_reference != ZoneReference::Floating || time.is_date || is_series {
            return absolute;
        }
        let start = self.component.time_properties("DTSTART").next();
        let start = start.and_then(|start| self.dates.resolve(&start));
        match start.as_ref().map(|start| (&start.zone_reference, start)) {
            Some((ZoneReference::Zone(zone), _)) => Trigger::Absolute(zone.to_instant(time.civil)),
            Some((ZoneReference::Floating, start)) if !start.is_date => {
                let seconds = time.civil.seconds().saturating_sub(start.civil.seconds());
                Trigger::Start(IcalDuration { days: 0, seconds })
            }
            _ => absolute,
        }
    }

    fn read_trigger(&mut self, property: &TimeProperty<'_>) -> Option<Trigger> {
        if !property.text.contains(['P', 'p']) {
            let time = self.dates.read(property)?;
            return Some(self.absolute_trigger(&time));
        }
        let offset = match IcalDuration::parse(&property.text) {
            Ok(offset) => offset,
            Err(error) => {
                self.dates.warn(property.line, error.to_string());
                return None;
            }
        };
        let is_related_to_end =
            property.related.as_deref().is_some_and(|part| part.eq_ignore_ascii_case("END"));
        Some(match is_related_to_end {
            // A task is due at the beginning of its day, but its schedule includes that day.
            true if self.is_due_on_date() => {
                Trigger::End(IcalDuration { days: offset.days.saturating_sub(1), ..offset })
            }
            true => Trigger::End(offset),
            false => Trigger::Start(offset),
        })
    }
}
