//! The parts of a bundle2.
//!
//! A part is a header after its length, then chunks of payload, each after its length; a length
//! of 0 ends the payload, and a header of length 0 ends the bundle. A chunk of length -1 announces
//! a part between two chunks, by which a server reports that it failed. Names with an upper-case
//! letter are mandatory: who does not know them must refuse the bundle.

use super::{ByteStream, ChangeError, PartParameter, drain, fill};
use crate::byte_reader::{end_of_stream, read_array, read_bytes};
use std::io::{self, BufRead, Read};

/// The longest header that is read. The format allows 255 parameters of 510 bytes.
const HEADER_LIMIT_BYTES: usize = 1 << 18;

/// The longest payload that is kept in memory, and the sum of all of them.
const PAYLOAD_LIMIT_BYTES: usize = 1 << 26;

/// The length that announces a part between two chunks.
const INTERRUPT: i32 = -1;

/// The header of a part.
pub(super) struct Part {
    /// The type, which tells by its letters whether the part is mandatory.
    name: Vec<u8>,
    pub(super) parameters: Vec<PartParameter>,
    /// How many of the parameters are mandatory; these come first.
    mandatory_count: usize,
}

impl Part {
    /// Returns the type in lower case, the form in which types are compared.
    pub(super) fn lower_name(&self) -> String {
        self.name.to_ascii_lowercase().escape_ascii().to_string()
    }

    /// Returns whether the bundle must be refused if the type is not known.
    pub(super) fn is_mandatory(&self) -> bool {
        self.name.iter().any(u8::is_ascii_uppercase)
    }

    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&[u8]> {
        let is_wanted = |(found, _): &&PartParameter| found == name.as_bytes();
        self.parameters.iter().find(is_wanted).map(|(_, value)| value.as_slice())
    }

    /// Refuses mandatory parameters that are not in the list.
    pub(super) fn check_parameters(&self, known: &[&str]) -> Result<(), ChangeError> {
        for (name, _) in self.parameters.iter().take(self.mandatory_count) {
            if !known.iter().any(|known| known.as_bytes() == name) {
                let (part, name) = (self.lower_name(), name.escape_ascii());
                return Err(ChangeError::new_unsupported(format!(
                    "parameter {name} of part {part}"
                )));
            }
        }
        Ok(())
    }

    /// Parses the bytes of a header: the type, an id that only replies need, and the parameters.
    fn parse(header: &[u8]) -> Option<Part> {
        let mut rest = header;
        let name_len = split_byte(&mut rest)?;
        let name = split_bytes(&mut rest, name_len)?;
        split_bytes(&mut rest, 4)?;
        let mandatory_count = split_byte(&mut rest)?;
        let advisory_count = split_byte(&mut rest)?;
        let mut sizes = Vec::new();
        for _ in 0..mandatory_count + advisory_count {
            sizes.push((split_byte(&mut rest)?, split_byte(&mut rest)?));
        }
        let mut parameters = Vec::new();
        for (key_len, value_len) in sizes {
            let key = split_bytes(&mut rest, key_len)?;
            parameters.push((key, split_bytes(&mut rest, value_len)?));
        }
        rest.is_empty().then_some(Part { name, parameters, mandatory_count })
    }

    /// Returns the error that a part of this type stands for.
    fn to_error(&self) -> Option<ChangeError> {
        let text =
            |name| self.parameter(name).map(|value| String::from_utf8_lossy(value).into_owned());
        let message = match self.lower_name().as_str() {
            "error:abort" | "error:pushraced" | "error:pushkey" => {
                let message = text("message").unwrap_or_else(|| "no reason is given".to_owned());
                match text("hint") {
                    Some(hint) => format!("{message} ({hint})"),
                    None => message,
                }
            }
            "error:unsupportedcontent" => {
                let part = text("parttype").unwrap_or_default();
                let parameters = text("params").unwrap_or_default().replace('\0', ", ");
                format!("unsupported content: {part} {parameters}").trim_end().to_owned()
            }
            _ => return None,
        };
        Some(ChangeError::Aborted { message })
    }
}

fn split_byte(rest: &mut &[u8]) -> Option<usize> {
    rest.split_off_first().map(|byte| usize::from(*byte))
}

fn split_bytes(rest: &mut &[u8], len: usize) -> Option<Vec<u8>> {
    rest.split_off(..len).map(<[u8]>::to_vec)
}

/// The state of a stream of parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before a header.
    Header,
    /// In a payload, with this number of bytes before the next length.
    Payload(usize),
    /// After the header that ends the bundle.
    End,
}

/// A reader of parts. [`BufRead`] gives the payload of the current part.
pub(super) struct Parts<'a> {
    read: ByteStream<'a>,
    is_compressed: bool,
    position: Position,
    kept_bytes: usize,
}

