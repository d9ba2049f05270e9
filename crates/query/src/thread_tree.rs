//! Threads of messages: the tree of replies, in the order of a list.
//!
//! The algorithm is that of Jamie Zawinski as mu uses it: the ids in References and In-Reply-To
//! link messages, and subjects never do. Separate from the search, which finds the messages of a
//! thread by an index; this module only arranges them, and mails of any author cannot make it
//! recurse or loop.
//!
//! An id that some message refers to but none has is an empty node. Its children move up to the
//! next message above, except that an empty node at the root stays if it has several children:
//! these are orphans on level 1. A second message with the same id is a child of the first.
//!
//! References of several messages may disagree. The first link of a node decides; the messages are
//! read in the order of their dates, in the direction of the list, as in mu.

use std::collections::HashMap;

/// A message to arrange.
#[derive(Debug, Clone)]
pub struct ThreadMessage<'a> {
    /// The Message-ID. A message with an empty one has no replies and no duplicates.
    pub message_id: &'a str,
    /// The ids in References and In-Reply-To, from the oldest ancestor to the parent.
    pub references: Vec<&'a str>,
    /// The time of the message, in seconds since 1970.
    pub date: i64,
    /// The subject.
    pub subject: &'a str,
}

/// The order of threads in a list. Replies are always in the order of their dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ThreadOrder {
    /// The thread with the oldest message first.
    Ascending,
    /// The thread with the newest message first.
    #[default]
    Descending,
}

/// A message in a list of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    /// The index of the message in the input.
    pub index: usize,
    /// The number of messages above it, or of nodes with an empty root.
    pub level: usize,
    /// The number of its thread, from 0.
    pub thread: u32,
    /// The number of the message among its siblings, from 0; of a root, the number of its thread.
    pub position: u32,
    /// The message has no parent.
    pub root: bool,
    /// The message is the first of its siblings; false for roots.
    pub first_child: bool,
    /// The message is the last of its siblings; false for roots.
    pub last_child: bool,
    /// The message has replies or duplicates.
    pub has_child: bool,
    /// The message and its siblings are replies to a message that is not in the list.
    pub orphan: bool,
    /// An earlier message has the same id.
    pub duplicate: bool,
    /// The subject differs from that of the row above in the same thread, without prefixes such as
    /// `Re:`; true for the first message of a thread.
    pub thread_subject: bool,
}

/// The numbers of a row and of the rows above it, from the thread on.
///
/// A row does not contain them, as the paths of a chain of replies grow with the square of its
/// length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadPath(Vec<u32>);

/// The numbers of a path that are returned. A chain of replies may be as long as the mail.
const MAX_PATH_NUMBERS: usize = 100;

impl ThreadPath {
    /// Returns the path of the next row; the rows must be given in their order. Of a message below
    /// many others these are the last numbers.
    pub fn advance(&mut self, row: &ThreadRow) -> &[u32] {
        if self.0.first() != Some(&row.thread) {
            self.0.clear();
            self.0.push(row.thread);
        }
        if row.level > 0 {
            self.0.truncate(row.level);
            self.0.push(row.position);
        } else {
            self.0.truncate(1);
        }
        self.0.get(self.0.len().saturating_sub(MAX_PATH_NUMBERS)..).unwrap_or(&self.0)
    }
}

