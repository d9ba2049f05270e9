//! The messages of an mbox file (RFC 4155), in a stream of bytes.
//!
//! A line `From ` begins a message. Programs disagree on everything else, so:
//!
//! * The line stands at the beginning of the file or after an empty line, and has a time of day, or
//!   nothing behind `From `; without an empty line before, it needs a whole date.
//! * If the header has a Content-Length, and a message ends after so many bytes, lines `From ` in
//!   between belong to the message.
//! * `From ` at the beginning of a line of text is written as `>From `, which [`unquote`] undoes. A
//!   program that leaves such lines as they are has not quoted any.
//! * A line `From ` without a message behind it, but empty lines, is left out.
//! * The states of a message are in the fields Status and X-Status, X-Mozilla-Status, or
//!   X-Gmail-Labels. The first three change when the message is read, so that they are no part of
//!   its text: [`strip_status`] removes them.
//!
//! Separate from `splitter`, whose items have an end of their own.

use crate::maildir_name::{MaildirFlag, MaildirFlags, MaildirName};
use memchr::memchr;
use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// The beginning of the line in front of a message.
pub const SEPARATOR: &[u8] = b"From ";
/// Bytes behind a place that [`is_message_end`] needs: a file of empty lines would be read again
/// and again.
pub const END_BYTES: usize = 512;
/// The longest piece of a line that is read at once.
const MAX_PIECE_BYTES: usize = 64 << 10;
/// The beginning of a line that is looked at. The rest is only hashed.
const MAX_HEAD_BYTES: usize = 4096;
/// The longest value of X-Gmail-Labels.
const MAX_LABEL_BYTES: usize = 4096;
/// The header fields with states that change.
const STATUS_FIELDS: [&[u8]; 4] =
    [b"status", b"x-status", b"x-mozilla-status", b"x-mozilla-status2"];

/// A message of an mbox file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MboxMessage {
    /// The place of its bytes, without the line in front of it and the empty line behind.
    pub section: MboxSection,
    /// The states.
    pub flags: MaildirFlags,
    /// A mail program deleted it, and has not removed it yet.
    pub is_expunged: bool,
}

/// The place of a message in an mbox file.
///
/// The name of the message is made from it, in the form of a name in a maildir:
/// `1204000000.5000+812,H=0123456789abcdef:2,S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MboxSection {
    /// The time of delivery in seconds since 1970, from the line in front of it; 0: unknown.
    pub date: u32,
    /// The offset of its first byte.
    pub offset: u64,
    /// The number of its bytes.
    pub length: u64,
    /// The hash of its bytes without states, see [`hash_message`].
    pub hash: u64,
}

impl MboxSection {
    /// Returns the name of a message with these flags.
    #[must_use]
    pub fn to_name(&self, flags: MaildirFlags) -> String {
        let MboxSection { date, offset, length, hash } = self;
        let letters: String = flags.iter().map(MaildirFlag::letter).collect();
        format!("{date}.{offset}+{length},H={hash:016x}:2,{letters}")
    }

    /// Reads the section from the name of a message; `None`: it has another form.
    #[must_use]
    pub fn parse_name(name: &[u8]) -> Option<MboxSection> {
        let base = str::from_utf8(MaildirName::parse(name).base).ok()?;
        let (date, rest) = base.split_once('.')?;
        let (offset, rest) = rest.split_once('+')?;
        let (length, hash) = rest.split_once(",H=")?;
        let section = MboxSection {
            date: date.parse().ok()?,
            offset: offset.parse().ok()?,
            length: length.parse().ok()?,
            hash: u64::from_str_radix(hash, 16).ok()?,
        };
        // The same number has other forms, which are no names of ours.
        let name = section.to_name(MaildirFlags::default());
        (name.strip_suffix(":2,") == Some(base)).then_some(section)
    }
}

/// Returns whether bytes at an offset of an mbox file show that a message may end there: nothing
/// follows, or the next message does.
#[must_use]
pub fn is_message_end(following: &[u8]) -> bool {
    let mut rest = following;
    while let Some(next) = rest.strip_prefix(b"\n").or(rest.strip_prefix(b"\r\n")) {
        rest = next;
    }
    rest.is_empty() || rest.starts_with(SEPARATOR)
}

