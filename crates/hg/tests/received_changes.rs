//! Changes read from a source to the end, with the texts that their deltas make.

use larder_hg::{ChangeError, ChangeSource, Node, Peer, Revision, apply_delta};
use sha1::{Digest as _, Sha1};
use std::collections::{BTreeMap, HashMap};

/// The name of a group: `None` for the changelog, an empty path for the manifest.
pub(crate) type GroupName = Option<Vec<u8>>;

/// The node, parents and link of a revision.
pub(crate) type RevisionIds = [Node; 4];

/// All that a receiver has got so far.
#[derive(Default)]
pub(crate) struct ReceivedChanges {
    /// The groups of the last changes, in their order.
    pub(crate) groups: Vec<(GroupName, Vec<RevisionIds>)>,
    /// The texts of all revisions, by group and node.
    pub(crate) texts: HashMap<(GroupName, Node), Vec<u8>>,
    /// The revisions with flags.
    pub(crate) flags: BTreeMap<Node, u16>,
}

impl ReceivedChanges {
    /// Reads changes to the end, and checks that each revision is the text that its node says.
    pub(crate) fn receive(
        &mut self,
        peer: &mut dyn Peer,
        heads: &[Node],
        common: &[Node],
    ) -> Result<(), ChangeError> {
        let mut source = peer.changes(heads, common)?;
        self.read(source.as_mut())
    }

    /// Reads the changes of a source, as [`Self::receive`].
    pub(crate) fn read(&mut self, source: &mut dyn ChangeSource) -> Result<(), ChangeError> {
        self.groups.clear();
        self.read_group(source, None)?;
        self.read_group(source, Some(Vec::new()))?;
        while let Some(path) = source.next_file()? {
            self.read_group(source, Some(path))?;
        }
        Ok(())
    }

    fn read_group(
        &mut self,
        source: &mut dyn ChangeSource,
        name: GroupName,
    ) -> Result<(), ChangeError> {
        let mut received = Vec::new();
        let mut revision = Revision::empty();
        while source.next_revision(&mut revision)? {
            let Revision { node, p1, p2, base, link, flags, delta } = &revision;
            let empty = Vec::new();
            let base_text = if base.is_null() {
                &empty
            } else {
                let key = (name.clone(), *base);
                self.texts.get(&key).unwrap_or_else(|| panic!("{name:?} {node}: base {base}"))
            };
            let mut text = Vec::new();
            apply_delta(base_text, delta, &mut text).unwrap();
            let digest: [u8; 20] = Sha1::new()
                .chain_update(p1.min(p2).0)
                .chain_update(p1.max(p2).0)
                .chain_update(&text)
                .finalize()
                .into();
            assert!(Node(digest) == *node || flags & Revision::CENSORED != 0, "{name:?} {node}");
            if *flags != 0 {
                self.flags.insert(*node, *flags);
            }
            received.push([*node, *p1, *p2, *link]);
            self.texts.insert((name.clone(), *node), text);
        }
        self.groups.push((name, received));
        Ok(())
    }

    /// Returns the groups without empty ones, with their revisions sorted.
    pub(crate) fn sorted_groups(&self) -> BTreeMap<GroupName, Vec<RevisionIds>> {
        let mut groups: BTreeMap<_, _> = self.groups.iter().cloned().collect();
        groups.retain(|_, received| !received.is_empty());
        groups.values_mut().for_each(|received| received.sort());
        groups
    }
}
