//! Sizes such as `32M` in options and in the configuration.

const SYNTAX_MESSAGE: &str = "write a size as 1 MB, 384 KiB or 32M";
const TOO_LARGE_MESSAGE: &str = "too large";

/// Parses a number of bytes: `1000000`, `32M`, `384 KiB` (K and KiB are 1024 bytes), `1.5 MB` (kB
/// is 1000 bytes).
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(SYNTAX_MESSAGE.into()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || part.is_empty() || part.len() > 6 || part.contains('.') {
        return Err(SYNTAX_MESSAGE.into());
    }
    let tenths = 10u64.pow(part.len() as u32);
    let part = part.parse::<u64>().map_err(|_| SYNTAX_MESSAGE)? * unit / tenths;
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(unit));
    whole.and_then(|whole| whole.checked_add(part)).ok_or_else(|| TOO_LARGE_MESSAGE.into())
}

/// Parses a number of bytes that must not be zero.
pub(crate) fn parse_nonzero_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("must be at least 1 byte".into()),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1 MB", Some(1_000_000)),
            ("64kB", Some(64_000)),
            ("384 KiB", Some(384 << 10)),
            ("32M", Some(32 << 20)),
            ("1g", Some(1 << 30)),
            ("1.5 MB", Some(1_500_000)),
            ("0.5K", Some(512)),
            ("1.", None),
            (".5", None),
            ("1.2.3", None),
            (" 12 ", Some(12)),
            ("", None),
            ("MB", None),
            ("-1 MB", None),
            ("1 TB", None),
            ("99999999999999999999", None),
            ("99999999999 GB", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), bytes, "{text:?}");
        }
    }
}