/// Returns the place of the first message in the bytes of an mbox file, and the number of messages;
/// `None`: it is no mbox file, or has none.
#[must_use]
pub fn first_message(file: &[u8]) -> Option<(Range<usize>, usize)> {
    if !file.starts_with(SEPARATOR) {
        return None;
    }
    let from = |at: u64| usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let mut is_end = |at: u64| {
        let rest = from(at);
        at <= file.len() as u64 && is_message_end(rest.get(..END_BYTES).unwrap_or(rest))
    };
    let mut scanner = MboxScanner::new(0);
    scanner.push(file, &mut is_end);
    let messages = scanner.finish();
    let [first, others @ ..] = messages.as_slice() else { return None };
    // A line of text may begin so, too, in a file that is a single message.
    if others.first().is_some_and(|second| !begins_header(from(second.section.offset))) {
        return None;
    }
    let start = usize::try_from(first.section.offset).ok()?;
    let end = start.checked_add(usize::try_from(first.section.length).ok()?)?;
    Some((start..end, messages.len()))
}

/// Returns whether bytes begin with the name of a header field.
fn begins_header(bytes: &[u8]) -> bool {
    let name = bytes.iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b':').count();
    name > 0 && bytes.get(name) == Some(&b':')
}

/// Reads the flags in the header of a message, and whether it is expunged. The bytes need not go on
/// behind the header.
#[must_use]
pub fn read_states(message: &[u8]) -> (MaildirFlags, bool) {
    let mut scanner = MboxScanner::new(0);
    for bytes in [SEPARATOR, b"\n", message] {
        scanner.push(bytes, &mut |_| false);
    }
    let found = scanner.finish();
    found.first().map_or_else(Default::default, |first| (first.flags, first.is_expunged))
}

/// Returns the number of bytes of the header of a message, with the empty line behind it; `None`:
/// it goes on.
#[must_use]
pub fn find_header_end(message: &[u8]) -> Option<usize> {
    let mut end = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if is_empty_line(line) {
            return Some(end);
        }
    }
    None
}

/// Returns a message without the fields of its states.
#[must_use]
pub fn strip_status(message: &[u8]) -> Vec<u8> {
    let mut stripped = Vec::with_capacity(message.len());
    let (mut rest, mut is_skipping) = (message, false);
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, next) = rest.split_at(end);
        if is_empty_line(line) {
            break;
        }
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            is_skipping = status_field(line).is_some();
        }
        if !is_skipping {
            stripped.extend_from_slice(line);
        }
        rest = next;
    }
    stripped.extend_from_slice(rest);
    stripped
}

/// Returns the hash of a message without its states.
#[must_use]
pub fn hash_message(stripped: &[u8]) -> u64 {
    short_hash(Sha256::new_with_prefix(stripped))
}

fn short_hash(hash: Sha256) -> u64 {
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Removes one `>` from the lines `>From `, `>>From ` and so on of a message. A message with a line
/// `From ` has none that were quoted.
pub fn unquote(message: &mut Vec<u8>) {
    let is_quoted = |line: &[u8]| {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        marks > 0 && line.get(marks..).is_some_and(|rest| rest.starts_with(SEPARATOR))
    };
    let lines = || message.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(is_quoted) || lines().any(|line| line.starts_with(SEPARATOR)) {
        return;
    }
    let unquoted = lines().flat_map(|line| if is_quoted(line) { &line[1..] } else { line });
    *message = unquoted.copied().collect();
}

/// Returns a message as a part of an mbox file: the line in front of it, with the address of the
/// sender and a time as `asctime` of C writes it in UTC; the message, whose lines `From ` are
/// quoted; and an empty line.
#[must_use]
pub fn format_message(message: &[u8], sender: &str, time: &str) -> Vec<u8> {
    // The line of another mbox file, from which the message came.
    let message = match message.strip_prefix(SEPARATOR) {
        Some(rest) => memchr(b'\n', rest).and_then(|end| rest.get(end + 1..)).unwrap_or_default(),
        None => message,
    };
    let is_plain = |c: char| c.is_ascii_graphic();
    let sender = if sender.is_empty() || !sender.chars().all(is_plain) { "-" } else { sender };
    let mut bytes = format!("From {sender} {time}\n").into_bytes();
    bytes.reserve(message.len() + 2);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        if line.get(marks..).is_some_and(|rest| rest.starts_with(SEPARATOR)) {
            bytes.push(b'>');
        }
        bytes.extend_from_slice(line);
    }
    if !message.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes
}

