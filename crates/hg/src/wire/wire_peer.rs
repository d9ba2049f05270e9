//! A repository behind a connection.

use super::clone_bundle::parse_manifest;
use super::command::{WireCommand, decode_batch, encode_batch, join_nodes, parse_nodes};
use super::stream_use::StreamUse;
use super::transport::Transport;
use crate::bundle::{
    BundleContent, StorePart, open_bundle, open_bundle_content, parse_bookmark_keys,
};
use crate::object_id::Node;
use crate::peer::{BranchHeads, Peer, PeerRefs};
use crate::percent;
use crate::received_bytes::ReceivedBytes;
use crate::revision::{ChangeError, ChangeSource};

/// The most nodes in one question about known changesets. Servers in Python accept about 100
/// headers, and a slow one must not be asked for much at once.
const KNOWN_SAMPLE: usize = 100;

/// The parts of bundle2 that this program reads, in the form of the protocol.
const BUNDLE2_CAPABILITIES: &[u8] =
    b"HG20\nchangegroup=01,02,03\nerror=abort,unsupportedcontent,pushraced,pushkey";

/// The further parts in a request for the files of a store. A server with obsolescence markers
/// refuses to send its store to a client that does not read markers.
const STORE_CAPABILITIES: &[u8] = b"\nstream=v2\nobsmarkers=V1";

/// A repository that a server has.
pub struct WirePeer {
    transport: Box<dyn Transport>,
    /// The heads, once they were read.
    heads: Option<Vec<Node>>,
    stream_use: StreamUse,
}

impl WirePeer {
    pub(super) fn new(transport: Box<dyn Transport>) -> WirePeer {
        WirePeer { transport, heads: None, stream_use: StreamUse::default() }
    }

    /// Sets when the files of the store are taken.
    #[must_use]
    pub fn with_stream_use(mut self, stream_use: StreamUse) -> WirePeer {
        self.stream_use = stream_use;
        self
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
}

/// The arguments of one request for changes.
struct BundleRequest<'a> {
    /// The heads; none if all heads of the server are wanted.
    heads: &'a [Node],
    common: &'a [Node],
    has_bundle2: bool,
}

impl BundleRequest<'_> {
    /// Makes the command with at most `limit` nodes. With fewer common nodes the answer is only
    /// larger; without heads the server sends all of its own, which is more than was asked for.
    fn command(&self, limit: usize) -> WireCommand {
        let mut options = Vec::new();
        let heads = if self.heads.len() > limit { &[] } else { self.heads };
        if !heads.is_empty() {
            options.push(("heads", join_nodes(heads)));
        }
        let count = self.common.len().min(limit - heads.len());
        let common = self.common.get(..count).unwrap_or(self.common);
        if !common.is_empty() {
            options.push(("common", join_nodes(common)));
        }
        if self.has_bundle2 {
            options.push(("bundlecaps", bundle_capabilities(BUNDLE2_CAPABILITIES)));
            options.push(("cg", b"1".to_vec()));
        }
        WireCommand::with_options("getbundle", Vec::new(), options)
    }
}

/// Makes the argument that says what is read of bundle2.
fn bundle_capabilities(text: &[u8]) -> Vec<u8> {
    [b"HG20,bundle2=".as_slice(), &percent::encode(text)].concat()
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
        // One that is too old answers in other forms.
        self.require("getbundle")?;
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
        let bookmarks = parse_bookmark_keys(&bookmarks.unwrap_or_default())?;
        Ok(PeerRefs { branches, heads, bookmarks })
    }

    fn listed_heads(&self) -> &[Node] {
        self.heads.as_deref().unwrap_or_default()
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
        let sorted = |nodes: &[Node]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        };
        let is_all = self.heads.as_ref().is_some_and(|all| sorted(all) == sorted(heads));
        let heads = if is_all { &[] } else { heads };
        let has_bundle2 = self.transport.capabilities().has_bundle2();
        let request = BundleRequest { heads, common, has_bundle2 };
        open_bundle(self.transport.stream(&|limit| request.command(limit))?)
    }

    fn shared_metadata(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        if !self.has("cinnabarclone") {
            return Ok(None);
        }
        self.transport.call(&WireCommand::new("cinnabarclone", Vec::new())).map(Some)
    }

    fn clone_bundles(&mut self) -> Result<Vec<String>, ChangeError> {
        if !self.has("clonebundles") {
            return Ok(Vec::new());
        }
        Ok(parse_manifest(&self.transport.call(&WireCommand::new("clonebundles", Vec::new()))?))
    }

    fn open_clone_bundle(&mut self, url: &str) -> Result<Option<BundleContent<'_>>, ChangeError> {
        let read = self.transport.open_url(url).transpose()?;
        read.map(|read| open_bundle_content(read)).transpose()
    }

    fn received_bytes(&self) -> ReceivedBytes {
        self.transport.received_bytes()
    }

    fn store_files(&mut self) -> Result<Option<StorePart<'_>>, ChangeError> {
        if !self.stream_use.is_wanted(self.transport.capabilities()) {
            return Ok(None);
        }
        let capabilities = [BUNDLE2_CAPABILITIES, STORE_CAPABILITIES].concat();
        let options = vec![
            ("bundlecaps", bundle_capabilities(&capabilities)),
            ("cg", b"0".to_vec()),
            ("stream", b"1".to_vec()),
        ];
        let command = WireCommand::with_options("getbundle", Vec::new(), options);
        match open_bundle_content(self.transport.stream(&|_| command.clone())?)? {
            BundleContent::Store(part) => Ok(Some(part)),
            BundleContent::Changes { .. } => {
                let what = "changes in place of the files of the store that were asked for";
                Err(ChangeError::new_damaged(what))
            }
        }
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
