//! Sizes as people write them, in the configuration and in options.

use std::num::IntErrorKind;

const WRITTEN: &str = "a size is written like 1 MB, 384 KiB or 32M";
const TOO_LARGE: &str = "nothing is as large as that";

/// Reads a number of bytes: `1000000`, `32M`, `384 KiB` (1024 bytes a KiB, as a K alone), `1 MB` (1000 a kB).
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.trim().get(digits.len()..).unwrap_or_default().trim_start();
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        _ => None,
    };
    let Some(unit) = unit.filter(|_| !digits.is_empty()) else { return Err(WRITTEN.into()) };
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).ok_or_else(|| TOO_LARGE.into()),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(TOO_LARGE.into()),
        Err(_) => Err(WRITTEN.into()),
    }
}

/// The same where none is none.
pub(crate) fn parse_some(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err("a size is from 1 byte up".into()),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1 MB", Some(1_000_000)),
            ("64kB", Some(64_000)),
            ("384 KiB", Some(384 << 10)),
            ("32M", Some(32 << 20)),
            ("1g", Some(1 << 30)),
            (" 12 ", Some(12)),
            ("", None),
            ("MB", None),
            ("-1 MB", None),
            ("1 TB", None),
            ("99999999999999999999", None),
            ("99999999999 GB", None),
        ] {
            assert_eq!(parse(text).ok(), bytes, "{text:?}");
        }
    }
}
