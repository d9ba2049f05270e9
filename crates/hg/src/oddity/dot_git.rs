//! Names of files that some system takes for `.git`, which git does not check out (its
//! `verify_path`, with `core.protectNTFS` and `core.protectHFS`, as `git fsck` does).

/// Returns whether git refuses a file or a folder of this name.
pub(super) fn is_refused_name(name: &[u8]) -> bool {
    name == b"." || name == b".." || is_dot_git_of_hfs(name) || is_dot_git_of_ntfs(name)
}

/// NTFS has a short name for `.git`, ignores dots and spaces at the end, and begins the name of a
/// stream with a colon. A backslash is a slash there.
fn is_dot_git_of_ntfs(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'\\').any(|part| {
        let is_begin = |begin: &&[u8]| {
            part.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin))
        };
        let begin = [b".git".as_slice(), b"git~1"].into_iter().find(is_begin);
        let rest = begin.and_then(|begin| part.get(begin.len()..));
        rest.is_some_and(|rest| {
            let end = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
            end.is_none_or(|byte| *byte == b':')
        })
    })
}

/// HFS+ ignores some characters without a width. Of a name that is no UTF-8, the beginning counts.
fn is_dot_git_of_hfs(name: &[u8]) -> bool {
    let valid = match str::from_utf8(name) {
        Ok(text) => text,
        Err(error) => {
            let begin = name.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(begin).unwrap_or_default()
        }
    };
    let characters = valid.chars().filter(|character| !is_ignored_by_hfs(*character));
    characters.map(|character| character.to_ascii_lowercase()).eq(".git".chars())
}

fn is_ignored_by_hfs(character: char) -> bool {
    matches!(
        character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_system_takes_for_dot_git_are_refused() {
        for name in [
            ".",
            "..",
            ".git",
            ".GiT",
            "git~1",
            "GIT~1",
            ".git ",
            ".git.",
            ".git. .",
            "git~1 ",
            ".git\\foo",
            "a\\.git",
            ".git:foo",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "\u{feff}.gi\u{206f}T\u{202e}",
        ] {
            assert!(is_refused_name(name.as_bytes()), "{name:?}");
        }
        assert!(is_refused_name(b".git\xff"), "as git does");
        for name in [
            "",
            "...",
            "git",
            ".gitignore",
            ".git~1",
            "git~2",
            "git~10",
            ".git .x",
            "x.git",
            ".g\u{200b}it",
            "\u{200c}",
            "a\\b",
            "git:x",
            ".gi",
            "..\\x",
        ] {
            assert!(!is_refused_name(name.as_bytes()), "{name:?}");
        }
        assert!(!is_refused_name(b".g\xffit"));
    }
}
