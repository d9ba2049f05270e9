//! Paths in messages.
//!
//! A path is bytes of somebody else: what is not UTF-8 is replaced, and control characters, which
//! could be commands to a terminal, are escaped.

/// Returns a path for a message.
pub(crate) fn path_text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for character in String::from_utf8_lossy(path).chars() {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_readable_and_harmless() {
        assert_eq!(path_text("dir/\u{fc} b.txt".as_bytes()), "dir/\u{fc} b.txt");
        assert_eq!(path_text(b"a\xe9\x1b[2J\n"), "a\u{fffd}\\u{1b}[2J\\n");
    }
}
