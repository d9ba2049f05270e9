//! Conversion of properties between versions of vCard.
//!
//! Between equal versions a line is copied as it is, with its folds. Otherwise the value is written
//! by the rules of the target version: transfer encodings, character sets, escapes, unnamed
//! parameters, pictures. Parsing the new line gives the same values as the old one. The
//! [merge](super::card_merge) decides which lines are written.

use super::{Contact, VcardVersion};
use crate::decoding;
use crate::field_values::strip_scheme;
use crate::property::Property;
use crate::writer::{MAX_LINE_OCTETS, fold_line, normalise_line_ends, quote_param_value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Text properties that are neither lists nor structured, so that separators in them have no
/// meaning.
const PLAIN_TEXT_PROPERTIES: &[&str] = &["FN", "LABEL", "NOTE", "ROLE", "TITLE"];
/// Properties with components, in which a comma is a character in vCard 2.1 and separates the
/// members of a list in later versions.
const STRUCTURED_PROPERTIES: &[&str] = &["ADR", "N", "ORG"];
/// Properties that hold pictures, sounds and keys.
const MEDIA_PROPERTIES: &[&str] = &["KEY", "LOGO", "PHOTO", "SOUND"];
/// Unnamed parameters of vCard 2.1 that are not types.
const NON_TYPE_WORDS: &[&str] =
    &["QUOTED-PRINTABLE", "BASE64", "7BIT", "8BIT", "INLINE", "URL", "CONTENT-ID", "CID"];

/// Parameters that position a value among others of its card.
pub(super) const POSITION_PARAMS: &[&str] = &["PREF", "PID", "INDEX", "X-EVOLUTION-UI-SLOT"];

/// The version and line ends of a card.
#[derive(Debug, Clone, Copy)]
pub(super) struct VcardStyle {
    pub(super) version: VcardVersion,
    pub(super) line_end: &'static str,
}

/// Parameters: each name once, with all its values.
pub(super) type ParamValues = Vec<(String, Vec<String>)>;

/// Writes a property into another card.
pub(super) struct PropertyWriter<'a> {
    pub(super) property: &'a Property<'a>,
    /// The version of the source card.
    pub(super) from_version: VcardVersion,
    /// The group in the target card.
    pub(super) group: Option<&'a str>,
    pub(super) name: &'a str,
    /// Whether the parameters that position the value are kept.
    pub(super) keep_position: bool,
}

