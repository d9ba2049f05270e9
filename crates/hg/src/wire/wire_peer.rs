//! A repository behind a connection.

use super::clone_bundle::{CloneBundle, parse_manifest};
use super::command::{WireCommand, decode_batch, encode_batch, join_nodes, parse_nodes};
use super::transport::Transport;
use crate::bundle::{open_bundle, parse_bookmark_keys};
use crate::object_id::Node;
use crate::peer::{BranchHeads, Peer, PeerRefs, RecommendedBundle};
use crate::percent;
use crate::revision::{ChangeError, ChangeSource};

/// The most nodes in one question about known changesets. Servers in Python accept about 100
/// headers, and a slow one must not be asked for much at once.
const KNOWN_SAMPLE: usize = 100;

/// What this program reads of bundle2, as servers are told it.
const BUNDLE2_CAPABILITIES: &[u8] =
    b"HG20\nchangegroup=01,02,03\nerror=abort,unsupportedcontent,pushraced,pushkey";

/// A repository that a server has.
pub struct WirePeer {
    transport: Box<dyn Transport>,
    /// The heads, once they were read.
    heads: Option<Vec<Node>>,
}

impl WirePeer {
    pub(super) fn new(transport: Box<dyn Transport>) -> WirePeer {
        WirePeer { transport, heads: None }
    }

    fn has(&self, capability: &str) -> bool {
        self.transport.capabilities().has(capability)
    }

    /// Refuses servers without a capability.
    fn require(&self, capability: &str) -> Result<(), ChangeError> {
        if self.has(capability) {
            return Ok(());
        }
        Err(ChangeError::new_unsupported(format!("a server without the capability {capability}")))
    }

    /// Sends commands together if the server allows that, and returns their answers.
    fn call_all(&mut self, commands: &[WireCommand]) -> Result<Vec<Vec<u8>>, ChangeError> {
        if !self.has("batch") {
            return commands.iter().map(|command| self.transport.call(command)).collect();
        }
        let arguments = vec![("cmds", encode_batch(commands))];
        let batch = WireCommand::with_options("batch", arguments, Vec::new());
        let answers = decode_batch(&self.transport.call(&batch)?);
        if answers.len() != commands.len() {
            let (found, expected) = (answers.len(), commands.len());
            return Err(ChangeError::new_damaged(format!(
                "{found} answers to {expected} commands"
            )));
        }
        Ok(answers)
    }

    /// Reads the manifest of bundles for clones, and returns those that can be read here in the
    /// order of the server.
    fn clone_bundles(&mut self) -> Result<Vec<CloneBundle>, ChangeError> {
        if !self.has("clonebundles") {
            return Ok(Vec::new());
        }
        Ok(parse_manifest(&self.transport.call(&WireCommand::new("clonebundles", Vec::new()))?))
    }

    /// Makes the command that asks for changes.
    fn getbundle(&self, heads: &[Node], common: &[Node]) -> WireCommand {
        let limit = self.transport.node_limit();
        let mut options = Vec::new();
        // A server sends all of its heads if none are named. With more heads than a request can
        // have, that is more than was asked for.
        let sorted = |nodes: &[Node]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        };
        let is_all = self.heads.as_ref().is_some_and(|all| sorted(all) == sorted(heads));
        let heads = if is_all || heads.len() > limit { &[] } else { heads };
        if !heads.is_empty() {
            options.push(("heads", join_nodes(heads)));
        }
        // Fewer common nodes only make the answer larger.
        let count = common.len().min(limit - heads.len());
        let common = common.get(common.len() - count..).unwrap_or(common);
        if !common.is_empty() {
            options.push(("common", join_nodes(common)));
        }
        if self.transport.capabilities().has_bundle2() {
            let mut capabilities = b"HG20,bundle2=".to_vec();
            capabilities.extend(percent::encode(BUNDLE2_CAPABILITIES));
            options.push(("bundlecaps", capabilities));
            options.push(("cg", b"1".to_vec()));
        }
        WireCommand::with_options("getbundle", Vec::new(), options)
    }
}

/// Parses lines of a percent-encoded branch name and its heads.
fn parse_branches(text: &[u8]) -> Result<Vec<BranchHeads>, ChangeError> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parse = |line: &[u8]| {
        let position = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (name, nodes) = line.split_at(position);
        Ok((name.to_vec(), parse_nodes(nodes)?))
    };
    lines.map(parse).collect()
}

/// Returns the words of a server that refused a command.
fn refusal(message: &[u8]) -> ChangeError {
    let message = String::from_utf8_lossy(message).trim().to_owned();
    ChangeError::Aborted { message }
}

impl Peer for WirePeer {
    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        let namespace = vec![("namespace", b"bookmarks".to_vec())];
        let mut commands = vec![WireCommand::new("heads", Vec::new())];
        let has_branches = self.has("branchmap");
        let has_bookmarks = self.has("pushkey");
        if has_branches {
            commands.push(WireCommand::new("branchmap", Vec::new()));
        }
        if has_bookmarks {
            commands.push(WireCommand::new("listkeys", namespace));
        }
        let mut answers = self.call_all(&commands)?.into_iter();
        let mut heads = parse_nodes(&answers.next().unwrap_or_default())?;
        // An empty repository has the null node as its head.
        heads.retain(|head| !head.is_null());
        self.heads = Some(heads.clone());
        let branches = if has_branches { answers.next() } else { None };
        let branches = parse_branches(&branches.unwrap_or_default())?;
        let bookmarks = if has_bookmarks { answers.next() } else { None };
        let bookmarks = parse_bookmark_keys(&bookmarks.unwrap_or_default());
        Ok(PeerRefs { branches, heads, bookmarks })
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        self.require("known")?;
        let mut known = Vec::with_capacity(nodes.len());
        let sample_len = KNOWN_SAMPLE.min(self.transport.node_limit()).max(1);
        for sample in nodes.chunks(sample_len) {
            let arguments = vec![("nodes", join_nodes(sample))];
            let command = WireCommand::with_options("known", arguments, Vec::new());
            let answer = self.transport.call(&command)?;
            let answer = answer.trim_ascii();
            if answer.len() != sample.len() || answer.iter().any(|flag| !b"01".contains(flag)) {
                return Err(ChangeError::new_damaged("an answer about known changesets"));
            }
            known.extend(answer.iter().map(|flag| *flag == b'1'));
        }
        Ok(known)
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        self.require("lookup")?;
        let command = WireCommand::new("lookup", vec![("key", name.to_vec())]);
        let answer = self.transport.call(&command)?;
        let found = answer.strip_prefix(b"1 ");
        let node = found.and_then(|digits| Node::from_hex(digits.trim_ascii()));
        node.ok_or_else(|| refusal(answer.strip_prefix(b"0 ").unwrap_or(&answer)))
    }

    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        self.require("getbundle")?;
        let command = self.getbundle(heads, common);
        open_bundle(self.transport.stream(&command)?)
    }

    fn clone_bundle(&mut self) -> Result<Option<RecommendedBundle<'_>>, ChangeError> {
        for bundle in self.clone_bundles()? {
            if let Some(read) = self.transport.open_url(&bundle.url) {
                let source = open_bundle(read?)?;
                return Ok(Some(RecommendedBundle { url: bundle.url, source }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_parsed() {
        let node = Node([0x11; 20]);
        let text = format!("default {node} {node}\na%20b {node}");
        let expected = [(b"default".to_vec(), vec![node, node]), (b"a%20b".to_vec(), vec![node])];
        assert_eq!(parse_branches(text.as_bytes()).expect("branches"), expected);
        assert!(parse_branches(b"default 11").is_err());
    }
}
