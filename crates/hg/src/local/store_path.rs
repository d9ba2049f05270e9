//! The names of the files of a store: paths of the repository, encoded so that any file system can
//! hold them (mercurial/store.py; the wiki's page `fncacheRepoFormat`).

use sha1::{Digest as _, Sha1};

/// Longer names are replaced by a digest.
const MAX_NAME_BYTES: usize = 120;
/// How much of each folder's name stays in such a name, and how long all of them may be.
const FOLDER_PREFIX_BYTES: usize = 8;
const MAX_FOLDERS_BYTES: usize = 8 * (FOLDER_PREFIX_BYTES + 1) - 4;

/// How a repository encodes the names in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathEncoding {
    /// Only folders with the names of revlogs: repositories without the requirement `store`.
    Folders,
    /// Capitals and reserved characters: `store` without `fncache`.
    Characters,
    /// Reserved and long names as well: `fncache`.
    Names {
        /// Whether leading periods and spaces are encoded: `dotencode`.
        has_dots: bool,
    },
}

impl PathEncoding {
    /// Returns the encoded name of a file of the store, which begins with `data/` or `meta/`.
    pub(crate) fn encode(self, path: &[u8]) -> Vec<u8> {
        let path = encode_folders(path);
        match self {
            PathEncoding::Folders => path,
            PathEncoding::Characters => encode_characters(&path, true),
            PathEncoding::Names { has_dots } => encode_names(&path, has_dots),
        }
    }
}

/// The names of folders that end like a revlog get a suffix.
fn encode_folders(path: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len() + 8);
    let mut components = path.split(|byte| *byte == b'/').peekable();
    while let Some(component) = components.next() {
        encoded.extend_from_slice(component);
        if components.peek().is_some() {
            if [b".hg".as_slice(), b".i", b".d"].iter().any(|suffix| component.ends_with(suffix)) {
                encoded.extend_from_slice(b".hg");
            }
            encoded.push(b'/');
        }
    }
    encoded
}

/// Removes what [`encode_folders`] adds.
pub(crate) fn decode_folders(path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut components = path.split(|byte| *byte == b'/').peekable();
    while let Some(component) = components.next() {
        let is_folder = components.peek().is_some();
        let name = component.strip_suffix(b".hg").filter(|name| {
            is_folder && [b".hg".as_slice(), b".i", b".d"].iter().any(|end| name.ends_with(end))
        });
        decoded.extend_from_slice(name.unwrap_or(component));
        if is_folder {
            decoded.push(b'/');
        }
    }
    decoded
}

/// Encodes reserved characters, and capitals: reversibly with an underscore, or in lower case.
fn encode_characters(path: &[u8], is_reversible: bool) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len() + 8);
    for byte in path {
        match byte {
            b'A'..=b'Z' | b'_' if is_reversible => {
                encoded.extend([b'_', byte.to_ascii_lowercase()]);
            }
            b'A'..=b'Z' => encoded.push(byte.to_ascii_lowercase()),
            0..32 | 126.. | b'\\' | b':' | b'*' | b'?' | b'"' | b'<' | b'>' | b'|' => {
                push_escape(&mut encoded, *byte);
            }
            _ => encoded.push(*byte),
        }
    }
    encoded
}

fn push_escape(encoded: &mut Vec<u8>, byte: u8) {
    encoded.extend(format!("~{byte:02x}").into_bytes());
}

fn encode_names(path: &[u8], has_dots: bool) -> Vec<u8> {
    let encoded = join(&encode_reserved(&encode_characters(path, true), has_dots));
    if encoded.len() > MAX_NAME_BYTES { encode_digest(path, has_dots) } else { encoded }
}

fn join(components: &[Vec<u8>]) -> Vec<u8> {
    components.join(&b'/')
}

/// Encodes the components that Windows reserves or cannot keep.
fn encode_reserved(path: &[u8], has_dots: bool) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .map(|component| encode_component(component, has_dots))
        .collect()
}

fn encode_component(component: &[u8], has_dots: bool) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(component.len() + 4);
    match component {
        [first @ (b'.' | b' '), rest @ ..] if has_dots => {
            push_escape(&mut encoded, *first);
            encoded.extend_from_slice(rest);
        }
        [first, second, third, rest @ ..] if is_reserved(component) => {
            encoded.extend([*first, *second]);
            push_escape(&mut encoded, *third);
            encoded.extend_from_slice(rest);
        }
        _ => encoded.extend_from_slice(component),
    }
    if let Some(last @ (b'.' | b' ')) = encoded.last().copied() {
        encoded.pop();
        push_escape(&mut encoded, last);
    }
    encoded
}

/// Returns whether Windows takes the name for a device, whatever follows its first period.
fn is_reserved(component: &[u8]) -> bool {
    matches!(
        component.split(|byte| *byte == b'.').next().unwrap_or_default(),
        b"aux"
            | b"con"
            | b"prn"
            | b"nul"
            | [b'c', b'o', b'm', b'1'..=b'9']
            | [b'l', b'p', b't', b'1'..=b'9']
    )
}