impl PropertyWriter<'_> {
    /// Returns the property as one or more lines with line ends.
    pub(super) fn format_line(&self, style: VcardStyle) -> String {
        let copied = if self.from_version == style.version { self.copy_line(style) } else { None };
        copied.unwrap_or_else(|| self.convert_line(style))
    }

    fn line_start(&self) -> String {
        self.group.map_or_else(|| self.name.to_string(), |group| format!("{group}.{}", self.name))
    }

    /// Copies the line except for group, name, line ends and missing blanks of folds. Returns
    /// `None` if the copy would be parsed differently or contain dropped parameters.
    fn copy_line(&self, style: VcardStyle) -> Option<String> {
        let rest = self.property.text_after_name()?.trim_end_matches(['\r', '\n']);
        let lines: Vec<&str> = rest.split('\n').map(|line| line.trim_end_matches('\r')).collect();
        let encoded = |name: &str| {
            let encoding = self.property.param("ENCODING");
            encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(name))
        };
        let to = style.version;
        let broken = self.target_params(to) != convert_params(self.property, self.from_version, to)
            || lines.iter().any(|line| line.contains('\r'))
            || (lines.len() > 1 && style.line_end == "\r")
            || (rest.ends_with('=') && encoded("QUOTED-PRINTABLE"));
        if broken {
            return None;
        }
        let (end, is_base64) = (style.line_end, encoded("BASE64") || encoded("B"));
        // Only vCard 2.1 allows lines of base64 without the blank of a fold, and ends them with an
        // empty line.
        let is_old = to == VcardVersion::V2_1;
        let fold = |line: &str| match is_base64 && !is_old && !line.starts_with([' ', '\t']) {
            true => " ",
            false => "",
        };
        let (first, others) = lines.split_first()?;
        let mut copy = format!("{}{first}", self.line_start());
        for line in others {
            copy.extend([end, fold(line), line]);
        }
        let blank = if is_old && is_base64 { end } else { "" };
        Some(copy + end + blank)
    }

    /// Returns the parameters in the target version.
    fn target_params(&self, to: VcardVersion) -> ParamValues {
        let mut params = convert_params(self.property, self.from_version, to);
        if !self.keep_position {
            strip_position_params(&mut params);
        }
        params
    }

    fn convert_line(&self, style: VcardStyle) -> String {
        let mut params = self.target_params(style.version);
        if let Some(binary) = BinaryValue::from_property(self.property) {
            return binary.format_line(self.line_start(), params, style);
        }
        let text = self.property.text();
        let text = self.convert_value(text.trim(), style.version, &mut params);
        format_text_line(&self.line_start(), &format_params(&params, style.version), &text, style)
    }

    /// Returns the value in the target version.
    fn convert_value<'t>(
        &self,
        text: &'t str,
        to: VcardVersion,
        params: &mut ParamValues,
    ) -> Cow<'t, str> {
        let property = self.property;
        let old = to < VcardVersion::V4_0;
        let no_value = |params: &mut ParamValues| {
            params.retain(|(name, _)| !name.eq_ignore_ascii_case("VALUE"));
        };
        if property.has_name("GEO")
            && let Some(position) = convert_geo(text, to)
        {
            no_value(params);
            return Cow::Owned(position);
        }
        if property.has_name("TEL")
            && old
            && !text.contains(';')
            && strip_scheme(text, "tel:") != text
        {
            no_value(params);
            return Cow::Borrowed(strip_scheme(text, "tel:"));
        }
        let is_uri =
            || text.contains("://") || text.starts_with("cid:") || text.starts_with("data:");
        if is_media_property(property)
            && old
            && is_uri()
            && !params.iter().any(|(name, _)| name.eq_ignore_ascii_case("VALUE"))
        {
            let value = if to == VcardVersion::V2_1 { "URL" } else { "uri" };
            params.push(("VALUE".into(), vec![value.into()]));
        }
        let is_any = |names: &[&str]| names.iter().any(|name| property.has_name(name));
        let plain = is_any(PLAIN_TEXT_PROPERTIES);
        match (self.from_version, to) {
            (VcardVersion::V2_1, VcardVersion::V2_1) => Cow::Borrowed(text),
            (_, VcardVersion::V2_1) => Cow::Owned(unescape_value(text, plain)),
            (VcardVersion::V2_1, _) if plain => Cow::Owned(escape_value(text, ",;")),
            (VcardVersion::V2_1, _) if is_any(STRUCTURED_PROPERTIES) => {
                Cow::Owned(escape_value(text, ","))
            }
            _ => Cow::Owned(escape_value(text, "")),
        }
    }
}

/// Converts a card to another version: every property that `keep` selects, between BEGIN, VERSION
/// and END, each line with a line end. Lines that are not properties, and a nested card, are
/// omitted.
#[must_use]
pub fn convert_card(
    card: &Contact<'_>,
    version: VcardVersion,
    line_end: &'static str,
    keep: &dyn Fn(&Property<'_>) -> bool,
) -> String {
    let style = VcardStyle { version, line_end };
    let mut text = format!("BEGIN:VCARD{line_end}VERSION:{}{line_end}", version.name());
    for property in card.properties() {
        if property.is_property() && !property.has_name("VERSION") && keep(property) {
            let (group, name) = (property.group(), property.name());
            let from = card.version();
            text.push_str(
                &PropertyWriter { property, from_version: from, group, name, keep_position: true }
                    .format_line(style),
            );
        }
    }
    text + "END:VCARD" + line_end
}

/// Formats text that is not a property as the value of an extension property.
pub(super) fn format_unparsed_line(name: &str, text: &str, style: VcardStyle) -> String {
    let text: String = normalise_line_ends(text)
        .chars()
        .flat_map(|c| if matches!(c, '\\' | ',' | ';') { vec!['\\', c] } else { vec![c] })
        .collect();
    let text = if style.version == VcardVersion::V2_1 { text } else { text.replace('\n', "\\n") };
    format_text_line(name, "", &text, style)
}

/// Formats a list property from members that are escaped already.
pub(super) fn format_list_line(
    name: &str,
    members: &[String],
    from: VcardVersion,
    style: VcardStyle,
) -> String {
    let list = members.join(",");
    let list = match style.version {
        VcardVersion::V2_1 if from != VcardVersion::V2_1 => unescape_value(&list, false),
        VcardVersion::V2_1 => list,
        _ => escape_value(&list, ""),
    };
    format_text_line(name, "", &list, style)
}

pub(super) fn format_text_line(start: &str, params: &str, text: &str, style: VcardStyle) -> String {
    let VcardStyle { version, line_end } = style;
    if version != VcardVersion::V2_1 {
        return fold_line(&format!("{start}{params}:{text}"), line_end);
    }
    if text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return format!("{start}{params}:{text}{line_end}");
    }
    // CHARSET comes first, because a reader that does not support quotes takes a colon in another
    // parameter for the end of the parameters.
    let charset = if text.is_ascii() { "" } else { ";CHARSET=UTF-8" };
    let text = encode_quoted_printable(text, line_end);
    format!("{start}{charset};ENCODING=QUOTED-PRINTABLE{params}:{text}{line_end}")
}

