//! The calendar around the components of a file: what it says of itself, and the time zones that it defines.
//!
//! It is gathered while a file is read, so a component knows what was said before it; what is said behind it is known where
//! the file was looked through [`ahead`](super::ahead). Components without a calendar around them belong to one that says
//! nothing.

use larder_format::component::{Component, Version};
use larder_format::decode::{unescape_text, utf16_lines};
use larder_format::property::Property;
use larder_store::{Frame, Zone};
use std::collections::HashMap;
use std::sync::Arc;

/// Of more definitions than this in one calendar the rest is not taken in.
const MAX_ZONES: usize = 4096;
/// Of a calendar's own lines, no more bytes than this are kept.
pub(super) const MAX_HEAD: usize = 64 << 10;
/// What a calendar, or a definition, costs beside its bytes.
const CALENDAR: usize = 512;
/// Where a calendar has no name, and its file neither.
const NAMELESS: &str = "calendar";

/// Why a time zone is not taken.
pub(crate) const NO_TZID: &str = "a time zone without a TZID";

/// A calendar while it is read.
#[derive(Default)]
pub(crate) struct Calendar {
    /// What its file is called.
    stem: Arc<str>,
    head: Vec<u8>,
    /// The definitions, and where each is by its name.
    zones: Vec<Arc<Zone>>,
    known: HashMap<String, usize>,
    /// How many were there, with those that came again.
    defined: u64,
    /// The bytes of its own lines so far.
    said: usize,
    /// All that it says was read before.
    whole: bool,
    /// There was a component in it.
    used: bool,
    /// Something was said behind a component, a time zone was defined there.
    late: (bool, bool),
    /// What its components get; made anew when something was said since.
    around: Option<Arc<Around>>,
}

/// What a component has around it.
pub(crate) struct Around {
    /// What the calendar is called: by itself, else by its file.
    pub(crate) name: Arc<str>,
    /// The version of the format, and the definitions of time zones.
    pub(crate) frame: Arc<Frame>,
    /// What it is sent for.
    pub(crate) method: Method,
    /// It is a message about items, and not a calendar of its own.
    pub(crate) is_message: bool,
}

/// What a calendar is sent for (METHOD of RFC 5546).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    /// It is not sent, as far as one can see.
    None,
    /// Its items are as their organizer has them, at some time, for whoever wants them.
    Publish,
    /// The same, for those who are asked to come.
    Request,
    /// They are called off.
    Cancel,
    /// What it says of an item is not all of it: an answer, a proposal, one more occurrence.
    Part(String),
}

/// What a calendar said until its end.
pub(crate) struct Ended {
    pub(crate) name: Arc<str>,
    /// As [`Around`] has it.
    pub(crate) is_message: bool,
    /// Its own lines.
    pub(crate) head: Vec<u8>,
    /// How many time zones it defined.
    pub(crate) zones: u64,
    /// One of them was defined too late for what was before it.
    pub(crate) late: bool,
    /// Nothing was in it, not even its end.
    pub(crate) cut: bool,
}

impl Calendar {
    /// The calendar of components that have none around them, in a file of this name.
    pub(crate) fn of_file(stem: Arc<str>) -> Calendar {
        Calendar { stem, ..Calendar::default() }
    }

    /// Another one begins in the same file.
    pub(crate) fn begin(&mut self) {
        *self = Calendar::of_file(Arc::clone(&self.stem));
    }

