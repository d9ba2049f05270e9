//! The phases of changesets: who may see and change them (mercurial/phases.py).

use crate::local::local_error::LocalError;
use crate::object_id::{IdMap, Node};
use crate::revlog::Revlog;
use std::path::Path;

/// The phase of one changeset, as a number in the file `phaseroots`.
pub(crate) const SECRET: u8 = 2;
/// Phases from this one on are hidden as if obsolete: archived and internal changesets.
pub(crate) const ARCHIVED: u8 = 32;
const PHASES: [u8; 5] = [0, 1, SECRET, ARCHIVED, 96];

/// Returns the phase of each revision of the changelog. A file that does not exist makes all of
/// them public.
pub(crate) fn read_phases(
    path: &Path,
    text: Option<&[u8]>,
    changelog: &Revlog,
) -> Result<Vec<u8>, LocalError> {
    let roots = parse_roots(path, text.unwrap_or_default())?;
    let mut phases: Vec<u8> = Vec::with_capacity(changelog.entries().len());
    for entry in changelog.entries() {
        let phase_of = |parent: Option<u32>| {
            parent.and_then(|parent| phases.get(parent as usize)).copied().unwrap_or(0)
        };
        let own = roots.get(&entry.node).copied().unwrap_or(0);
        phases.push(own.max(phase_of(entry.p1())).max(phase_of(entry.p2())));
    }
    Ok(phases)
}

/// Parses lines of a phase and the node of a changeset: it and its descendants have this phase, or
/// a higher one.
fn parse_roots(path: &Path, text: &[u8]) -> Result<IdMap<Node, u8>, LocalError> {
    let mut roots: IdMap<Node, u8> = IdMap::default();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Some((phase, node)) = parse_root(line) else {
            let what = format!("no phase and node: {:?}", String::from_utf8_lossy(line));
            return Err(LocalError::Damaged { path: path.to_owned(), what });
        };
        let known = roots.entry(node).or_default();
        *known = phase.max(*known);
    }
    Ok(roots)
}

fn parse_root(line: &[u8]) -> Option<(u8, Node)> {
    let (phase, node) = line.split_at(line.iter().position(|byte| *byte == b' ')?);
    let phase = str::from_utf8(phase).ok()?.parse().ok()?;
    PHASES.contains(&phase).then_some((phase, Node::from_hex(node.trim_ascii())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_lines_of_phase_and_node() {
        let digits = "00112233445566778899aabbccddeeff00112233";
        let node = Node::from_hex(digits.as_bytes()).expect("a node");
        let text = format!("1 {digits}\n2 {digits}\n");
        let roots = parse_roots(Path::new("phaseroots"), text.as_bytes()).expect("roots");
        assert_eq!(roots.get(&node), Some(&2));
        for damaged in ["1\n", "9 00112233445566778899aabbccddeeff00112233\n", "1 0011\n"] {
            let error = parse_roots(Path::new("phaseroots"), damaged.as_bytes());
            assert!(error.is_err(), "{damaged}");
        }
    }
}
