//! When the files of a store are taken in place of changes.

use super::capabilities::Capabilities;
use crate::local::unsupported_requirements;
use crate::percent;

/// When a first clone takes the files of a server's store, which costs the server least, but has
/// 1.5 to 2 times the bytes of the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamUse {
    /// Never.
    Never,
    /// If the server says that it prefers this (`server.preferuncompressed`).
    #[default]
    Preferred,
    /// If the server allows this.
    Always,
}

impl StreamUse {
    /// Reads a value of the setting `larder.hgStream`.
    pub fn parse(value: &str) -> Option<StreamUse> {
        match value {
            "never" => Some(StreamUse::Never),
            "preferred" => Some(StreamUse::Preferred),
            "always" => Some(StreamUse::Always),
            _ => None,
        }
    }

    /// Whether the files of a store with these capabilities are taken: all its requirements must be
    /// supported.
    pub(super) fn is_wanted(self, capabilities: &Capabilities) -> bool {
        let is_wanted = match self {
            StreamUse::Never => false,
            StreamUse::Preferred => capabilities.has("stream-preferred"),
            StreamUse::Always => true,
        };
        let is_readable = match capabilities.value("streamreqs") {
            Some(names) => {
                let names = percent::decode(names);
                unsupported_requirements(names.split(|byte| *byte == b',')).is_none()
            }
            // The oldest format needs nothing.
            None => capabilities.has("stream"),
        };
        is_wanted && is_readable && capabilities.has_bundle2_value("stream", "v2")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_taken_where_they_are_preferred_and_can_be_read() {
        let bundle2 = "bundle2=HG20%0Astream%3Dv2%2Cv3-exp";
        let check = |text: &str, preferred: bool, always: bool| {
            let capabilities = Capabilities::parse(text.as_bytes());
            assert!(!StreamUse::Never.is_wanted(&capabilities));
            assert_eq!(StreamUse::Preferred.is_wanted(&capabilities), preferred, "{text}");
            assert_eq!(StreamUse::Always.is_wanted(&capabilities), always, "{text}");
        };
        let format = "streamreqs=generaldelta,revlogv1";
        check(&format!("{bundle2} {format}"), false, true);
        check(&format!("{bundle2} {format} stream-preferred"), true, true);
        check(&format!("{bundle2} stream stream-preferred"), true, true);
        check(&format!("{bundle2} streamreqs=treemanifest stream-preferred"), false, false);
        check(&format!("{bundle2} stream-preferred"), false, false);
        check(&format!("bundle2=HG20%0Astream%3Dv1 {format}"), false, false);
        check(&format!("{format} stream-preferred"), false, false);
        assert_eq!(StreamUse::parse("always"), Some(StreamUse::Always));
        assert_eq!(StreamUse::parse("yes"), None);
    }
}
