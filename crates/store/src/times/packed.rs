//! How what an item is in time is packed: flags; since when, for what is open; where an override stands for its followers, whose
//! it is; the names of the zones that went into it, the first of which is that of its clock; its alarms; and the series, as
//! `larder-time` packs it.

use super::{Alarm, Shape, Times, Trigger};
use crate::index::varint::{put, put_signed, take, take_signed};
use larder_time::civil::Instant;
use larder_time::series::{Clock, Series};
use larder_time::value::Nominal;
use larder_time::zone::Zone;

const OPEN: u64 = 1;
const SINCE: u64 = 2;
const TAGGED: u64 = 4;

impl Times {
    /// As it is kept.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        let since = match &self.shape {
            Shape::Open(since) => *since,
            Shape::Series(_) => None,
        };
        let open = matches!(self.shape, Shape::Open(_));
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags =
            flag(open, OPEN) | flag(since.is_some(), SINCE) | flag(self.tag.is_some(), TAGGED);
        put(&mut bytes, flags);
        since.into_iter().for_each(|since| put_signed(&mut bytes, since.seconds()));
        self.tag.into_iter().for_each(|tag| put_signed(&mut bytes, tag));
        put(&mut bytes, self.clocks.len() as u64);
        for name in &self.clocks {
            put(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
        }
        put(&mut bytes, self.alarms.len() as u64);
        for alarm in &self.alarms {
            alarm.pack(&mut bytes);
        }
        if let Shape::Series(series) = &self.shape {
            let clock = match series.clock() {
                Clock::Floating => 0,
                Clock::Utc => 1,
                Clock::Zone(_) => 2,
            };
            bytes.extend(series.to_bytes(clock));
        }
        bytes
    }

    /// Reads what was packed; `zone` knows the zone of a name. `None` where it is malformed, or its zone is not known.
    pub(crate) fn unpack(data: &[u8], zone: &mut dyn FnMut(&str) -> Option<Zone>) -> Option<Times> {
        let rest = &mut &*data;
        let flags = take(rest)?;
        let since =
            if flags & SINCE != 0 { Some(Instant::clamped(take_signed(rest)?)) } else { None };
        let tag = if flags & TAGGED != 0 { Some(take_signed(rest)?) } else { None };
        let mut names = Vec::new();
        for _ in 0..take(rest)? {
            let length = usize::try_from(take(rest)?).ok()?;
            let (name, behind) = rest.split_at_checked(length)?;
            names.push(String::from_utf8(name.to_vec()).ok()?);
            *rest = behind;
        }
        let mut alarms = Vec::new();
        for _ in 0..take(rest)? {
            alarms.push(Alarm::unpack(rest)?);
        }
        let shape = match flags & OPEN {
            0 => {
                let zone = names.first().and_then(|name| zone(name));
                let series = Series::from_bytes(rest, &mut |clock| match (clock, &zone) {
                    (1, _) => Clock::Utc,
                    (2, Some(zone)) => Clock::Zone(zone.clone()),
                    _ => Clock::Floating,
                })?;
                Shape::Series(Box::new(series))
            }
            _ => Shape::Open(since),
        };
        Some(Times { shape, tag, alarms, clocks: names })
    }
}

impl Alarm {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, numbers) = match self.trigger {
            Trigger::At(at) => (0, [at.seconds(), 0]),
            Trigger::Start(offset) => (1, [offset.days, offset.seconds]),
            Trigger::End(offset) => (2, [offset.days, offset.seconds]),
        };
        put(bytes, kind | u64::from(self.acknowledged.is_some()) << 2);
        numbers.into_iter().for_each(|number| put_signed(bytes, number));
        put(bytes, self.repeat);
        put_signed(bytes, self.every);
        self.acknowledged.into_iter().for_each(|at| put_signed(bytes, at.seconds()));
        put(bytes, u64::from(self.line));
    }

    fn unpack(rest: &mut &[u8]) -> Option<Alarm> {
        let kind = take(rest)?;
        let (days, seconds) = (take_signed(rest)?, take_signed(rest)?);
        let trigger = match kind & 3 {
            0 => Trigger::At(Instant::clamped(days)),
            1 => Trigger::Start(Nominal { days, seconds }),
            2 => Trigger::End(Nominal { days, seconds }),
            _ => return None,
        };
        let (repeat, every) = (take(rest)?, take_signed(rest)?);
        let acknowledged = match kind >> 2 {
            0 => None,
            _ => Some(Instant::clamped(take_signed(rest)?)),
        };
        let line = u32::try_from(take(rest)?).ok()?;
        Some(Alarm { trigger, repeat, every, acknowledged, line })
    }
}
