//! The texts of recent changesets, which the deltas of later ones apply to.

use crate::object_id::{IdMap, Node};
use std::collections::VecDeque;

/// The bytes of texts that are kept.
const KEPT_BYTES: usize = 16 << 20;
/// The texts that are kept at most.
const KEPT_TEXTS: usize = 1024;

/// The texts of recent changesets.
#[derive(Default)]
pub(super) struct RecentTexts {
    texts: IdMap<Node, Vec<u8>>,
    /// The nodes of `texts`, the oldest first.
    order: VecDeque<Node>,
    bytes: usize,
}

impl RecentTexts {
    /// Returns the text of a changeset if it is kept.
    pub(super) fn get(&self, node: &Node) -> Option<&[u8]> {
        self.texts.get(node).map(Vec::as_slice)
    }

    /// Keeps a text. Of the older ones, those added last stay, as far as the limits allow.
    pub(super) fn add(&mut self, node: Node, text: Vec<u8>) {
        self.bytes += text.len();
        match self.texts.insert(node, text) {
            Some(former) => self.bytes -= former.len(),
            None => self.order.push_back(node),
        }
        while (self.bytes > KEPT_BYTES && self.order.len() > 1) || self.order.len() > KEPT_TEXTS {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.texts.remove(&oldest).map_or(0, |text| text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> Node {
        let mut node = Node::NULL;
        node.0[..4].copy_from_slice(&number.to_be_bytes());
        node
    }

    #[test]
    fn texts_are_bounded_by_number_and_bytes() {
        let mut texts = RecentTexts::default();
        for number in 0..2000 {
            texts.add(node(number), vec![0; 10]);
            texts.add(node(number), vec![0; 20]);
        }
        assert_eq!((texts.order.len(), texts.bytes), (KEPT_TEXTS, 20 * KEPT_TEXTS));
        for number in 2000..2040 {
            texts.add(node(number), vec![0; 2 << 20]);
            assert!(texts.bytes <= KEPT_BYTES);
        }
        assert_eq!((texts.order.len(), texts.bytes), (8, KEPT_BYTES));
        // The newest one is there, whatever its size.
        texts.add(node(3000), vec![0; KEPT_BYTES + 1]);
        assert_eq!((texts.order.len(), texts.texts.len()), (1, 1));
        assert_eq!(texts.get(&node(3000)).map(<[u8]>::len), Some(KEPT_BYTES + 1));
    }
}