/// Finds the messages in the bytes of an mbox file, which come in pieces of any size.
#[derive(Debug)]
pub struct MboxScanner {
    /// The offset of the next piece of a line.
    position: u64,
    /// The piece at `position` begins a line.
    is_line_start: bool,
    /// The line in front of a message, which has no end yet.
    is_in_separator: bool,
    /// An empty line that ends the message if the next line is a separator.
    empty_line: Option<&'static [u8]>,
    /// Lines before this offset belong to the message.
    content_end: u64,
    /// A message may begin here without an empty line before it.
    start: u64,
    /// The beginning of a line of which the end has not come yet.
    partial: Vec<u8>,
    message: Option<OpenMessage>,
    found: Vec<MboxMessage>,
}

/// A message whose end has not come yet.
#[derive(Debug)]
struct OpenMessage {
    date: u32,
    offset: u64,
    hash: Sha256,
    field: HeaderPlace,
    status: StatusFields,
    /// It has no line but empty ones.
    is_blank: bool,
}

/// The place in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderPlace {
    /// In a field that is part of the text.
    Text,
    /// In a field of states.
    Status,
    /// In the labels of Gmail.
    Labels,
    /// In the body.
    Body,
}

/// The values of the fields of states.
#[derive(Debug, Default)]
struct StatusFields {
    letters: Vec<u8>,
    mozilla: Option<u32>,
    labels: Vec<u8>,
    has_status: bool,
    content_length: Option<u64>,
}

impl MboxScanner {
    /// Begins at an offset of a file, at which a message begins, possibly after empty lines.
    #[must_use]
    pub fn new(offset: u64) -> MboxScanner {
        MboxScanner {
            position: offset,
            is_line_start: true,
            is_in_separator: false,
            empty_line: None,
            content_end: 0,
            start: offset,
            partial: Vec::new(),
            message: None,
            found: Vec::new(),
        }
    }

    /// Reads the next bytes. `is_end` tells whether a message may end at an offset, see
    /// [`is_message_end`].
    pub fn push(&mut self, mut bytes: &[u8], is_end: &mut dyn FnMut(u64) -> bool) {
        while !bytes.is_empty() {
            let end = memchr(b'\n', bytes).map(|at| at + 1);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            bytes = rest;
            if end.is_some() && self.partial.is_empty() {
                self.read_piece(piece, is_end);
                continue;
            }
            self.partial.extend_from_slice(piece);
            if end.is_some() || self.partial.len() >= MAX_PIECE_BYTES {
                let mut partial = std::mem::take(&mut self.partial);
                self.read_piece(&partial, is_end);
                partial.clear();
                self.partial = partial;
            }
        }
    }

    /// Returns the messages whose ends have come since the last call.
    pub fn take_messages(&mut self) -> Vec<MboxMessage> {
        std::mem::take(&mut self.found)
    }