    /// Lines of its own. Returns those that it has no room for.
    pub(crate) fn say<'l>(&mut self, lines: &'l [u8]) -> &'l [u8] {
        let room = MAX_HEAD.saturating_sub(self.said);
        self.said = self.said.saturating_add(lines.len());
        let decoded = utf16_lines(lines);
        let fits = match lines.get(..room) {
            _ if lines.len() <= room => lines.len(),
            Some(beginning) if decoded.is_none() => {
                beginning.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
            }
            _ => 0,
        };
        let (taken, rest) = lines.split_at(fits);
        if !self.whole && !taken.is_empty() {
            self.head.extend_from_slice(decoded.as_deref().map_or(taken, str::as_bytes));
            self.late.0 |= self.used;
            self.around = None;
        }
        rest
    }

    /// A time zone is defined. The first definition of a name is the one that counts. False: it has no name, so nothing can use it.
    pub(crate) fn define(&mut self, bytes: &[u8]) -> bool {
        let Some(zone) = Zone::new(bytes) else { return false };
        self.defined += 1;
        let is_new = !self.whole && !self.known.contains_key(zone.tzid());
        if is_new && self.zones.len() < MAX_ZONES {
            self.known.insert(zone.tzid().to_string(), self.zones.len());
            self.zones.push(Arc::new(zone));
            self.late.1 |= self.used;
            self.around = None;
        }
        true
    }

    /// A component is in it.
    pub(crate) fn is_used(&mut self) {
        self.used = true;
    }

    /// What a component that comes now has around it.
    pub(crate) fn around(&mut self) -> Arc<Around> {
        let make = || {
            let version_1 = Version::of_calendar(&self.head) == Version::V1_0;
            let frame = Arc::new(Frame { version_1, zones: self.zones.clone() });
            let bytes = [b"BEGIN:VCALENDAR\n", &*self.head, b"\nEND:VCALENDAR\n"].concat();
            let calendar = Component::parse(&bytes);
            let (own, method) = (own_name(&calendar), Method::of(&calendar));
            let is_message = own.is_none() && method.is_to_some();
            let own = own.unwrap_or_else(|| collection_name(&self.stem));
            let name = Arc::from(if own.is_empty() { NAMELESS.into() } else { own });
            Arc::new(Around { name, frame, method, is_message })
        };
        Arc::clone(self.around.get_or_insert_with(make))
    }

    /// It ends.
    pub(crate) fn end(&mut self, closed: bool) -> Ended {
        let around = self.around();
        Ended {
            name: Arc::clone(&around.name),
            is_message: around.is_message,
            head: without_method(&self.head),
            zones: self.defined,
            late: self.late.1,
            cut: !closed && !self.used,
        }
    }

    /// How much it holds, in bytes.
    pub(super) fn cost(&self) -> usize {
        let zones = self.zones.iter().map(|zone| CALENDAR + zone.bytes().len());
        CALENDAR + self.head.len() + zones.sum::<usize>()
    }

    /// The same calendar for who reads it again, if it said something behind a component.
    pub(crate) fn if_late(&mut self) -> Option<Calendar> {
        if self.late == (false, false) {
            return None;
        }
        let said = std::mem::replace(self, Calendar::of_file(Arc::clone(&self.stem)));
        let Calendar { stem, head, zones, known, .. } = said;
        Some(Calendar { stem, head, zones, known, whole: true, ..Calendar::default() })
    }
}

impl Method {
    fn of(calendar: &Component<'_>) -> Method {
        let name = calendar.named("METHOD").next().map(|method| method.text().to_ascii_uppercase());
        match name.as_deref().map(str::trim) {
            Some("PUBLISH") => Method::Publish,
            Some("REQUEST") => Method::Request,
            Some("CANCEL") => Method::Cancel,
            Some(part @ ("REPLY" | "ADD" | "COUNTER" | "DECLINECOUNTER" | "REFRESH")) => {
                Method::Part(part.into())
            }
            _ => Method::None,
        }
    }

    /// Is it for some people, about items that they may have already, in whichever calendar?
    fn is_to_some(&self) -> bool {
        matches!(self, Method::Request | Method::Cancel | Method::Part(_))
    }
}

/// METHOD says what a message is for, and nothing of the calendar.
fn without_method(head: &[u8]) -> Vec<u8> {
    // An empty line may stand within a folded one; it is not exported.
    let whole: Vec<u8> = (head.split_inclusive(|&byte| byte == b'\n'))
        .filter(|line| {
            !line.trim_ascii().is_empty() || line.starts_with(b" ") || line.starts_with(b"\t")
        })
        .flatten()
        .copied()
        .collect();
    let mut kept = Vec::with_capacity(whole.len());
    for line in larder_format::line::lines(&whole) {
        let raw = line.raw;
        if !Property::parse(line).is("METHOD") {
            kept.extend_from_slice(raw);
        }
    }
    kept
}

/// X-WR-CALNAME, or NAME of RFC 7986.
fn own_name(calendar: &Component<'_>) -> Option<String> {
    let mut names = ["X-WR-CALNAME", "NAME"].into_iter().flat_map(|name| {
        calendar.named(name).map(|property| unescape_text(&property.text()).into_owned())
    });
    names.find_map(|name| Some(collection_name(&name)).filter(|name| !name.is_empty()))
}

/// A text as the name of a collection: in one line, without slashes, and not too long.
fn collection_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '/' { ' ' } else { c };
    let name: String = text.chars().take(200).map(plain).collect();
    name.trim().to_string()
}