/// Arranges messages in threads; each message is in one row.
///
/// Threads are ordered by their newest message, where a message with replies counts as older than
/// these. With equal dates the order of the input decides.
#[must_use]
pub fn order_threads(messages: &[ThreadMessage<'_>], order: ThreadOrder) -> Vec<ThreadRow> {
    let graph = ReplyGraph::build(messages, order);
    let forest = ThreadForest::build(messages, &graph, order);
    forest.rows(messages, &graph)
}

/// A node of the graph of replies.
#[derive(Debug, Clone, Copy)]
struct ReplyNode {
    /// The message; `None` if it is only referred to.
    message: Option<usize>,
    parent: Option<usize>,
    /// Another node of the same tree, closer to its representative; or the node itself.
    representative: usize,
    is_duplicate: bool,
}

/// All ids with their parents, as the references tell. It has no cycle: a link only ever joins two
/// trees.
#[derive(Debug, Default)]
struct ReplyGraph<'a> {
    nodes: Vec<ReplyNode>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> ReplyGraph<'a> {
    fn build(messages: &[ThreadMessage<'a>], order: ThreadOrder) -> ReplyGraph<'a> {
        let mut graph = ReplyGraph::default();
        let mut sorted: Vec<(usize, &ThreadMessage<'a>)> = messages.iter().enumerate().collect();
        sorted.sort_by_key(|(index, message)| (message.date, *index));
        let duplicates = find_duplicates(&sorted);
        if order == ThreadOrder::Descending {
            sorted.sort_by_key(|(index, message)| (std::cmp::Reverse(message.date), *index));
        }
        for (index, message) in &sorted {
            if !duplicates.get(*index).is_some_and(|is_duplicate| *is_duplicate) {
                graph.add_message(*index, message);
            }
        }
        for (index, message) in sorted {
            if duplicates.get(index).is_some_and(|is_duplicate| *is_duplicate) {
                let parent = graph.number_of(message.message_id);
                let node = graph.add_node(Some(index));
                graph.link(parent, node);
                if let Some(node) = graph.nodes.get_mut(node) {
                    node.is_duplicate = true;
                }
            }
        }
        graph
    }

    fn add_message(&mut self, index: usize, message: &ThreadMessage<'a>) {
        let node = match message.message_id {
            "" => self.add_node(None),
            id => self.number_of(id),
        };
        if let Some(node) = self.nodes.get_mut(node) {
            node.message = Some(index);
        }
        let mut parent = None;
        for reference in message.references.iter().filter(|reference| !reference.is_empty()) {
            let child = self.number_of(reference);
            if let Some(parent) = parent {
                self.link(parent, child);
            }
            parent = Some(child);
        }
        if let Some(parent) = parent {
            self.link(parent, node);
        }
    }

    fn add_node(&mut self, message: Option<usize>) -> usize {
        let representative = self.nodes.len();
        self.nodes.push(ReplyNode { message, parent: None, representative, is_duplicate: false });
        representative
    }

    /// Returns the number of the node of an id, which is new if the id is.
    fn number_of(&mut self, id: &'a str) -> usize {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.add_node(None);
        self.numbers.insert(id, number);
        number
    }

    /// Makes a node the child of another, unless it has a parent, or both are in the same tree.
    fn link(&mut self, parent: usize, child: usize) {
        let (above, below) = (self.find_representative(parent), self.find_representative(child));
        if above == below {
            return;
        }
        if let Some(node) = self.nodes.get_mut(child).filter(|node| node.parent.is_none()) {
            node.parent = Some(parent);
            if let Some(node) = self.nodes.get_mut(below) {
                node.representative = above;
            }
        }
    }

    /// Returns the representative of the tree of a node, and shortens the way to it.
    fn find_representative(&mut self, node: usize) -> usize {
        let mut node = node;
        loop {
            let next = self.representative_of(node);
            if next == node {
                return node;
            }
            let second = self.representative_of(next);
            if let Some(node) = self.nodes.get_mut(node) {
                node.representative = second;
            }
            node = second;
        }
    }

    fn representative_of(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(node, |node| node.representative)
    }

    fn message_of(&self, node: usize) -> Option<usize> {
        self.nodes.get(node)?.message
    }

    /// Returns the nodes with each parent in front of its children.
    fn list_from_roots(&self) -> Vec<usize> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut open = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            match node.parent.and_then(|parent| children.get_mut(parent)) {
                Some(siblings) => siblings.push(number),
                None => open.push(number),
            }
        }
        let mut list = Vec::with_capacity(self.nodes.len());
        while let Some(number) = open.pop() {
            list.push(number);
            open.extend(children.get(number).into_iter().flatten());
        }
        list
    }
}

/// Returns for each message whether an earlier one in the list has the same id.
fn find_duplicates(sorted: &[(usize, &ThreadMessage<'_>)]) -> Vec<bool> {
    let mut first_ids: HashMap<&str, usize> = HashMap::new();
    let mut duplicates = vec![false; sorted.len()];
    for (index, message) in sorted.iter().filter(|(_, message)| !message.message_id.is_empty()) {
        let first = first_ids.entry(message.message_id).or_insert(*index);
        if let Some(is_duplicate) = duplicates.get_mut(*index) {
            *is_duplicate = *first != *index;
        }
    }
    duplicates
}

/// A node that is shown, or an empty root.
#[derive(Debug, Clone, Default)]
struct ForestNode {
    children: Vec<usize>,
    has_parent: bool,
    /// The time that the node is sorted by.
    date: i64,
}

/// The graph without the empty nodes that are not needed, sorted.
struct ThreadForest {
    /// By the number of the node in the graph.
    nodes: Vec<ForestNode>,
    roots: Vec<usize>,
}

impl ThreadForest {
    fn build(
        messages: &[ThreadMessage<'_>],
        graph: &ReplyGraph<'_>,
        order: ThreadOrder,
    ) -> ThreadForest {
        let list = graph.list_from_roots();
        let mut forest =
            ThreadForest { nodes: vec![ForestNode::default(); graph.nodes.len()], roots: vec![] };
        forest.add_children(graph, &list);
        forest.choose_roots(graph, &list);
        let date = |message: usize| messages.get(message).map_or(i64::MIN, |message| message.date);
        for number in list.into_iter().rev() {
            let own_date = graph.message_of(number).map_or(i64::MIN, date);
            let mut children = match forest.nodes.get_mut(number) {
                Some(node) => std::mem::take(&mut node.children),
                None => continue,
            };
            children.sort_by_key(|child| forest.sort_key(graph, *child));
            // A reply is later than what it replies to, even if its clock was wrong.
            let newest = children.last().map_or(own_date, |child| forest.sort_key(graph, *child).0);
            if let Some(node) = forest.nodes.get_mut(number) {
                node.children = children;
                node.date = newest;
            }
        }
        let mut roots = std::mem::take(&mut forest.roots);
        roots.sort_by_key(|root| {
            let (date, index) = forest.sort_key(graph, *root);
            let (newest_first, oldest_first) = match order {
                ThreadOrder::Ascending => (None, Some(date)),
                ThreadOrder::Descending => (Some(std::cmp::Reverse(date)), None),
            };
            (newest_first, oldest_first, index)
        });
        ThreadForest { roots, ..forest }
    }

    /// Makes each message a child of the next message above, or of the empty root.
    fn add_children(&mut self, graph: &ReplyGraph<'_>, list: &[usize]) {
        // For each node the node that its children belong to.
        let mut anchors: Vec<usize> = (0..graph.nodes.len()).collect();
        for number in list {
            let Some(node) = graph.nodes.get(*number) else { continue };
            let Some(parent) = node.parent else { continue };
            let anchor = anchors.get(parent).copied().unwrap_or(parent);
            if node.message.is_none() {
                if let Some(own) = anchors.get_mut(*number) {
                    *own = anchor;
                }
                continue;
            }
            if let Some(above) = self.nodes.get_mut(anchor) {
                above.children.push(*number);
            }
            if let Some(own) = self.nodes.get_mut(*number) {
                own.has_parent = true;
            }
        }
    }

    /// Collects the roots. An empty root with a single child is replaced by the child.
    fn choose_roots(&mut self, graph: &ReplyGraph<'_>, list: &[usize]) {
        for number in list {
            let is_root = graph.nodes.get(*number).is_some_and(|node| node.parent.is_none());
            let Some(node) = self.nodes.get_mut(*number).filter(|_| is_root) else { continue };
            if graph.message_of(*number).is_some() || node.children.len() > 1 {
                self.roots.push(*number);
            } else if let Some(child) = node.children.pop() {
                self.roots.push(child);
                if let Some(child) = self.nodes.get_mut(child) {
                    child.has_parent = false;
                }
            }
        }
    }

    /// Returns the date of a node, and the index of a message to tell equal dates apart.
    fn sort_key(&self, graph: &ReplyGraph<'_>, number: usize) -> (i64, usize) {
        let node = self.nodes.get(number);
        let first_child = node.and_then(|node| node.children.first().copied());
        let message = graph.message_of(number);
        let message = message.or_else(|| graph.message_of(first_child?));
        (node.map_or(i64::MIN, |node| node.date), message.unwrap_or(usize::MAX))
    }

    /// Returns the rows in the order of the list.
    fn rows(&self, messages: &[ThreadMessage<'_>], graph: &ReplyGraph<'_>) -> Vec<ThreadRow> {
        let mut rows = Vec::with_capacity(messages.len());
        for (thread, root) in (0_u32..).zip(&self.roots) {
            let mut previous_subject = "";
            let root_row = OpenNode {
                number: *root,
                level: 0,
                position: thread,
                first_child: false,
                last_child: false,
            };
            let mut open = vec![root_row];
            while let Some(next) = open.pop() {
                if let Some(row) = self.row_of(&next, thread, graph) {
                    let subject = messages.get(row.index).map_or("", |message| message.subject);
                    let thread_subject = row.root
                        || previous_subject.is_empty()
                        || base_subject(previous_subject) != base_subject(subject);
                    previous_subject = subject;
                    rows.push(ThreadRow { thread_subject, ..row });
                }
                let children = self.nodes.get(next.number).map_or(&[][..], |node| &node.children);
                let numbered = (0_u32..).zip(children).map(|(position, number)| OpenNode {
                    number: *number,
                    level: next.level + 1,
                    position,
                    first_child: position == 0,
                    last_child: children.last() == Some(number),
                });
                let start = open.len();
                open.extend(numbered);
                if let Some(last_children) = open.get_mut(start..) {
                    last_children.reverse();
                }
            }
        }
        rows
    }

    /// Returns the row of a node, without its subject; `None` for an empty root.
    fn row_of(&self, node: &OpenNode, thread: u32, graph: &ReplyGraph<'_>) -> Option<ThreadRow> {
        let index = graph.message_of(node.number)?;
        let shown = self.nodes.get(node.number)?;
        let reply = graph.nodes.get(node.number)?;
        // Only an empty root has children that are no replies to a message.
        let is_below_empty_root = node.level == 1
            && self
                .roots
                .get(usize::try_from(thread).ok()?)
                .is_some_and(|root| graph.message_of(*root).is_none());
        Some(ThreadRow {
            index,
            level: node.level,
            thread,
            position: node.position,
            root: !shown.has_parent,
            first_child: node.first_child,
            last_child: node.last_child,
            has_child: !shown.children.is_empty(),
            orphan: is_below_empty_root,
            duplicate: reply.is_duplicate,
            thread_subject: false,
        })
    }
}

/// A node whose row is not yet written.
struct OpenNode {
    number: usize,
    level: usize,
    position: u32,
    first_child: bool,
    last_child: bool,
}

/// Returns the part of a subject after the last colon, as prefixes such as `Re:` may be in any
/// language.
fn base_subject(subject: &str) -> &str {
    match subject.rsplit_once(':') {
        Some((_, base)) if !base.trim_start_matches(' ').is_empty() => base.trim_start_matches(' '),
        Some((_, base)) => base,
        None => subject,
    }
}