    /// Ends the file. Returns the last messages.
    #[must_use]
    pub fn finish(mut self) -> Vec<MboxMessage> {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.read_piece(&partial, &mut |_| true);
        }
        self.end_message(self.position);
        self.found
    }

    fn read_piece(&mut self, piece: &[u8], is_end: &mut dyn FnMut(u64) -> bool) {
        let (at, is_line_start) = (self.position, self.is_line_start);
        self.position += piece.len() as u64;
        self.is_line_start = piece.ends_with(b"\n");
        let head = piece.get(..MAX_HEAD_BYTES).unwrap_or(piece);
        if self.is_in_separator || is_line_start && self.is_separator(head, at) {
            if !self.is_in_separator {
                self.end_message(at);
                self.begin_message(separator_date(head).unwrap_or_default());
            }
            self.is_in_separator = !self.is_line_start;
            if let Some(message) = &mut self.message {
                message.offset = self.position;
            }
            return;
        }
        let Some(message) = &mut self.message else {
            // Empty lines in front of the first message of a part of a file.
            if is_empty_line(piece) {
                self.start = self.position;
            }
            return;
        };
        let is_empty = is_line_start && is_empty_line(piece);
        message.is_blank &= is_empty;
        if message.field != HeaderPlace::Body {
            if is_empty {
                message.field = HeaderPlace::Body;
                let length = message.status.content_length.unwrap_or_default();
                let end = self.position.saturating_add(length);
                if length > 0 && is_end(end) {
                    self.content_end = end;
                }
            } else if is_line_start {
                message.read_header_line(head);
            }
            if message.field == HeaderPlace::Status {
                return;
            }
        }
        if let Some(line) = self.empty_line.take() {
            message.hash.update(line);
        }
        match is_empty {
            true if piece.starts_with(b"\r") => self.empty_line = Some(b"\r\n"),
            true => self.empty_line = Some(b"\n"),
            false => message.hash.update(piece),
        }
    }

    fn is_separator(&self, line: &[u8], at: u64) -> bool {
        let Some(rest) = line.strip_prefix(SEPARATOR).filter(|_| at >= self.content_end) else {
            return false;
        };
        if at == self.start && self.message.is_none() {
            return true;
        }
        let rest = rest.trim_ascii();
        let is_bare = rest.is_empty() || rest == b"-";
        let has_time = || rest.split(|byte| *byte == b' ').any(|word| parse_time(word).is_some());
        match self.empty_line {
            Some(_) => is_bare || has_time(),
            None => separator_date(line).is_some(),
        }
    }

    fn begin_message(&mut self, date: u32) {
        self.empty_line = None;
        self.message = Some(OpenMessage {
            date,
            offset: 0,
            hash: Sha256::new(),
            field: HeaderPlace::Text,
            status: StatusFields::default(),
            is_blank: true,
        });
    }

    /// Ends the message before an offset, without an empty line at its end.
    fn end_message(&mut self, end: u64) {
        let empty_line = self.empty_line.take().unwrap_or_default();
        // Nothing behind a line `From ` is no message.
        let Some(message) = self.message.take().filter(|message| !message.is_blank) else { return };
        let end = (end - empty_line.len() as u64).max(message.offset);
        self.found.push(MboxMessage {
            section: MboxSection {
                date: message.date,
                offset: message.offset,
                length: end - message.offset,
                hash: short_hash(message.hash),
            },
            flags: message.status.flags(),
            is_expunged: message.status.mozilla.is_some_and(|bits| bits & 0x8 != 0),
        });
    }
}

impl OpenMessage {
    fn read_header_line(&mut self, line: &[u8]) {
        let status = &mut self.status;
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if self.field == HeaderPlace::Labels {
                status.add_labels(line);
            }
            return;
        }
        self.field = HeaderPlace::Text;
        if let Some((name, value)) = status_field(line) {
            self.field = HeaderPlace::Status;
            status.has_status = true;
            match name {
                b"x-mozilla-status" => {
                    let digits = str::from_utf8(value).unwrap_or_default();
                    status.mozilla = u32::from_str_radix(digits, 16).ok();
                }
                b"x-mozilla-status2" => {}
                _ => status.letters.extend(value.iter().take(16)),
            }
        } else if let Some(value) = field_value(line, b"x-gmail-labels") {
            self.field = HeaderPlace::Labels;
            status.add_labels(value);
        } else if let Some(value) = field_value(line, b"content-length") {
            let digits = str::from_utf8(value).unwrap_or_default();
            status.content_length = digits.parse().ok();
        }
    }
}

impl StatusFields {
    fn add_labels(&mut self, value: &[u8]) {
        let space = MAX_LABEL_BYTES.saturating_sub(self.labels.len());
        self.labels.extend(value.trim_ascii().iter().take(space));
    }

