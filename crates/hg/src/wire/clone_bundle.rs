//! Bundles that a server recommends for a first clone, in the order in which it prefers them.
//!
//! A line of the manifest is a URL and attributes `NAME=VALUE`, percent-encoded. `BUNDLESPEC` is a
//! compression, `-`, and a type with parameters after `;`. See `hgext/clonebundles.py` of
//! Mercurial.

use crate::local::unsupported_requirements;
use crate::percent;

/// Parses a manifest, and returns the URLs of the bundles that can be read here.
pub(super) fn parse_manifest(text: &[u8]) -> Vec<String> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<String> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let url = std::str::from_utf8(words.next()?).ok()?.to_owned();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return None;
    }
    let is_readable = words.all(|attribute| {
        let attribute = percent::decode(attribute);
        match attribute.strip_prefix(b"BUNDLESPEC=") {
            Some(specification) => can_read(specification),
            None => true,
        }
    });
    is_readable.then_some(url)
}

/// Whether a bundle of this specification can be read here.
fn can_read(specification: &[u8]) -> bool {
    let mut words = specification.split(|byte| *byte == b';');
    let format = words.next().unwrap_or_default();
    let position = format.iter().position(|byte| *byte == b'-').unwrap_or(format.len());
    let (compression, version) = format.split_at(position);
    let is_known = match version {
        b"-v1" => [b"none".as_slice(), b"gzip", b"bzip2"].contains(&compression),
        b"-v2" => [b"none".as_slice(), b"gzip", b"bzip2", b"zstd"].contains(&compression),
        b"-packed1" => compression == b"none",
        _ => false,
    };
    is_known && words.all(can_read_parameter)
}

fn can_read_parameter(parameter: &[u8]) -> bool {
    let position = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
    let (name, value) = parameter.split_at(position);
    let value = percent::decode(value.get(1..).unwrap_or_default());
    match name {
        b"cg.version" => [b"01".as_slice(), b"02", b"03"].contains(&value.as_slice()),
        b"stream" => value == b"v2",
        b"requirements" => unsupported_requirements(value.split(|byte| *byte == b',')).is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_bundles_are_chosen_in_the_order_of_the_server() {
        let manifest = b"https://h/1 BUNDLESPEC=none-packed1%3Brequirements%3Drevlogv1\n\
            https://h/2 BUNDLESPEC=none-v2%3Bstream%3Dv2%3Brequirements%3Ddotencode\n\
            https://h/3 BUNDLESPEC=zstd-v2 REQUIRESNI=true cdn=true\n\
            ftp://h/4 BUNDLESPEC=gzip-v1\n\
            http://h/5 BUNDLESPEC=gzip-v2;cg.version=03;obsolescence=yes\n\
            http://h/6 BUNDLESPEC=gzip-v2;cg.version=04\n\
            http://h/7 BUNDLESPEC=zstd-v1\n\
            http://h/8\n\
            http://h/9 BUNDLESPEC=none-packed1%3Brequirements%3Dgeneraldelta%252Ctreemanifest\n\
            http://h/10 BUNDLESPEC=none-v2;stream=v3-exp\n\n";
        let expected = ["https://h/1", "https://h/2", "https://h/3", "http://h/5", "http://h/8"];
        assert_eq!(parse_manifest(manifest), expected);
        assert!(parse_manifest(b"\xff\n").is_empty());
    }
}
