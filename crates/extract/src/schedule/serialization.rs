//! The packed form of a schedule: flags; the existence of an undated one; the row of the override,
//! if the item stands for the occurrences after an override; the names of the time zones, the zone
//! of the start first; the alarms; and the series, as `larder-time` packs it.

use super::{Alarm, Existence, Schedule, ScheduleForm, Trigger};
use larder_time::civil::Instant;
use larder_time::series::{Series, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::varint::{VarintReader, put_signed_number, put_unsigned_number};
use larder_time::zone::Zone;

const UNDATED_FLAG: u64 = 1;
const SINCE_FLAG: u64 = 2;
const OVERRIDE_FLAG: u64 = 4;
const UNTIL_FLAG: u64 = 8;

impl Schedule {
    /// Returns the packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        let existence = match self.form {
            ScheduleForm::Undated(existence) => Some(existence),
            ScheduleForm::Series(_) => None,
        };
        let Existence { since, until } = existence.unwrap_or_default();
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(existence.is_some(), UNDATED_FLAG)
            | flag(since.is_some(), SINCE_FLAG)
            | flag(until.is_some(), UNTIL_FLAG)
            | flag(self.override_row.is_some(), OVERRIDE_FLAG);
        put_unsigned_number(&mut bytes, flags);
        for bound in [since, until].into_iter().flatten() {
            put_signed_number(&mut bytes, bound.seconds());
        }
        self.override_row.into_iter().for_each(|row| put_signed_number(&mut bytes, row));
        put_unsigned_number(&mut bytes, self.zone_names.len() as u64);
        for name in &self.zone_names {
            put_unsigned_number(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
        }
        put_unsigned_number(&mut bytes, self.alarms.len() as u64);
        for alarm in &self.alarms {
            alarm.pack(&mut bytes);
        }
        if let ScheduleForm::Series(series) = &self.form {
            let zone_code = match series.zone_reference() {
                ZoneReference::Floating => 0,
                ZoneReference::Utc => 1,
                ZoneReference::Zone(_) => 2,
            };
            bytes.extend(series.to_bytes(zone_code));
        }
        bytes
    }

    /// Reads the packed form; `find_zone` returns the time zone of a name. `None` if the bytes are
    /// malformed, or the zone is unknown.
    #[must_use]
    pub fn unpack(
        data: &[u8],
        find_zone: &mut dyn FnMut(&str) -> Option<Zone>,
    ) -> Option<Schedule> {
        let rest = &mut VarintReader::new(data);
        let flags = rest.read_unsigned()?;
        let mut existence = Existence::default();
        for (flag, bound) in
            [(SINCE_FLAG, &mut existence.since), (UNTIL_FLAG, &mut existence.until)]
        {
            if flags & flag != 0 {
                *bound = Some(Instant::from_seconds_clamped(rest.read_signed()?));
            }
        }
        let override_row =
            if flags & OVERRIDE_FLAG != 0 { Some(rest.read_signed()?) } else { None };
        let mut names = Vec::new();
        for _ in 0..rest.read_unsigned()? {
            let length = usize::try_from(rest.read_unsigned()?).ok()?;
            names.push(String::from_utf8(rest.read_bytes(length)?.to_vec()).ok()?);
        }
        let mut alarms = Vec::new();
        for _ in 0..rest.read_unsigned()? {
            alarms.push(Alarm::unpack(rest)?);
        }
        let form = match flags & UNDATED_FLAG {
            0 => {
                let zone = names.first().and_then(|name| find_zone(name));
                let series =
                    Series::from_bytes(rest.remaining_bytes(), &mut |code| match (code, &zone) {
                        (1, _) => ZoneReference::Utc,
                        (2, Some(zone)) => ZoneReference::Zone(zone.clone()),
                        _ => ZoneReference::Floating,
                    })?;
                ScheduleForm::Series(Box::new(series))
            }
            _ => ScheduleForm::Undated(existence),
        };
        Some(Schedule { form, override_row, alarms, zone_names: names })
    }
}

impl Alarm {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, numbers) = match self.trigger {
            Trigger::Absolute(at) => (0, [at.seconds(), 0]),
            Trigger::Start(offset) => (1, [offset.days, offset.seconds]),
            Trigger::End(offset) => (2, [offset.days, offset.seconds]),
        };
        put_unsigned_number(bytes, kind | u64::from(self.acknowledged.is_some()) << 2);
        numbers.into_iter().for_each(|number| put_signed_number(bytes, number));
        put_unsigned_number(bytes, self.repeat);
        put_signed_number(bytes, self.interval_seconds);
        self.acknowledged.into_iter().for_each(|at| put_signed_number(bytes, at.seconds()));
        put_unsigned_number(bytes, u64::from(self.line));
    }

    fn unpack(rest: &mut VarintReader<'_>) -> Option<Alarm> {
        let kind = rest.read_unsigned()?;
        let (days, seconds) = (rest.read_signed()?, rest.read_signed()?);
        let trigger = match kind & 3 {
            0 => Trigger::Absolute(Instant::from_seconds_clamped(days)),
            1 => Trigger::Start(IcalDuration { days, seconds }),
            2 => Trigger::End(IcalDuration { days, seconds }),
            _ => return None,
        };
        let (repeat, interval_seconds) = (rest.read_unsigned()?, rest.read_signed()?);
        let acknowledged = match kind >> 2 {
            0 => None,
            _ => Some(Instant::from_seconds_clamped(rest.read_signed()?)),
        };
        let line = u32::try_from(rest.read_unsigned()?).ok()?;
        Some(Alarm { trigger, repeat, interval_seconds, acknowledged, line })
    }
}
