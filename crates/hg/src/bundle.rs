//! Bundles: changegroups in an envelope, as files and as answers of servers.
//!
//! | begin | format |
//! |---|---|
//! | `HG20` | bundle2: parameters, then parts, which may be compressed ([`part`]) |
//! | `HG10UN`, `HG10GZ`, `HG10BZ` | a changegroup 01, maybe compressed |
//! | a zero byte | a changegroup 01 without an envelope, only as the answer of a server |
//! | `HGS1` | the files of a store ([`StorePart`]) |
//!
//! See `mercurial/bundle2.py` and the help topics `internals.bundles` and `internals.bundle2` of
//! Mercurial.

mod part;
mod store_part;

pub(crate) use store_part::PACKED;
pub use store_part::StorePart;

use crate::byte_reader::{drain, fill, read_array};
use crate::changegroup::{Changegroup, ChangegroupVersion};
use crate::object_id::Node;
use crate::revision::{ChangeError, ChangeSource, Revision};
use part::{Part, Parts, read_stream_parameters};
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// A stream of bytes that a bundle is read from. No byte after the end of the bundle is read,
/// unless the bundle itself is compressed.
pub type ByteStream<'a> = Box<dyn BufRead + Send + 'a>;

/// The size of the buffer behind a decoder.
const BUFFER_BYTES: usize = 1 << 16;

/// A parameter of a part, by its name.
pub type PartParameter = (Vec<u8>, Vec<u8>);

/// The content of a bundle.
pub enum BundleContent<'a> {
    /// Changes; none if the bundle has no changegroup.
    Changes {
        /// The revisions. After the last file the rest of the bundle is read, so that a message of
        /// the server or a damaged end is reported.
        source: Box<dyn ChangeSource + 'a>,
        /// The bookmarks of the parts before the changegroup.
        bookmarks: Vec<(Vec<u8>, Node)>,
    },
    /// The files of a store.
    Store(StorePart<'a>),
}

/// Reads the start of a server's answer, and returns its changes. A bundle with the files of a
/// store is not supported here; [`open_bundle_content`] returns them.
pub fn open_bundle<'a>(
    mut read: ByteStream<'a>,
) -> Result<Box<dyn ChangeSource + 'a>, ChangeError> {
    let magic: [u8; 4] = read_array(&mut read)?;
    let content = match &magic {
        // A file is not taken for one: zero bytes alone would be a bundle without changes.
        [0, ..] => changegroup_content(Box::new(Cursor::new(magic).chain(read)), false),
        _ => read_envelope(magic, read)?,
    };
    match content {
        BundleContent::Changes { source, .. } => Ok(source),
        BundleContent::Store(part) => {
            Err(ChangeError::new_unsupported(format!("a stream clone bundle (part {})", part.name)))
        }
    }
}

/// Reads the start of a bundle.
pub fn open_bundle_content<'a>(mut read: ByteStream<'a>) -> Result<BundleContent<'a>, ChangeError> {
    let magic = read_array(&mut read)?;
    read_envelope(magic, read)
}

fn read_envelope(
    magic: [u8; 4],
    mut read: ByteStream<'_>,
) -> Result<BundleContent<'_>, ChangeError> {
    match &magic {
        b"HG20" => open_bundle2(read),
        b"HG10" => {
            let read = match &read_array(&mut read)? {
                b"UN" => return Ok(changegroup_content(read, false)),
                b"GZ" => decompress("GZ", read)?,
                // The stream lacks its own first two bytes.
                b"BZ" => decompress("BZ", Box::new(Cursor::new(b"BZ").chain(read)))?,
                other => {
                    let name = other.escape_ascii();
                    return Err(ChangeError::new_unsupported(format!("bundle compression {name}")));
                }
            };
            Ok(changegroup_content(read, true))
        }
        b"HGS1" => Ok(BundleContent::Store(StorePart::read_packed(read)?)),
        [b'H', b'G', ..] => {
            Err(ChangeError::new_unsupported(format!("bundle version {}", magic.escape_ascii())))
        }
        _ => Err(ChangeError::new_not_mercurial(format!(
            "not a bundle: it begins with {:?}",
            Begin(&magic)
        ))),
    }
}