/// Encodes colons as well, so that no line looks like the END of a card.
fn encode_quoted_printable(text: &str, line_end: &str) -> String {
    let mut quoted = String::new();
    // The approximate width of the text before the value.
    let mut width = 40;
    for byte in normalise_line_ends(text).replace('\n', "\r\n").bytes() {
        if width + 3 > MAX_LINE_OCTETS && line_end != "\r" {
            quoted.push('=');
            quoted.push_str(line_end);
            width = 0;
        }
        match byte {
            b'!'..=b'~' if !matches!(byte, b'=' | b':') => {
                quoted.push(char::from(byte));
                width += 1;
            }
            // A space is safe if something follows it, even a soft break.
            b' ' => {
                quoted.push(' ');
                width += 1;
            }
            byte => {
                let _infallible = write!(quoted, "={byte:02X}");
                width += 3;
            }
        }
    }
    quoted
}

/// The bytes of a picture, sound or key, with their media type.
pub(super) struct BinaryValue {
    pub(super) bytes: Vec<u8>,
    /// A full media type such as `image/jpeg`, if the card has one.
    media_type: Option<String>,
    /// The property name (`KEY`, `SOUND`, ...), which completes a type without a slash.
    name: String,
}

impl BinaryValue {
    /// Returns `None` for text, a URI, or damaged base64.
    pub(super) fn from_property(property: &Property<'_>) -> Option<BinaryValue> {
        let name = property.name().to_ascii_uppercase();
        let value = property.value().trim_ascii();
        if value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"data:")) {
            let comma = value.iter().position(|byte| *byte == b',')?;
            let head = std::str::from_utf8(value.get(5..comma)?).ok()?;
            let media = head.get(..head.len().checked_sub(7)?)?;
            head.get(media.len()..).filter(|end| end.eq_ignore_ascii_case(";base64"))?;
            let bytes = decoding::decode_base64(value.get(comma + 1..)?)?;
            let media = media.split(';').next().filter(|media| media.contains('/'));
            return Some(BinaryValue { bytes, media_type: media.map(str::to_string), name });
        }
        let encoding = property.param("ENCODING")?;
        if !(encoding.eq_ignore_ascii_case("b") || encoding.eq_ignore_ascii_case("base64")) {
            return None;
        }
        let bytes = decoding::decode_base64(value)?;
        let text = property.param("CHARSET").is_some() || std::str::from_utf8(&bytes).is_ok();
        if text && !is_media_property(property) {
            return None;
        }
        let media = property.param("MEDIATYPE").map(Cow::into_owned);
        Some(BinaryValue { bytes, media_type: media, name })
    }

    fn format_line(&self, mut head: String, mut params: ParamValues, style: VcardStyle) -> String {
        let is_name = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
        params.retain(|(name, _)| !is_name(name, "MEDIATYPE") && !is_name(name, "VALUE"));
        let VcardStyle { version, line_end } = style;
        let mut start = String::new();
        if version == VcardVersion::V4_0 {
            start = format!("data:{};base64,", self.take_media_type(&mut params));
        } else if let Some(media) = &self.media_type {
            let kind = short_media_type(media);
            match params.iter_mut().find(|(name, _)| is_name(name, "TYPE")) {
                Some((_, types)) if types.iter().any(|one| is_name(one, &kind)) => {}
                Some((_, types)) => types.push(kind),
                None => params.push(("TYPE".into(), vec![kind])),
            }
        }
        head.push_str(match version {
            VcardVersion::V2_1 => ";ENCODING=BASE64",
            VcardVersion::V3_0 => ";ENCODING=b",
            VcardVersion::V4_0 => "",
        });
        head.push_str(&format_params(&params, version));
        let line = fold_line(&format!("{head}:{start}{}", encode_base64(&self.bytes)), line_end);
        // In vCard 2.1 an empty line ends such a value.
        if version == VcardVersion::V2_1 { line + line_end } else { line }
    }

    /// Returns the media type as vCard 4.0 writes it, and removes the TYPE parameter it comes from.
    fn take_media_type(&self, params: &mut ParamValues) -> String {
        if let Some(media) = &self.media_type {
            return media.clone();
        }
        let about = ["HOME", "WORK", "PREF"];
        let is_kind = |kind: &String| !about.iter().any(|known| kind.eq_ignore_ascii_case(known));
        let types = params.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("TYPE"));
        let kind = types.and_then(|(_, types)| {
            types.iter().position(is_kind).map(|at| types.remove(at).to_ascii_lowercase())
        });
        params.retain(|(_, values)| !values.is_empty());
        let is_token = |kind: &String| {
            !kind.is_empty()
                && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
        };
        match (self.name.trim_start_matches("X-LARDER-"), kind.filter(is_token)) {
            ("KEY", Some(kind)) if kind == "pgp" => "application/pgp-keys".into(),
            ("KEY", Some(kind)) if kind == "x509" => "application/x-x509-user-cert".into(),
            ("PHOTO" | "LOGO", Some(kind)) => format!("image/{kind}"),
            ("SOUND", Some(kind)) => format!("audio/{kind}"),
            (_, Some(kind)) => format!("application/{kind}"),
            (_, None) => "application/octet-stream".into(),
        }
    }
}

