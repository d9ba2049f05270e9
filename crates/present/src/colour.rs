//! The colour of a calendar: one of the six colours that every terminal has.
//!
//! A calendar that declares no colour gets a colour computed from its name, which is always the
//! same, and never red. Separate from `agenda` because other lists show the colour, too.

use larder_format::component::Component;

/// Words in names of CSS colours, and their hues in degrees. The last word of a name counts.
const COLOUR_NAME_HUES: &[(&str, f64)] = &[
    ("red", 0.0),
    ("crimson", 0.0),
    ("tomato", 5.0),
    ("salmon", 5.0),
    ("coral", 15.0),
    ("brown", 20.0),
    ("chocolate", 25.0),
    ("orange", 40.0),
    ("gold", 50.0),
    ("yellow", 60.0),
    ("khaki", 55.0),
    ("olive", 60.0),
    ("lime", 120.0),
    ("green", 120.0),
    ("teal", 180.0),
    ("aqua", 180.0),
    ("cyan", 180.0),
    ("turquoise", 175.0),
    ("blue", 240.0),
    ("navy", 240.0),
    ("indigo", 275.0),
    ("violet", 300.0),
    ("purple", 300.0),
    ("magenta", 300.0),
    ("fuchsia", 300.0),
    ("orchid", 300.0),
    ("plum", 300.0),
    ("pink", 330.0),
    ("maroon", 0.0),
];

/// The terminal colour of each sixth of the colour circle, from red on.
const TERMINAL_COLOURS: [u8; 6] = [1, 3, 2, 6, 4, 5];

/// Returns the terminal colour of a calendar, 1 (red) to 6 (cyan): the first that its properties
/// declare (see `larder_query::read_calendar_properties`), else one that depends on its name only.
#[must_use]
pub fn calendar_colour(name: &str, properties: &[Vec<u8>]) -> u8 {
    let declared = properties.iter().find_map(|lines| declared_colour(lines));
    declared.unwrap_or_else(|| colour_from_name(name))
}

/// Returns the colour that the properties of a calendar declare, as they have it: `#FF2968FF`, or a
/// name.
#[must_use]
pub fn declared_colour_text(properties: &[Vec<u8>]) -> Option<String> {
    let texts = properties.iter().flat_map(|lines| colour_texts(lines));
    texts.into_iter().find(|text| !text.is_empty())
}

fn declared_colour(head: &[u8]) -> Option<u8> {
    let texts = colour_texts(head);
    texts.iter().find_map(|text| parse_hue(text).map(nearest_terminal_colour))
}

fn colour_texts(head: &[u8]) -> Vec<String> {
    let bytes = [b"BEGIN:VCALENDAR\n", head, b"\nEND:VCALENDAR\n"].concat();
    let calendar = Component::parse(&bytes);
    let names = ["X-APPLE-CALENDAR-COLOR", "COLOR", "X-OUTLOOK-COLOR", "X-FUNAMBOL-COLOR"];
    let found = names.into_iter().flat_map(|name| calendar.properties_named(name));
    found.map(|property| property.text().trim().to_string()).collect()
}

/// Returns the hue of `#FF2968FF` or of a colour name; `None` for a grey.
fn parse_hue(text: &str) -> Option<f64> {
    let Some(digits) = text.strip_prefix('#') else {
        let name = text.to_ascii_lowercase();
        let found =
            COLOUR_NAME_HUES.iter().filter_map(|(word, hue)| Some((name.rfind(word)?, hue)));
        return found.max_by_key(|(at, _)| *at).map(|(_, hue)| *hue);
    };
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok().map(f64::from);
    let (red, green, blue) = (part(0)?, part(2)?, part(4)?);
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let range = most - least;
    if range < 24.0 {
        return None;
    }
    let sixth = if most == red {
        ((green - blue) / range).rem_euclid(6.0)
    } else if most == green {
        (blue - red) / range + 2.0
    } else {
        (red - green) / range + 4.0
    };
    Some(sixth * 60.0)
}

fn nearest_terminal_colour(hue: f64) -> u8 {
    let sixth = (hue / 60.0).round() as usize % TERMINAL_COLOURS.len();
    TERMINAL_COLOURS.get(sixth).copied().unwrap_or(4)
}

/// Hashes the name with FNV-1a, which gives the same colour on every machine. Red is left out: it
/// reads as an alarm where nobody chose it.
fn colour_from_name(name: &str) -> u8 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % 5) as u8 + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_colour_becomes_the_nearest_terminal_colour() {
        let check = |head: &str, expect: Option<u8>| {
            assert_eq!(declared_colour(head.as_bytes()), expect, "{head}");
        };
        check("X-APPLE-CALENDAR-COLOR:#FF2968FF", Some(1));
        check("COLOR:dodgerblue", Some(4));
        check("COLOR:blueviolet", Some(5));
        check("COLOR:turquoise", Some(6));
        check("X-APPLE-CALENDAR-COLOR:#63DA38", Some(2));
        check("X-APPLE-CALENDAR-COLOR:#FFCC00", Some(3));
        check("COLOR:grey", None);
        check("COLOR:#7f7f7f", None);
        check("COLOR:#é", None);
        check("", None);
        for name in ["Work", "Home", "Google", "a", "b", "c", "d", ""] {
            assert!((2..=6).contains(&colour_from_name(name)), "{name}");
        }
    }
}
