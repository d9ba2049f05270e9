//! The paths and the file revisions of manifests, by number.
//!
//! Apart from the list of manifests, because later phases look up numbers without it.

use crate::id_index::IdIndex;
use crate::object_id::Node;
use std::collections::HashMap;
use std::rc::Rc;

/// Paths or other bytes by number.
#[derive(Default)]
pub(crate) struct PathTable {
    numbers: HashMap<Rc<[u8]>, u32, rustc_hash::FxBuildHasher>,
    paths: Vec<Rc<[u8]>>,
}

impl PathTable {
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the number of a path, if it has one.
    pub(crate) fn find(&self, path: &[u8]) -> Option<u32> {
        self.numbers.get(path).copied()
    }

    /// Returns the number of a path, which it gets now if it is new.
    pub(crate) fn number(&mut self, path: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.paths.len() as u32;
        let path: Rc<[u8]> = path.into();
        self.paths.push(path.clone());
        self.numbers.insert(path, number);
        number
    }

    /// Returns all paths, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.paths.iter().map(|path| path.as_ref())
    }

    /// Gives back the memory that only the numbering of paths needs.
    pub(super) fn end_numbering(&mut self) {
        self.numbers = HashMap::default();
    }

    /// Returns the path with a number.
    pub(crate) fn path(&self, number: u32) -> &[u8] {
        self.paths.get(number as usize).map_or(&[], |path| path)
    }
}

/// The revisions of files that manifests name, by number.
#[derive(Default)]
pub(crate) struct FileTable {
    index: IdIndex,
    nodes: Vec<Node>,
}

impl FileTable {
    /// Returns the number of a node, which it gets now if it is new.
    pub(crate) fn number(&mut self, node: Node) -> u32 {
        if let Some(number) = self.find(&node) {
            return number;
        }
        self.nodes.push(node);
        self.index.push(|place| self.nodes.get(place).map(|node| &node.0));
        self.nodes.len() as u32 - 1
    }

    /// Returns the number of a node, if it has one.
    pub(crate) fn find(&self, node: &Node) -> Option<u32> {
        let found = self.index.find(&node.0, |place| self.nodes.get(place).map(|node| &node.0));
        found.map(|place| place as u32)
    }

    /// Returns the node with a number.
    pub(crate) fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or(Node::NULL)
    }

    /// All nodes, in the order of their numbers.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}