/// The first bytes of what is not a bundle.
struct Begin<'a>(&'a [u8]);

impl std::fmt::Debug for Begin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

fn changegroup_content(read: ByteStream<'_>, is_compressed: bool) -> BundleContent<'_> {
    let changegroup = Changegroup::new(read, ChangegroupVersion::V1);
    let source = ChangegroupSource { changegroup, is_compressed };
    BundleContent::Changes { source: Box::new(source), bookmarks: Vec::new() }
}

fn open_bundle2<'a>(mut read: ByteStream<'a>) -> Result<BundleContent<'a>, ChangeError> {
    let mut compression = None;
    for (name, value) in read_stream_parameters(&mut read)? {
        match name.as_slice() {
            b"Compression" => compression = Some(value),
            [b'A'..=b'Z', ..] => {
                let name = name.escape_ascii();
                return Err(ChangeError::new_unsupported(format!("bundle parameter {name}")));
            }
            _ => {}
        }
    }
    let is_compressed = compression.as_deref().is_some_and(|name| name != b"UN");
    if let Some(name) = compression {
        read = decompress(&name.escape_ascii().to_string(), read)?;
    }
    find_content(Parts::new(read, is_compressed))
}

/// Wraps a stream in the decoder that bundles call by this name.
pub(crate) fn decompress<'a>(
    name: &str,
    read: ByteStream<'a>,
) -> Result<ByteStream<'a>, ChangeError> {
    let decoder: Box<dyn Read + Send + 'a> = match name {
        "UN" => return Ok(read),
        "GZ" => Box::new(flate2::bufread::ZlibDecoder::new(read)),
        "BZ" => Box::new(bzip2::bufread::BzDecoder::new(read)),
        "ZS" => Box::new(zstd::stream::read::Decoder::with_buffer(read)?),
        _ => return Err(ChangeError::new_unsupported(format!("bundle compression {name}"))),
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, BundleDecoder(decoder))))
}

/// A decoder whose errors say what they mean for the bundle.
struct BundleDecoder<'a>(Box<dyn Read + Send + 'a>);

impl Read for BundleDecoder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted => error,
            _ if error.get_ref().is_some_and(|inner| inner.is::<ChangeError>()) => error,
            // A server that fails in the middle of an answer writes its error page after it.
            _ => ChangeError::new_damaged(format!(
                "the compressed data is not complete ({error}); a server that failed may say why \
                 in its log"
            ))
            .into(),
        })
    }
}

