//! Commands of the protocol, and the encodings of lists in arguments and answers.

use crate::object_id::Node;
use crate::revision::ChangeError;

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireCommand {
    pub(super) name: &'static str,
    /// The arguments that the command always has.
    pub(super) arguments: Vec<(&'static str, Vec<u8>)>,
    /// The arguments that a server may not know; `None` for commands without any.
    pub(super) options: Option<Vec<(&'static str, Vec<u8>)>>,
}

impl WireCommand {
    /// Creates a command that has no options.
    pub(super) fn new(name: &'static str, arguments: Vec<(&'static str, Vec<u8>)>) -> WireCommand {
        WireCommand { name, arguments, options: None }
    }

    /// Creates a command that may have options.
    pub(super) fn with_options(
        name: &'static str,
        arguments: Vec<(&'static str, Vec<u8>)>,
        options: Vec<(&'static str, Vec<u8>)>,
    ) -> WireCommand {
        WireCommand { name, arguments, options: Some(options) }
    }

    /// Returns all arguments, sorted by name as Mercurial sends them.
    pub(super) fn all_arguments(&self) -> Vec<(&'static str, &[u8])> {
        let options = self.options.iter().flatten();
        let all = self.arguments.iter().chain(options);
        let mut all: Vec<_> = all.map(|(name, value)| (*name, value.as_slice())).collect();
        all.sort_unstable();
        all
    }
}

/// Writes nodes as digits with spaces between.
pub(super) fn join_nodes(nodes: &[Node]) -> Vec<u8> {
    let mut text = Vec::with_capacity(nodes.len() * 41);
    for node in nodes {
        if !text.is_empty() {
            text.push(b' ');
        }
        text.extend(node.to_hex());
    }
    text
}

/// Parses nodes as digits with white space between.
pub(super) fn parse_nodes(text: &[u8]) -> Result<Vec<Node>, ChangeError> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let parse = |word: &[u8]| {
        let shown = word.escape_ascii();
        Node::from_hex(word).ok_or_else(|| ChangeError::new_damaged(format!("not a node: {shown}")))
    };
    words.map(parse).collect()
}

/// The bytes that separate commands of a batch, and their escapes.
const BATCH_ESCAPES: [(u8, u8); 4] = [(b':', b'c'), (b',', b'o'), (b';', b's'), (b'=', b'e')];

/// Writes commands as the argument of `batch`.
pub(super) fn encode_batch(commands: &[WireCommand]) -> Vec<u8> {
    let mut text = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        if index > 0 {
            text.push(b';');
        }
        text.extend(command.name.as_bytes());
        text.push(b' ');
        for (index, (name, value)) in command.all_arguments().into_iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            escape_batch(name.as_bytes(), &mut text);
            text.push(b'=');
            escape_batch(value, &mut text);
        }
    }
    text
}

fn escape_batch(value: &[u8], text: &mut Vec<u8>) {
    for byte in value {
        match BATCH_ESCAPES.iter().find(|(plain, _)| plain == byte) {
            Some((_, escape)) => text.extend([b':', *escape]),
            None => text.push(*byte),
        }
    }
}

/// Splits the answer of `batch` into the answers of the commands.
pub(super) fn decode_batch(answer: &[u8]) -> Vec<Vec<u8>> {
    answer.split(|byte| *byte == b';').map(unescape_batch).collect()
}

fn unescape_batch(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b':' {
            text.push(byte);
            continue;
        }
        let escape = bytes.next();
        let plain = BATCH_ESCAPES.iter().find(|(_, found)| Some(*found) == escape);
        match (plain, escape) {
            (Some((plain, _)), _) => text.push(*plain),
            (None, escape) => text.extend([b':'].into_iter().chain(escape)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_escaped() {
        let commands = [
            WireCommand::new("heads", Vec::new()),
            WireCommand::new("lookup", vec![("key", b"a;b=c,d:e".to_vec())]),
        ];
        assert_eq!(encode_batch(&commands), b"heads ;lookup key=a:sb:ec:od:ce");
        let answer = b"00\n;a:sb:ec:od:ce:x:";
        assert_eq!(decode_batch(answer), [b"00\n".to_vec(), b"a;b=c,d:e:x:".to_vec()]);
    }

    #[test]
    fn nodes_are_written_and_read() {
        let nodes = [Node([1; 20]), Node([0xab; 20])];
        let text = join_nodes(&nodes);
        assert_eq!(parse_nodes(&text).expect("nodes"), nodes);
        assert_eq!(parse_nodes(b"\n").expect("no nodes"), []);
        assert!(parse_nodes(b"12").is_err());
    }
}