/// Returns the subtype, which is the TYPE of vCard 3.0.
fn short_media_type(media: &str) -> String {
    let lower = media.to_ascii_lowercase();
    match lower.split_once('/') {
        Some((_, kind)) if kind.contains("pgp") => "PGP".into(),
        Some((_, kind)) if kind.contains("x509") || kind.contains("pkix") => "X509".into(),
        Some((_, kind)) => kind.to_ascii_uppercase(),
        None => lower.to_ascii_uppercase(),
    }
}

fn is_media_property(property: &Property<'_>) -> bool {
    let name = property.name();
    let name = name.get(9..).filter(|_| name.starts_with("X-LARDER-")).unwrap_or(name);
    MEDIA_PROPERTIES.iter().any(|media| media.eq_ignore_ascii_case(name))
}

fn encode_base64(bytes: &[u8]) -> String {
    const BASE64_ALPHABET: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = BASE64_ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// Converts parameters to another version; omits the parameters that describe the encoding.
pub(super) fn convert_params(
    property: &Property<'_>,
    from: VcardVersion,
    to: VcardVersion,
) -> ParamValues {
    let mut params: ParamValues = Vec::new();
    for param in property.params() {
        let is = |name: &str| param.name.eq_ignore_ascii_case(name);
        if is("ENCODING") || is("CHARSET") {
            continue;
        }
        let mut values: Vec<String> = param.values.iter().map(|value| value.to_string()).collect();
        if is("TYPE") {
            let visit = values.iter().flat_map(|value| value.split(','));
            values = visit.map(|value| value.trim().to_string()).collect();
            values.retain(|value| !value.is_empty());
        } else if is("VALUE") {
            values = values.iter().filter_map(|value| convert_value_type(value, to)).collect();
        }
        if !values.is_empty() {
            add_values(&mut params, &param.name, values);
        }
    }
    if from != to {
        convert_preference(&mut params, to);
    }
    params
}

/// Removes the parameters that position a value among others of its card.
pub(super) fn strip_position_params(params: &mut ParamValues) {
    for (_, types) in params.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("TYPE")) {
        types.retain(|one| !one.eq_ignore_ascii_case("pref"));
    }
    let is_place =
        |name: &String| POSITION_PARAMS.iter().any(|place| name.eq_ignore_ascii_case(place));
    params.retain(|(name, values)| !values.is_empty() && !is_place(name));
}

