//! The phase of changesets, which come first: their texts are kept, and their manifests noted.

use super::Conversion;
use super::conversion_error::ConversionError;
use super::head_changesets::NewChangeset;
use super::progress::Phase;
use super::recent_texts::RecentTexts;
use crate::changeset::manifest_of;
use crate::manifest::ExpectedParents;
use crate::mutex::lock;
use crate::object_id::{IdMap, Node};
use crate::revision::{ChangeSource, Revision, RevisionHeader};

impl Conversion<'_> {
    /// Reads the changesets, of which the new ones are kept, and the parents that their manifests
    /// have to have.
    pub(super) fn read_changesets(
        &mut self,
        source: &mut dyn ChangeSource,
    ) -> Result<(Vec<NewChangeset>, ExpectedParents), ConversionError> {
        let mut revision = Revision::empty();
        let mut changesets = Vec::new();
        let mut manifests: Vec<Node> = Vec::new();
        let mut expected = ExpectedParents::default();
        let mut texts = RecentTexts::default();
        let mut numbers: IdMap<Node, usize> = IdMap::default();
        while source.next_revision(&mut revision)? {
            let Revision { node, p1, p2, base, .. } = revision;
            let header = RevisionHeader::new(&revision);
            let damaged =
                |what: &str| ConversionError::Damaged(format!("changeset {node}: {what}"));
            if let Some(flag) = header.refused_history_flag() {
                return Err(damaged(&format!("not supported: {flag}")));
            }
            if !base.is_null() && texts.get(&base).is_none() {
                let text = self.older_text(&base, &numbers)?;
                let text = text.ok_or_else(|| outside_base(node, base))?;
                texts.add(base, text);
            }
            let base_text = texts.get(&base).unwrap_or_default();
            let mut text = Vec::new();
            crate::delta::apply_delta(base_text, &revision.delta, &mut text)
                .map_err(|_| damaged("its delta does not fit its base"))?;
            if !header.is_hash_of([text.as_slice()]) {
                return Err(damaged("its text does not have its hash"));
            }
            if self.is_new_changeset(&node, &text, &numbers)? {
                self.segment.add_text(&mut lock(self.pack), &text)?;
                let mut parents = [p1, p2];
                for parent in &mut parents {
                    *parent = match numbers.get(parent) {
                        Some(number) => manifests.get(*number).copied().unwrap_or(Node::NULL),
                        None => {
                            let manifest = self.manifest_of_stored(parent, &texts)?;
                            manifest.ok_or_else(|| outside_base(node, *parent))?
                        }
                    };
                }
                let manifest = manifest_of(&text);
                expected.add(manifest, parents);
                manifests.push(manifest);
                numbers.insert(node, changesets.len());
                changesets.push(NewChangeset { node, p1, p2 });
                self.report(Phase::Changesets, changesets.len(), None);
            } else {
                self.has_known_changesets = true;
            }
            texts.add(node, text);
        }
        Ok((changesets, expected))
    }

    /// Returns the manifest of a changeset of an earlier conversion, or a null one of no changeset.
    /// `None`: there is no such changeset.
    fn manifest_of_stored(
        &mut self,
        changeset: &Node,
        texts: &RecentTexts,
    ) -> Result<Option<Node>, ConversionError> {
        if changeset.is_null() {
            return Ok(Some(Node::NULL));
        }
        if let Some(text) = texts.get(changeset) {
            return Ok(Some(manifest_of(text)));
        }
        let text = self
            .stored
            .look_up(|metadata, repository| metadata.changeset_text(repository, changeset))?;
        Ok(text.as_deref().map(manifest_of))
    }

    /// Returns whether no conversion has a changeset, and this one does not have it yet. One that
    /// is there must have the same text.
    fn is_new_changeset(
        &mut self,
        node: &Node,
        text: &[u8],
        numbers: &IdMap<Node, usize>,
    ) -> Result<bool, ConversionError> {
        match self.older_text(node, numbers)? {
            None => Ok(true),
            Some(former) if former == text => Ok(false),
            Some(_) => Err(ConversionError::Collision(*node)),
        }
    }

    /// Returns the text of a changeset that is not among the recent ones.
    fn older_text(
        &mut self,
        node: &Node,
        numbers: &IdMap<Node, usize>,
    ) -> Result<Option<Vec<u8>>, ConversionError> {
        if let Some(number) = numbers.get(node) {
            return Ok(self.segment.text(&mut lock(self.pack), *number)?);
        }
        Ok(self.stored.look_up(|metadata, repository| metadata.changeset_text(repository, node))?)
    }
}

/// Returns the error of a changeset that builds on one that is neither in the source nor stored.
fn outside_base(node: Node, base: Node) -> ConversionError {
    ConversionError::Damaged(format!("changeset {node} builds on {base}, which is not here"))
}