impl<'a> Parts<'a> {
    /// Creates a reader of the parts after the parameters of the stream.
    pub(super) fn new(read: ByteStream<'a>, is_compressed: bool) -> Parts<'a> {
        Parts { read, is_compressed, position: Position::Header, kept_bytes: 0 }
    }

    /// Skips the rest of the current part, and reads the header of the next one; `None` at the end
    /// of the bundle. A part that reports an error becomes that error.
    pub(super) fn next_part(&mut self) -> Result<Option<Part>, ChangeError> {
        drain(self)?;
        if self.position == Position::End {
            return Ok(None);
        }
        let Some(part) = self.read_header()? else {
            self.position = Position::End;
            self.check_end()?;
            return Ok(None);
        };
        self.position = Position::Payload(0);
        match part.to_error() {
            Some(error) => Err(error),
            None => Ok(Some(part)),
        }
    }

    /// Reads the payload of the current part, of which no large ones are needed.
    pub(super) fn read_payload(&mut self) -> Result<Vec<u8>, ChangeError> {
        let mut payload = Vec::new();
        let limit = PAYLOAD_LIMIT_BYTES.saturating_sub(self.kept_bytes);
        self.by_ref().take(limit as u64 + 1).read_to_end(&mut payload)?;
        if payload.len() > limit {
            return Err(ChangeError::new_damaged("parts before the changes are too large"));
        }
        self.kept_bytes += payload.len();
        Ok(payload)
    }

    /// Reads a header; `None` if it is empty.
    fn read_header(&mut self) -> Result<Option<Part>, ChangeError> {
        let len = i32::from_be_bytes(read_array(&mut self.read)?);
        if len == 0 {
            return Ok(None);
        }
        let len = usize::try_from(len).ok().filter(|len| *len <= HEADER_LIMIT_BYTES);
        let len =
            len.ok_or_else(|| ChangeError::new_damaged("a part has a header of a wrong size"))?;
        let mut header = Vec::new();
        read_bytes(&mut self.read, len, &mut header)?;
        let part = Part::parse(&header);
        part.map(Some).ok_or_else(|| ChangeError::new_damaged("the header of a part is cut off"))
    }

    /// Reads lengths of chunks up to the next byte of payload. Returns false at the end of the
    /// payload.
    fn find_payload(&mut self) -> Result<bool, ChangeError> {
        while self.position == Position::Payload(0) {
            match i32::from_be_bytes(read_array(&mut self.read)?) {
                0 => self.position = Position::Header,
                INTERRUPT => self.read_interrupt()?,
                len @ 1.. => self.position = Position::Payload(len as usize),
                len => {
                    return Err(ChangeError::new_damaged(format!(
                        "a chunk of a part has length {len}"
                    )));
                }
            }
        }
        Ok(matches!(self.position, Position::Payload(_)))
    }

    /// Reads the part between two chunks. Only errors matter.
    fn read_interrupt(&mut self) -> Result<(), ChangeError> {
        let Some(part) = self.read_header()? else {
            return Ok(());
        };
        if let Some(error) = part.to_error() {
            return Err(error);
        }
        super::skip_part(&part)?;
        loop {
            match i32::from_be_bytes(read_array(&mut self.read)?) {
                0 => return Ok(()),
                len @ 1.. => skip_bytes(&mut self.read, len as usize)?,
                _ => return Err(ChangeError::new_damaged("a part between two chunks is damaged")),
            }
        }
    }

    /// Lets the decoder of a compressed stream find the end of the data, where its checksum is.
    fn check_end(&mut self) -> Result<(), ChangeError> {
        if self.is_compressed {
            fill(&mut self.read)?;
        }
        Ok(())
    }
}

fn skip_bytes(read: &mut dyn BufRead, mut left: usize) -> Result<(), ChangeError> {
    while left > 0 {
        let count = fill(read)?.len().min(left);
        if count == 0 {
            return Err(end_of_stream().into());
        }
        read.consume(count);
        left -= count;
    }
    Ok(())
}

impl BufRead for Parts<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.find_payload()? {
            return Ok(&[]);
        }
        let Position::Payload(left) = self.position else {
            return Ok(&[]);
        };
        let arrived = fill(&mut self.read)?;
        if arrived.is_empty() {
            return Err(end_of_stream());
        }
        Ok(arrived.get(..left).unwrap_or(arrived))
    }

    fn consume(&mut self, count: usize) {
        if let Position::Payload(left) = &mut self.position {
            let count = count.min(*left);
            *left -= count;
            self.read.consume(count);
        }
    }
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

/// Reads the parameters of a bundle2: their length, then names and values, percent-encoded, with
/// spaces between. A name that begins with an upper-case letter is mandatory.
pub(super) fn read_stream_parameters(
    read: &mut dyn BufRead,
) -> Result<Vec<PartParameter>, ChangeError> {
    let len = i32::from_be_bytes(read_array(read)?);
    let len = usize::try_from(len).ok().filter(|len| *len <= HEADER_LIMIT_BYTES);
    let len =
        len.ok_or_else(|| ChangeError::new_damaged("the parameters of a bundle are too long"))?;
    let mut text = Vec::new();
    read_bytes(read, len, &mut text)?;
    let parse = |word: &[u8]| {
        let position = word.iter().position(|byte| *byte == b'=');
        let (name, value) = word.split_at_checked(position.unwrap_or(word.len()))?;
        let value = value.strip_prefix(b"=").unwrap_or(value);
        Some((crate::percent::decode(name), crate::percent::decode(value)))
    };
    let words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    Ok(words.filter_map(parse).collect())
}
