//! The snippets of `larder find --snippets`, which are read from the files of the listed messages.

use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::mail_store::{MailRoots, MessageOpener};
use crate::output::{FAINT_STYLE, colour_style, sanitize_line};
use larder_query::{ListedMessage, MailQuery, Snippet, SnippetFinder};
use larder_store::Reader;
use serde_json::{Value, json};

/// The spaces in front of a snippet.
const INDENT: &str = "    ";
/// The colour of hits: yellow.
const HIT_COLOUR: u8 = 3;

/// Reads the snippets of messages, a file at a time.
pub(super) struct SnippetReader<'r> {
    finder: SnippetFinder,
    reader: &'r Reader,
    opener: MessageOpener<'r>,
}

impl<'r> SnippetReader<'r> {
    pub(super) fn new(
        context: &CommandContext,
        query: &MailQuery,
        reader: &'r Reader,
        roots: &'r MailRoots,
    ) -> SnippetReader<'r> {
        let mut finder = SnippetFinder::new(query);
        if let Some(width) = context.out.line_width() {
            finder = finder.with_length(width.saturating_sub(INDENT.len() + 2));
        }
        SnippetReader { finder, reader, opener: MessageOpener::new(roots) }
    }

    /// Returns the snippet of a message. A file that cannot be read is named, and has none.
    pub(super) fn read(&self, context: &CommandContext, one: &ListedMessage) -> Option<Snippet> {
        let find = || -> Result<Snippet, CommandFailure> {
            let file = self.opener.open(self.reader, one.message.row)?;
            Ok(self.finder.find(&file.parse()?))
        };
        find().map_err(|failure| failure.print_as_warning(context.quiet)).ok()
    }
}

/// Returns a snippet as JSON: its text, and its hits as numbers of characters.
pub(super) fn snippet_json(snippet: &Snippet) -> Value {
    let characters =
        |end: usize| snippet.text.get(..end).map_or(0, |before| before.chars().count());
    let hits = snippet.hits.iter().map(|hit| json!([characters(hit.start), characters(hit.end)]));
    json!({ "text": snippet.text, "hits": hits.collect::<Vec<_>>() })
}

/// Returns the line of a snippet, with its hits in colour.
pub(super) fn snippet_line(snippet: &Snippet) -> String {
    let style = colour_style(HIT_COLOUR).bold();
    let mut line = INDENT.to_string();
    let mut at = 0;
    let part =
        |start: usize, end: usize| sanitize_line(snippet.text.get(start..end).unwrap_or_default());
    for hit in &snippet.hits {
        line.push_str(&format!("{FAINT_STYLE}{}{FAINT_STYLE:#}", part(at, hit.start)));
        line.push_str(&format!("{style}{}{style:#}", part(hit.start, hit.end)));
        at = hit.end;
    }
    line.push_str(&format!("{FAINT_STYLE}{}{FAINT_STYLE:#}", part(at, snippet.text.len())));
    line
}
