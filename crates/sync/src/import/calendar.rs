//! The calendar around the components of a file: what it says of itself, and the time zones that it defines.
//!
//! It is gathered while a file is read, so a component knows what was defined before it. Components without a calendar
//! around them belong to one that says nothing.

use larder_format::component::{Component, Version};
use larder_format::decode::unescape_text;
use larder_store::{Frame, Zone};
use std::collections::HashMap;
use std::sync::Arc;

/// Of more definitions than this in one calendar the rest is not taken in.
const MAX_ZONES: usize = 4096;
/// Of a calendar's own lines, no more bytes than this are kept.
const MAX_HEAD: usize = 64 << 10;
/// Where a calendar has no name, and its file neither.
const NAMELESS: &str = "calendar";

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
    /// What its components get; made anew when something was said since.
    frame: Option<Arc<Frame>>,
    name: Option<Arc<str>>,
}

impl Calendar {
    /// The calendar of components that have none around them, in a file of this name.
    pub(crate) fn of_file(stem: String) -> Calendar {
        Calendar { stem: Arc::from(stem), ..Calendar::default() }
    }

    /// Another one begins in the same file.
    pub(crate) fn begin(&mut self) {
        *self = Calendar { stem: Arc::clone(&self.stem), ..Calendar::default() };
    }

    /// Lines of its own.
    pub(crate) fn say(&mut self, lines: &[u8]) {
        if self.head.len() + lines.len() <= MAX_HEAD {
            self.head.extend_from_slice(lines);
        }
        (self.frame, self.name) = (None, None);
    }

    /// A time zone is defined. The first definition of a name is the one that counts.
    pub(crate) fn define(&mut self, bytes: &[u8]) {
        self.defined += 1;
        let Some(zone) = Zone::new(bytes) else { return };
        if self.zones.len() < MAX_ZONES && !self.known.contains_key(zone.tzid()) {
            self.known.insert(zone.tzid().to_string(), self.zones.len());
            self.zones.push(Arc::new(zone));
            self.frame = None;
        }
    }

    /// What a component that comes now has around it.
    pub(crate) fn frame(&mut self) -> Arc<Frame> {
        let make = || {
            let version_1 = Version::of_calendar(&self.head) == Version::V1_0;
            Arc::new(Frame { version_1, zones: self.zones.clone() })
        };
        Arc::clone(self.frame.get_or_insert_with(make))
    }

    /// What it is called: by itself, else by its file.
    pub(crate) fn name(&mut self) -> Arc<str> {
        let make = || {
            let own = own_name(&self.head).unwrap_or_else(|| collection_name(&self.stem));
            Arc::from(if own.is_empty() { NAMELESS.into() } else { own })
        };
        Arc::clone(self.name.get_or_insert_with(make))
    }

    /// It ends: its own lines, and how many time zones it defined.
    pub(crate) fn end(&mut self) -> (Vec<u8>, u64) {
        let ended = (without_method(&self.head), self.defined);
        self.begin();
        ended
    }
}

/// METHOD says what a message is for (RFC 5546), and nothing of the calendar.
fn without_method(head: &[u8]) -> Vec<u8> {
    // An empty line may stand within a folded one; it is not exported.
    let whole: Vec<u8> = (head.split_inclusive(|&byte| byte == b'\n'))
        .filter(|line| {
            !line.trim_ascii().is_empty() || line.starts_with(b" ") || line.starts_with(b"\t")
        })
        .flatten()
        .copied()
        .collect();
    let kept = larder_format::line::lines(&whole).filter(|line| {
        let name = line.text.get(..6).unwrap_or_default();
        !name.eq_ignore_ascii_case(b"METHOD") || !matches!(line.text.get(6), Some(b':' | b';'))
    });
    kept.flat_map(|line| line.raw.to_vec()).collect()
}

/// X-WR-CALNAME, or NAME of RFC 7986.
fn own_name(head: &[u8]) -> Option<String> {
    let bytes = [b"BEGIN:VCALENDAR\n", head, b"\nEND:VCALENDAR\n"].concat();
    let calendar = Component::parse(&bytes);
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
