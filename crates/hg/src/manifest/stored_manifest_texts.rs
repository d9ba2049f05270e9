//! Texts of manifests of earlier conversions: those read last, within a limit of bytes. One that
//! was dropped is read from the metadata again.

use super::ManifestText;
use crate::object_id::{IdMap, Node};
use std::collections::VecDeque;

/// The bytes of texts that are kept, also if they share pieces; the newest one is kept in any case.
const MAX_BYTES: usize = 64 << 20;

/// Reads the text of a manifest of an earlier conversion. Some texts are given, from which it may
/// be made.
pub(crate) type ManifestTextReader<'r, E> =
    dyn FnMut(&Node, &IdMap<Node, ManifestText>) -> Result<Option<ManifestText>, E> + 'r;

/// Texts of manifests of earlier conversions.
#[derive(Default)]
pub(super) struct StoredManifestTexts {
    texts: IdMap<Node, ManifestText>,
    /// The nodes of `texts`, the oldest first.
    order: VecDeque<Node>,
    bytes: usize,
}

impl StoredManifestTexts {
    /// Returns a text that is kept, or reads it; `None` if there is no such manifest.
    pub(super) fn read<E>(
        &mut self,
        node: Node,
        read: &mut ManifestTextReader<'_, E>,
    ) -> Result<Option<ManifestText>, E> {
        if let Some(text) = self.texts.get(&node) {
            return Ok(Some(text.clone()));
        }
        let Some(text) = read(&node, &self.texts)? else { return Ok(None) };
        self.bytes += text.len();
        self.texts.insert(node, text.clone());
        self.order.push_back(node);
        while self.bytes > MAX_BYTES && self.order.len() > 1 {
            let oldest = self.order.pop_front();
            let dropped = oldest.and_then(|oldest| self.texts.remove(&oldest));
            self.bytes -= dropped.map_or(0, |text| text.len());
        }
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Ten texts of 30 MB: at most two are kept, and the newest one is not read again.
    #[test]
    fn the_bytes_of_texts_are_limited() {
        let line = [&[b'x'; 100][..], b"\n"].concat();
        let text = line.repeat(300_000);
        let mut texts = StoredManifestTexts::default();
        let mut reads = 0;
        for byte in 0..10 {
            let node = Node([byte; 20]);
            for _ in 0..2 {
                let read = texts.read::<Infallible>(node, &mut |_, recent| {
                    assert!(recent.len() <= 2);
                    reads += 1;
                    Ok(Some(ManifestText::new(&text)))
                });
                assert_eq!(read.unwrap().map(|text| text.len()), Some(text.len()));
            }
            assert!(texts.bytes <= MAX_BYTES);
            assert_eq!(texts.texts.len(), texts.order.len());
        }
        assert_eq!(reads, 10);
        let missing = texts.read::<Infallible>(Node::NULL, &mut |_, _| Ok(None));
        assert!(missing.unwrap().is_none());
    }
}
