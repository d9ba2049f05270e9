//! Obsolescence markers: which changesets others have replaced (mercurial/obsolete.py,
//! `hg help internals` has no page for them).

use crate::local::local_error::LocalError;
use crate::object_id::Node;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// The flag of a marker whose nodes have 32 bytes. No changeset has such a node yet.
const SHA256: u16 = 2;

/// Returns the changesets that markers replace or remove, sorted by their nodes.
pub(crate) fn read_replaced(path: &Path) -> Result<Vec<Node>, LocalError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LocalError::Read { path: path.to_owned(), source }),
    };
    parse(&mut BufReader::new(file)).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidData {
            LocalError::Damaged { path: path.to_owned(), what: error.to_string() }
        } else {
            LocalError::Read { path: path.to_owned(), source: error }
        }
    })
}

/// Parses markers. An incomplete one at the end is being written, or its transaction failed.
fn parse(input: &mut impl BufRead) -> io::Result<Vec<Node>> {
    let mut version = [0];
    let mut replaced = Vec::new();
    if input.read(&mut version)? == 1 {
        let parse_marker = match version {
            [0] => parse_old_marker,
            [1] => parse_marker,
            [other] => return Err(invalid(&format!("version {other} of obsolescence markers"))),
        };
        while !input.fill_buf()?.is_empty() {
            match parse_marker(input) {
                Ok(Some(node)) => replaced.push(node),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
    }
    replaced.sort_unstable();
    replaced.dedup();
    Ok(replaced)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Parses a marker of version 1: its size, the date (10 bytes), flags, counts, and the node.
fn parse_marker(input: &mut impl BufRead) -> io::Result<Option<Node>> {
    const FIXED_BYTES: usize = 19;
    let mut fixed = [0; FIXED_BYTES];
    input.read_exact(&mut fixed)?;
    let [a, b, c, d, .., flags_high, flags_low, _, _, _] = fixed;
    let size = u64::from(u32::from_be_bytes([a, b, c, d]));
    let rest = size.checked_sub(FIXED_BYTES as u64 + 20);
    let rest = rest.ok_or_else(|| invalid("a marker is shorter than its fields"))?;
    let node = read_node(input)?;
    skip(input, rest)?;
    let has_short_nodes = u16::from_be_bytes([flags_high, flags_low]) & SHA256 == 0;
    Ok(has_short_nodes.then_some(node))
}

/// Parses a marker of version 0: count of successors, size of the metadata, flags, and the node.
fn parse_old_marker(input: &mut impl BufRead) -> io::Result<Option<Node>> {
    let mut fixed = [0; 6];
    input.read_exact(&mut fixed)?;
    let [successors, a, b, c, d, _] = fixed;
    let node = read_node(input)?;
    skip(input, u64::from(successors) * 20 + u64::from(u32::from_be_bytes([a, b, c, d])))?;
    Ok(Some(node))
}

fn read_node(input: &mut impl BufRead) -> io::Result<Node> {
    let mut node = [0; 20];
    input.read_exact(&mut node)?;
    Ok(Node(node))
}

fn skip(input: &mut impl BufRead, len: u64) -> io::Result<()> {
    let skipped = io::copy(&mut input.take(len), &mut io::sink())?;
    if skipped == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(node: u8, flags: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = (39 + rest.len() as u32).to_be_bytes().to_vec();
        bytes.extend([0; 10]);
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0; 3]);
        bytes.extend([node; 20]);
        bytes.extend_from_slice(rest);
        bytes
    }

    fn replaced(bytes: &[u8]) -> Vec<u8> {
        parse(&mut &*bytes).expect("markers").iter().map(|node| node.0[0]).collect()
    }

    #[test]
    fn both_versions_are_read() {
        let new = [vec![1], marker(7, 0, b"rest"), marker(5, 0, b""), marker(6, SHA256, &[0; 12])];
        assert_eq!(replaced(&new.concat()), [5, 7]);
        let old = [vec![0, 1, 0, 0, 0, 3, 0], vec![4; 20], vec![8; 20], b"a:b".to_vec()];
        assert_eq!(replaced(&old.concat()), [4]);
        assert!(replaced(b"").is_empty());
    }

    #[test]
    fn an_incomplete_marker_does_not_count() {
        let bytes = [vec![1], marker(5, 0, b""), marker(7, 0, b"rest")].concat();
        for end in 41..bytes.len() {
            assert_eq!(replaced(&bytes[..end]), [5]);
        }
    }

    #[test]
    fn impossible_markers_are_errors() {
        assert!(parse(&mut [2_u8, 0].as_slice()).is_err());
        assert!(parse(&mut [&[1, 0, 0, 0, 38][..], &[0; 60]].concat().as_slice()).is_err());
    }
}