/// Adds values to a parameter, each once.
pub(super) fn add_values(params: &mut ParamValues, name: &str, values: Vec<String>) {
    match params.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        None => params.push((name.to_string(), values)),
        Some((_, there)) => {
            for value in values {
                if !there.iter().any(|known| known.eq_ignore_ascii_case(&value)) {
                    there.push(value);
                }
            }
        }
    }
}

fn convert_value_type(value: &str, to: VcardVersion) -> Option<String> {
    let is = |names: &[&str]| names.iter().any(|name| value.eq_ignore_ascii_case(name));
    if is(&["INLINE", "BINARY"]) {
        None
    } else if is(&["URL", "URI", "CID", "CONTENT-ID"]) {
        Some(if to == VcardVersion::V2_1 { "URL".into() } else { "uri".into() })
    } else {
        Some(value.to_string())
    }
}

/// Preference is a type before version 4.0 and a parameter since. In 4.0 the type stays as well,
/// which is harmless.
fn convert_preference(params: &mut ParamValues, to: VcardVersion) {
    let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    let number = params.iter().position(|(name, _)| is(name, "PREF"));
    let has_type = params
        .iter()
        .any(|(name, values)| is(name, "TYPE") && values.iter().any(|value| is(value, "pref")));
    match (to, number) {
        (VcardVersion::V4_0, None) if has_type => params.push(("PREF".into(), vec!["1".into()])),
        (VcardVersion::V2_1 | VcardVersion::V3_0, Some(at))
            if params.get(at).is_some_and(|(_, values)| *values == ["1"]) =>
        {
            params.remove(at);
            add_values(params, "TYPE", vec!["pref".into()]);
        }
        _ => {}
    }
}

/// Formats parameters, each after a semicolon.
pub(super) fn format_params(params: &ParamValues, version: VcardVersion) -> String {
    let mut text = String::new();
    let is_token = |value: &str| {
        !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    for (name, values) in params {
        let bare = |value: &String| {
            is_token(value) && !NON_TYPE_WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
        };
        if version == VcardVersion::V2_1
            && name.eq_ignore_ascii_case("TYPE")
            && values.iter().all(bare)
        {
            for value in values {
                let _infallible = write!(text, ";{}", value.to_ascii_uppercase());
            }
            continue;
        }
        let values: Vec<_> = values.iter().map(|value| quote_param_value(value)).collect();
        let _infallible = write!(text, ";{name}={}", values.join(","));
    }
    text
}

/// Converts a geographic position; `None` if the text is not one.
fn convert_geo(text: &str, to: VcardVersion) -> Option<String> {
    let text = strip_scheme(text, "geo:");
    let (latitude, longitude) = text.split_once([',', ';'])?;
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    (is_number(latitude) && is_number(longitude)).then(|| match to {
        VcardVersion::V2_1 => format!("{latitude},{longitude}"),
        VcardVersion::V3_0 => format!("{latitude};{longitude}"),
        VcardVersion::V4_0 => format!("geo:{latitude},{longitude}"),
    })
}

/// Escapes line feeds, and these separators where they are unescaped. A backslash that escapes
/// nothing becomes an escaped backslash.
fn escape_value(text: &str, separators: &str) -> String {
    let text = normalise_line_ends(text);
    let mut escaped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                escaped.push('\\');
                let next = chars.next_if(|next| matches!(next, 'n' | 'N' | ',' | ';' | ':' | '\\'));
                escaped.push(next.unwrap_or('\\'));
            }
            '\n' => escaped.push_str("\\n"),
            c if separators.contains(c) => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Unescapes text for vCard 2.1: real line feeds, and bare separators if they have no meaning.
fn unescape_value(text: &str, separators: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n' | 'N')) => plain.push('\n'),
            ('\\', Some(c @ (',' | ';'))) if separators => plain.push(c),
            ('\\', Some(c)) => plain.extend(['\\', c]),
            (c, _) => plain.push(c),
        }
    }
    plain
}
