//! The capabilities of a server, which it sends when a connection begins.

use crate::percent;

/// The words of a server's capabilities, each of which may have a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Capabilities {
    words: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Capabilities {
    /// Parses words with spaces between, each a name, or a name, `=` and a value.
    pub(super) fn parse(text: &[u8]) -> Capabilities {
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let split = |word: &[u8]| {
            let position = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
            let (name, value) = word.split_at(position);
            (name.to_vec(), value.get(1..).unwrap_or_default().to_vec())
        };
        Capabilities { words: words.map(split).collect() }
    }

    /// Whether the server has a capability.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns the value of a capability, which is empty for one without a value.
    pub(super) fn value(&self, name: &str) -> Option<&[u8]> {
        let word = self.words.iter().find(|(found, _)| found == name.as_bytes());
        word.map(|(_, value)| value.as_slice())
    }

    /// Whether the value of a capability, words with commas between, has this word.
    pub(super) fn has_word(&self, name: &str, word: &str) -> bool {
        let value = self.value(name).unwrap_or_default();
        value.split(|byte| *byte == b',').any(|found| found == word.as_bytes())
    }

    /// Whether the server sends bundle2.
    pub(super) fn has_bundle2(&self) -> bool {
        self.bundle2_lines().iter().any(|line| line == b"HG20")
    }

    /// Whether a capability of bundle2 has this among its values.
    pub(super) fn has_bundle2_value(&self, name: &str, value: &str) -> bool {
        self.bundle2_lines().iter().any(|line| {
            let position = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
            let (found, values) = line.split_at(position);
            let mut values = values.get(1..).unwrap_or_default().split(|byte| *byte == b',');
            found == name.as_bytes() && values.any(|found| found == value.as_bytes())
        })
    }

    fn bundle2_lines(&self) -> Vec<Vec<u8>> {
        let text = percent::decode(self.value("bundle2").unwrap_or_default());
        text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// Returns the number in the value of a capability, up to a comma.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        let value = self.value(name)?.split(|byte| *byte == b',').next()?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_values_are_found() {
        let text = b"lookup httpheader=1024 httpmediatype=0.1rx,0.1tx,0.2tx\tgetbundle \
            bundle2=HG20%0Achangegroup%3D01%2C02\n";
        let capabilities = Capabilities::parse(text);
        assert!(capabilities.has("getbundle") && !capabilities.has("get"));
        assert_eq!(capabilities.number("httpheader"), Some(1024));
        assert_eq!(capabilities.number("lookup"), None);
        assert!(capabilities.has_word("httpmediatype", "0.2tx"));
        assert!(!capabilities.has_word("httpmediatype", "0.2"));
        assert!(capabilities.has_bundle2());
        assert!(!Capabilities::parse(b"bundle2=HG2X").has_bundle2());
    }
}