    fn flags(&self) -> MaildirFlags {
        let mut flags = MaildirFlags::default();
        let mut add = |flag, is_set: bool| {
            if is_set {
                flags = flags.with_flag(flag);
            }
        };
        let has_letter = |letter| self.letters.contains(&letter);
        let has_bit = |bit| self.mozilla.is_some_and(|bits| bits & bit != 0);
        let has_label = |name: &[u8]| {
            let mut labels = self.labels.split(|byte| *byte == b',');
            labels.any(|label| label.trim_ascii() == name)
        };
        // Gmail has no fields of states.
        let is_gmail = !self.has_status && !self.labels.is_empty();
        add(MaildirFlag::Draft, has_letter(b'T') || is_gmail && has_label(b"Drafts"));
        add(
            MaildirFlag::Flagged,
            has_letter(b'F') || has_bit(0x4) || is_gmail && has_label(b"Starred"),
        );
        add(MaildirFlag::Passed, has_bit(0x1000));
        add(MaildirFlag::Replied, has_letter(b'A') || has_bit(0x2));
        add(
            MaildirFlag::Seen,
            has_letter(b'R') || has_bit(0x1) || is_gmail && !has_label(b"Unread"),
        );
        add(MaildirFlag::Trashed, has_letter(b'D'));
        flags
    }
}

fn is_empty_line(line: &[u8]) -> bool {
    line == b"\n" || line == b"\r\n"
}

/// Returns the name and the value of a field of states; `None`: the line begins another field.
fn status_field(line: &[u8]) -> Option<(&'static [u8], &[u8])> {
    STATUS_FIELDS.into_iter().find_map(|name| Some((name, field_value(line, name)?)))
}

/// Returns the value of a field with this name in lower case.
fn field_value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

/// Returns the date in the line in front of a message, in seconds since 1970: `From anna Thu Jan 1
/// 10:20:30 2015`, with or without a time zone, and in other orders.
fn separator_date(line: &[u8]) -> Option<u32> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let text = str::from_utf8(line.get(..line.len().min(500))?).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().skip(1).collect();
    let month_of = |word: &&str| MONTHS.iter().position(|month| word.eq_ignore_ascii_case(month));
    let place = words.iter().rposition(|word| month_of(word).is_some())?;
    let month = i64::try_from(words.get(place).and_then(month_of)?).ok()?;
    let seconds = words.iter().rev().find_map(|word| parse_time(word.as_bytes()))?;
    let number = |word: &&str| word.parse::<i64>().ok();
    let day = [place + 1, place.wrapping_sub(1)]
        .into_iter()
        .find_map(|near| words.get(near).and_then(number).filter(|day| (1..=31).contains(day)))?;
    let year = words.iter().rev().find_map(|word| {
        number(word).filter(|year| word.len() == 4 && (1970..=2105).contains(year))
    })?;
    let zone = words.iter().rev().find_map(|word| parse_zone(word)).unwrap_or_default();
    // Days of the civil calendar, with years that begin in March.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    u32::try_from(days * 86_400 + seconds - zone).ok()
}

/// Returns the seconds of a time of day: `10:20` or `10:20:30`.
fn parse_time(word: &[u8]) -> Option<i64> {
    let word = str::from_utf8(word).ok()?.trim();
    let mut numbers = word.split(':').map(|digits| {
        let is_number = matches!(digits.len(), 1 | 2);
        digits.parse::<u8>().ok().filter(|number| is_number && *number < 61)
    });
    let (hours, minutes) = (numbers.next()??, numbers.next()??);
    let seconds = numbers.next().map_or(Some(0), |seconds| seconds)?;
    let is_time = hours < 24 && minutes < 60 && numbers.next().is_none();
    is_time.then(|| i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds))
}

/// Returns the seconds of a time zone: `+0100`.
fn parse_zone(word: &str) -> Option<i64> {
    let sign = match word.as_bytes() {
        [b'+', _, _, _, _] => 1,
        [b'-', _, _, _, _] => -1,
        _ => return None,
    };
    let number: i64 = word.get(1..)?.parse().ok()?;
    Some(sign * (number / 100 * 3600 + number % 100 * 60))
}
