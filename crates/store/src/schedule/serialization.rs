//! How what an item is in time is packed: flags; since when, for what is open; where an override
//! stands for its followers, whose it is; the names of the zones that went into it, the first of
//! which is that of its clock; its alarms; and the series, as `larder-time` packs it.

use super::{Alarm, Schedule, ScheduleForm, Trigger};
use larder_index::varint::{read_signed_varint, read_varint, write_signed_varint, write_varint};
use larder_time::civil::Instant;
use larder_time::series::{Series, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

const OPEN_FLAG: u64 = 1;
const SINCE_FLAG: u64 = 2;
const OVERRIDE_FLAG: u64 = 4;

impl Schedule {
    /// As it is kept.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        let since = match &self.form {
            ScheduleForm::Open(since) => *since,
            ScheduleForm::Series(_) => None,
        };
        let open = matches!(self.form, ScheduleForm::Open(_));
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(open, OPEN_FLAG)
            | flag(since.is_some(), SINCE_FLAG)
            | flag(self.override_row.is_some(), OVERRIDE_FLAG);
        write_varint(&mut bytes, flags);
        since.into_iter().for_each(|since| write_signed_varint(&mut bytes, since.seconds()));
        self.override_row.into_iter().for_each(|tag| write_signed_varint(&mut bytes, tag));
        write_varint(&mut bytes, self.zone_names.len() as u64);
        for name in &self.zone_names {
            write_varint(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
        }
        write_varint(&mut bytes, self.alarms.len() as u64);
        for alarm in &self.alarms {
            alarm.pack(&mut bytes);
        }
        if let ScheduleForm::Series(series) = &self.form {
            let clock = match series.zone_reference() {
                ZoneReference::Floating => 0,
                ZoneReference::Utc => 1,
                ZoneReference::Zone(_) => 2,
            };
            bytes.extend(series.to_bytes(clock));
        }
        bytes
    }

    /// Reads what was packed; `zone` knows the zone of a name. `None` where it is malformed, or its
    /// zone is not known.
    pub(crate) fn unpack(
        data: &[u8],
        zone: &mut dyn FnMut(&str) -> Option<Zone>,
    ) -> Option<Schedule> {
        let rest = &mut &*data;
        let flags = read_varint(rest)?;
        let since = if flags & SINCE_FLAG != 0 {
            Some(Instant::from_seconds_clamped(read_signed_varint(rest)?))
        } else {
            None
        };
        let tag = if flags & OVERRIDE_FLAG != 0 { Some(read_signed_varint(rest)?) } else { None };
        let mut names = Vec::new();
        for _ in 0..read_varint(rest)? {
            let length = usize::try_from(read_varint(rest)?).ok()?;
            let (name, behind) = rest.split_at_checked(length)?;
            names.push(String::from_utf8(name.to_vec()).ok()?);
            *rest = behind;
        }
        let mut alarms = Vec::new();
        for _ in 0..read_varint(rest)? {
            alarms.push(Alarm::unpack(rest)?);
        }
        let shape = match flags & OPEN_FLAG {
            0 => {
                let zone = names.first().and_then(|name| zone(name));
                let series = Series::from_bytes(rest, &mut |clock| match (clock, &zone) {
                    (1, _) => ZoneReference::Utc,
                    (2, Some(zone)) => ZoneReference::Zone(zone.clone()),
                    _ => ZoneReference::Floating,
                })?;
                ScheduleForm::Series(Box::new(series))
            }
            _ => ScheduleForm::Open(since),
        };
        Some(Schedule { form: shape, override_row: tag, alarms, zone_names: names })
    }
}

impl Alarm {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, numbers) = match self.trigger {
            Trigger::Absolute(at) => (0, [at.seconds(), 0]),
            Trigger::Start(offset) => (1, [offset.days, offset.seconds]),
            Trigger::End(offset) => (2, [offset.days, offset.seconds]),
        };
        write_varint(bytes, kind | u64::from(self.acknowledged.is_some()) << 2);
        numbers.into_iter().for_each(|number| write_signed_varint(bytes, number));
        write_varint(bytes, self.repeat);
        write_signed_varint(bytes, self.interval_seconds);
        self.acknowledged.into_iter().for_each(|at| write_signed_varint(bytes, at.seconds()));
        write_varint(bytes, u64::from(self.line));
    }

    fn unpack(rest: &mut &[u8]) -> Option<Alarm> {
        let kind = read_varint(rest)?;
        let (days, seconds) = (read_signed_varint(rest)?, read_signed_varint(rest)?);
        let trigger = match kind & 3 {
            0 => Trigger::Absolute(Instant::from_seconds_clamped(days)),
            1 => Trigger::Start(IcalDuration { days, seconds }),
            2 => Trigger::End(IcalDuration { days, seconds }),
            _ => return None,
        };
        let (repeat, every) = (read_varint(rest)?, read_signed_varint(rest)?);
        let acknowledged = match kind >> 2 {
            0 => None,
            _ => Some(Instant::from_seconds_clamped(read_signed_varint(rest)?)),
        };
        let line = u32::try_from(read_varint(rest)?).ok()?;
        Some(Alarm { trigger, repeat, interval_seconds: every, acknowledged, line })
    }
}
