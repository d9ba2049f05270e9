//! Builds content lines: folding, escaping, transfer encodings.
//!
//! Implements the line syntax of the three vCard versions and of iCalendar, independent of the
//! meaning of the properties.

/// The maximum length of a line in octets, without its end (RFC 6350 section 3.2; 76 in vCard 2.1).
const MAX_LINE_BYTES: usize = 75;

/// Builds the lines of an item. Ending a line folds it and appends it to the output.
pub(super) struct LineWriter<'b> {
    newline: &'static str,
    line: &'b mut Vec<u8>,
    output: &'b mut Vec<u8>,
}

impl<'b> LineWriter<'b> {
    /// Returns a writer that ends lines with `newline` and appends them to the output; `line` is
    /// scratch space.
    pub(super) fn new(
        newline: &'static str,
        line: &'b mut Vec<u8>,
        output: &'b mut Vec<u8>,
    ) -> Self {
        line.clear();
        LineWriter { newline, line, output }
    }

    /// Adds text to the line unchanged.
    pub(super) fn put(&mut self, part: &str) -> &mut Self {
        self.line.extend_from_slice(part.as_bytes());
        self
    }

    /// Adds text, with separators of values escaped (RFC 6350 section 3.4).
    pub(super) fn put_text(&mut self, text: &str) -> &mut Self {
        for &byte in text.as_bytes() {
            match byte {
                b'\n' => self.line.extend_from_slice(b"\\n"),
                b',' | b';' | b'\\' => self.line.extend_from_slice(&[b'\\', byte]),
                _ => self.line.push(byte),
            }
        }
        self
    }

    /// Adds escaped texts, separated by `separator`.
    pub(super) fn put_text_list(&mut self, separator: &str, texts: &[&str]) -> &mut Self {
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                self.put(separator);
            }
            self.put_text(text);
        }
        self
    }

    /// Adds bytes in base64 with padding (RFC 4648 section 4).
    pub(super) fn put_base64(&mut self, bytes: &[u8]) -> &mut Self {
        const BASE64_ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.line.reserve(bytes.len().div_ceil(3) * 4);
        for three in bytes.chunks(3) {
            let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
            let word = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letter = |shift: u32| BASE64_ALPHABET[(word >> shift & 63) as usize];
            let mut four = [letter(18), letter(12), letter(6), letter(0)];
            four[three.len() + 1..].fill(b'=');
            self.line.extend_from_slice(&four);
        }
        self
    }

    /// Ends the line. A long line is folded, but not inside a character.
    pub(super) fn end_line(&mut self) {
        let (mut rest, mut room) = (self.line.as_slice(), MAX_LINE_BYTES);
        while rest.len() > room {
            let mut cut = room;
            while rest[cut] & 0xC0 == 0x80 {
                cut -= 1;
            }
            self.output.extend_from_slice(&rest[..cut]);
            self.output.extend_from_slice(self.newline.as_bytes());
            self.output.push(b' ');
            rest = &rest[cut..];
            room = MAX_LINE_BYTES - 1;
        }
        self.output.extend_from_slice(rest);
        self.output.extend_from_slice(self.newline.as_bytes());
        self.line.clear();
    }

    /// Writes a line of vCard 2.1 with a structured value, as plain text if possible, else in
    /// quoted-printable.
    ///
    /// Folding in version 2.1 does not preserve every text, so a long line is written as
    /// quoted-printable, too.
    pub(super) fn put_vcard_2_1_line(&mut self, head: &str, parts: &[&str]) {
        let mut value = String::new();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                value.push(';');
            }
            // Version 2.1 escapes only the separator of components, and only if the value has
            // components.
            if parts.len() > 1 && part.contains(';') {
                value.push_str(&part.replace(';', "\\;"));
            } else {
                value.push_str(part);
            }
        }
        let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if plain && head.len() + 1 + value.len() <= MAX_LINE_BYTES {
            self.put(head).put(":").put(&value).end_line();
        } else {
            let charset = if value.is_ascii() { "" } else { ";CHARSET=UTF-8" };
            self.put(head).put(charset).put(";ENCODING=QUOTED-PRINTABLE:");
            self.end_quoted_printable(&value);
        }
    }

    /// Ends the line with a value in quoted-printable (RFC 2045 section 6.7), with soft line
    /// breaks.
    fn end_quoted_printable(&mut self, value: &str) {
        const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let mut column = self.line.len();
        for character in value.chars() {
            let mut utf8 = [0; 4];
            let bytes = character.encode_utf8(&mut utf8).as_bytes();
            let literal = matches!(character, ' '..='~') && character != '=';
            let width = match character {
                '\n' => 6,
                _ if literal => 1,
                _ => bytes.len() * 3,
            };
            if column + width >= MAX_LINE_BYTES {
                let newline = self.newline;
                self.put("=").put(newline);
                column = 0;
            }
            column += width;
            match character {
                '\n' => self.line.extend_from_slice(b"=0D=0A"),
                _ if literal => self.line.push(bytes[0]),
                _ => {
                    for &byte in bytes {
                        let [high, low] =
                            [byte >> 4, byte & 15].map(|at| HEX_DIGITS[usize::from(at)]);
                        self.line.extend_from_slice(&[b'=', high, low]);
                    }
                }
            }
        }
        // The line has soft breaks; folding would add blanks to the value.
        self.output.append(self.line);
        self.output.extend_from_slice(self.newline.as_bytes());
    }
}