/// Reads parts up to the first one that holds revisions.
fn find_content(mut parts: Parts<'_>) -> Result<BundleContent<'_>, ChangeError> {
    let mut bookmarks = Vec::new();
    while let Some(part) = parts.next_part()? {
        match part.lower_name().as_str() {
            "changegroup" => {
                let version = changegroup_version(&part)?;
                let source = BundleSource { changegroup: Changegroup::new(parts, version) };
                return Ok(BundleContent::Changes { source: Box::new(source), bookmarks });
            }
            "stream2" | "stream3-exp" => {
                let (name, parameters) = (part.lower_name(), part.parameters);
                return Ok(BundleContent::Store(StorePart::new(name, parameters, parts)));
            }
            "bookmarks" => bookmarks.extend(read_bookmarks(&mut parts)?),
            "listkeys" if part.parameter("namespace") == Some(b"bookmarks".as_slice()) => {
                bookmarks.extend(parse_bookmark_keys(&parts.read_payload()?)?);
            }
            _ => skip_part(&part)?,
        }
    }
    let source = EmptySource;
    Ok(BundleContent::Changes { source: Box::new(source), bookmarks })
}

fn changegroup_version(part: &Part) -> Result<ChangegroupVersion, ChangeError> {
    const KNOWN: [&str; 5] = ["version", "nbchanges", "targetphase", "treemanifest", "delayed"];
    part.check_parameters(&KNOWN)?;
    // Tree manifests are refused where a directory is met: the parameter is also set for
    // repositories that have none.
    ChangegroupVersion::from_name(part.parameter("version").unwrap_or(b"01"))
}

/// Reads the parts after the one with the revisions.
fn finish(parts: &mut Parts<'_>) -> Result<(), ChangeError> {
    while let Some(part) = parts.next_part()? {
        match part.lower_name().as_str() {
            "changegroup" | "stream2" | "stream3-exp" => {
                let what = format!("a second part with revisions ({})", part.lower_name());
                return Err(ChangeError::new_unsupported(what));
            }
            "bookmarks" | "listkeys" => {}
            _ => skip_part(&part)?,
        }
    }
    Ok(())
}

/// Parts that hold nothing that is needed: caches, phases, obsolescence, the server's output.
const SKIPPED_PARTS: [&str; 7] = [
    "cache:rev-branch-cache",
    "hgtagsfnodes",
    "listkeys",
    "obsmarkers",
    "output",
    "phase-heads",
    "pushvars",
];

fn skip_part(part: &Part) -> Result<(), ChangeError> {
    let name = part.lower_name();
    if part.is_mandatory() && !SKIPPED_PARTS.contains(&name.as_str()) {
        return Err(ChangeError::new_unsupported(format!("bundle part {name}")));
    }
    Ok(())
}

/// Reads a part of bookmarks: the node, the length of the name in two bytes, the name.
fn read_bookmarks(parts: &mut Parts<'_>) -> Result<Vec<(Vec<u8>, Node)>, ChangeError> {
    let payload = parts.read_payload()?;
    let mut rest = payload.as_slice();
    let mut bookmarks = Vec::new();
    while !rest.is_empty() {
        let parsed = (|| {
            let (node, rest) = rest.split_first_chunk::<20>()?;
            let (len, rest) = rest.split_first_chunk::<2>()?;
            let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            Some(((name.to_vec(), Node(*node)), rest))
        })();
        let Some((bookmark, after)) = parsed else {
            return Err(ChangeError::new_damaged("a part of bookmarks is cut off"));
        };
        bookmarks.push(bookmark);
        rest = after;
    }
    // A deleted bookmark has all bits set.
    bookmarks.retain(|(_, node)| *node != Node([0xff; 20]));
    Ok(bookmarks)
}

/// Parses lines of a name, a tabulator and 40 hexadecimal digits.
pub(crate) fn parse_bookmark_keys(text: &[u8]) -> Result<Vec<(Vec<u8>, Node)>, ChangeError> {
    let parse = |line: &[u8]| {
        let position = line.iter().rposition(|byte| *byte == b'\t')?;
        let (name, digits) = line.split_at_checked(position)?;
        Some((name.to_vec(), Node::from_hex(digits.get(1..)?.trim_ascii_end())?))
    };
    let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            parse(line).ok_or_else(|| {
                let line = String::from_utf8_lossy(line);
                let what = format!("line {number} of the bookmarks: no name and node: {line:?}");
                ChangeError::Damaged { what }
            })
        })
        .collect()
}

/// The changes of a bundle2.
struct BundleSource<'a> {
    changegroup: Changegroup<Parts<'a>>,
}

impl ChangeSource for BundleSource<'_> {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        self.changegroup.next_revision(revision)
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        let path = self.changegroup.next_file()?;
        if path.is_none() {
            finish(self.changegroup.get_mut())?;
        }
        Ok(path)
    }
}

/// The changes of a changegroup without parts around it.
struct ChangegroupSource<'a> {
    changegroup: Changegroup<ByteStream<'a>>,
    is_compressed: bool,
}

impl ChangeSource for ChangegroupSource<'_> {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        self.changegroup.next_revision(revision)
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        let path = self.changegroup.next_file()?;
        if path.is_none() && self.is_compressed {
            // A damaged end of the compressed data may be behind bytes that nobody needs.
            drain(self.changegroup.get_mut())?;
        }
        Ok(path)
    }
}

/// The changes of a bundle without revisions.
struct EmptySource;

impl ChangeSource for EmptySource {
    fn next_revision(&mut self, _: &mut Revision) -> Result<bool, ChangeError> {
        Ok(false)
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