/// Replaces a long name by the beginnings of its components and a digest.
fn encode_digest(path: &[u8], has_dots: bool) -> Vec<u8> {
    // The five bytes are `data/` or `meta/`.
    let lower = encode_characters(path.get(5..).unwrap_or_default(), false);
    let components = encode_reserved(&lower, has_dots);
    let Some((name, folders)) = components.split_last() else { return Vec::new() };
    let mut encoded = b"dh/".to_vec();
    encoded.extend(shorten_folders(folders));
    let digest: [u8; 20] = Sha1::digest(path).into();
    let digest = digest.iter().flat_map(|byte| format!("{byte:02x}").into_bytes());
    let extension = extension_of(name);
    let room = MAX_NAME_BYTES.saturating_sub(encoded.len() + 40 + extension.len());
    encoded.extend(name.iter().take(room));
    encoded.extend(digest);
    encoded.extend_from_slice(extension);
    encoded
}

/// Returns the beginnings of the folders' names, as many as fit, each with a slash behind it.
fn shorten_folders(folders: &[Vec<u8>]) -> Vec<u8> {
    let mut shortened: Vec<u8> = Vec::new();
    for folder in folders {
        let mut name = folder.get(..FOLDER_PREFIX_BYTES).unwrap_or(folder).to_vec();
        if let Some(last @ (b'.' | b' ')) = name.last_mut() {
            *last = b'_';
        }
        // Every name so far has its slash. The first one always fits.
        if !shortened.is_empty() && shortened.len() + name.len() > MAX_FOLDERS_BYTES {
            break;
        }
        shortened.extend(name);
        shortened.push(b'/');
    }
    shortened
}

/// Returns the extension of a name, with its period; empty if only periods precede it.
fn extension_of(name: &[u8]) -> &[u8] {
    let Some(dot) = memchr::memrchr(b'.', name) else { return b"" };
    let (stem, extension) = name.split_at_checked(dot).unwrap_or((name, b""));
    if stem.iter().all(|byte| *byte == b'.') { b"" } else { extension }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(path: &str, encoding: PathEncoding) -> String {
        String::from_utf8(encoding.encode(path.as_bytes())).expect("ASCII")
    }

    #[test]
    fn short_names_are_encoded_reversibly() {
        let dots = PathEncoding::Names { has_dots: true };
        let cases = [
            ("data/foo.i", "data/foo.i"),
            ("data/HELLO_w.i", "data/_h_e_l_l_o__w.i"),
            ("data/a:b?.i/x.i", "data/a~3ab~3f.i.hg/x.i"),
            ("data/foo.hg/bla.d/.i", "data/foo.hg.hg/bla.d.hg/~2ei"),
            ("data/aux.txt/com1/com0.i", "data/au~78.txt/co~6d1/com0.i"),
            ("data/.git/ x/end./end .i", "data/~2egit/~20x/end~2e/end .i"),
            ("data/../up.i", "data/~2e~2e/up.i"),
            ("data/\u{e9}~.i", "data/~c3~a9~7e.i"),
            ("data/d//e.i", "data/d//e.i"),
        ];
        for (path, expected) in cases {
            assert_eq!(encode(path, dots), expected);
        }
    }

    #[test]
    fn older_encodings_do_less() {
        let path = "data/.X/aux.i/b.i";
        let encodings = [
            (PathEncoding::Names { has_dots: false }, "data/._x/au~78.i.hg/b.i"),
            (PathEncoding::Characters, "data/._x/aux.i.hg/b.i"),
            (PathEncoding::Folders, "data/.X/aux.i.hg/b.i"),
        ];
        for (encoding, expected) in encodings {
            assert_eq!(encode(path, encoding), expected);
        }
    }

    #[test]
    fn folders_are_decoded() {
        for path in ["data/foo.i", "data/a.i/b.d/c.hg/d.hg.hg/e.i", "data/.hg/x.i", "data/a.hg"] {
            assert_eq!(decode_folders(&encode_folders(path.as_bytes())), path.as_bytes());
        }
    }

    #[test]
    fn long_names_have_a_digest() {
        let dots = PathEncoding::Names { has_dots: true };
        let path = format!("data/{}/Folder./{}.TXT.i", "abcdefghij".repeat(9), "N_".repeat(40));
        let name = format!("{}ne30121784b2496ae6f8b293efe3fe95f7063c88d.i", "n_".repeat(28));
        assert_eq!(encode(&path, dots), format!("dh/abcdefgh/folder~2/{name}"));
        let path = format!("data/{}/Long Folder./{}.i", "abcdefghijk".repeat(9), "n".repeat(50));
        let name = format!("{}.idd5551fa46cfcffb5812ec5a6a912e48335661a4.i", "n".repeat(50));
        assert_eq!(encode(&path, dots), format!("dh/abcdefgh/long fol/{name}"));
    }
}
