//! HTML as plain text, for mail without a plain text part.
//!
//! Not a browser: elements become line breaks, list marks and column gaps, as far as words and
//! paragraphs need them. Separate from `message` because descriptions of events are HTML, too.

use mail_parser::decoders::html::add_html_token;

/// Elements whose content is not text. Their end is found even if it is written otherwise.
const SKIPPED_ELEMENTS: &[&str] = &["head", "style", "script", "template", "title"];
/// Elements that begin a line.
const LINE_ELEMENTS: &[&str] = &[
    "address",
    "article",
    "aside",
    "br",
    "center",
    "dd",
    "div",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "option",
    "section",
    "tr",
];
/// Elements that stand in a paragraph of their own.
const PARAGRAPH_ELEMENTS: &[&str] =
    &["blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"];
/// The longest name of an element above, and of a character reference.
const MAX_ELEMENT_BYTES: usize = 12;
pub(crate) const MAX_REFERENCE_BYTES: usize = 33;

/// Returns the text of HTML, with at most one empty line between paragraphs. Quotations
/// (`blockquote`) get `> ` in front of each line, as in plain text.
#[must_use]
pub fn html_to_text(html: &str) -> String {
    let mut text = TextBuilder::default();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, marked) = rest.split_at(at);
        text.push_words(before);
        rest = if marked.starts_with('&') {
            text.push_reference(marked)
        } else {
            text.pass_markup(marked)
        };
    }
    text.push_words(rest);
    text.finish()
}

/// A name in a tag, and whether the tag ends the element.
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_end: bool,
}

impl<'a> Tag<'a> {
    /// Parses the text between angle brackets.
    pub(crate) fn parse(inside: &'a str) -> Tag<'a> {
        let (inside, is_end) = match inside.strip_prefix('/') {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inside.len());
        Tag { name: inside.get(..end).unwrap_or_default(), is_end }
    }

    pub(crate) fn is_one_of(&self, names: &[&str]) -> bool {
        self.name.len() <= MAX_ELEMENT_BYTES
            && names.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }
}

/// Returns the text after a tag, comment or declaration, and what it contains; `None` if `marked`,
/// which begins with `<`, is none.
pub(crate) fn split_markup(marked: &str) -> Option<(&str, &str)> {
    let inside = marked.get(1..)?;
    if let Some(comment) = inside.strip_prefix("!--") {
        let rest = comment.find("-->").and_then(|end| comment.get(end + 3..));
        return Some(("", rest.unwrap_or_default()));
    }
    inside.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)).then_some(())?;
    // A bracket in a quoted value does not end the tag.
    let (mut quote, mut last) = (None, ' ');
    for (at, c) in inside.char_indices() {
        match (quote, c) {
            (None, '>') => return Some((inside.get(..at)?, inside.get(at + 1..)?)),
            (None, '"' | '\'') if last == '=' => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        if !c.is_ascii_whitespace() {
            last = c;
        }
    }
    // The quotation mark was text, or the tag is cut off.
    Some(inside.split_once('>').unwrap_or((inside, "")))
}

/// Text that grows by words and breaks.
#[derive(Debug, Default)]
struct TextBuilder {
    text: String,
    /// White space is due before the next word.
    has_gap: bool,
    /// Line breaks are due before the next word: 1 begins a line, 2 a paragraph.
    breaks: u8,
    quote_depth: usize,
    /// The depth of quotation of the last line.
    line_depth: usize,
    preformatted_depth: usize,
}

impl TextBuilder {
    /// Adds text without markup.
    fn push_words(&mut self, text: &str) {
        if self.preformatted_depth > 0 {
            for (at, line) in text.split('\n').enumerate() {
                if at > 0 {
                    self.breaks += 1;
                }
                if !line.trim_end().is_empty() {
                    self.has_gap = false;
                    self.push(line.trim_end_matches('\r'));
                }
            }
            return;
        }
        let is_space = |c: char| c.is_ascii_whitespace() || c == '\u{a0}';
        self.has_gap |= text.starts_with(is_space);
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            self.push(word);
            self.has_gap = true;
        }
        if !text.is_empty() {
            self.has_gap = text.ends_with(is_space);
        }
    }

    /// Adds a word after the breaks and the gap that are due.
    fn push(&mut self, word: &str) {
        if self.text.is_empty() {
            self.begin_line(self.quote_depth);
        } else if self.breaks > 0 {
            self.text.truncate(self.text.trim_end_matches(' ').len());
            self.text.push('\n');
            if self.breaks > 1 {
                self.begin_line(self.quote_depth.min(self.line_depth));
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
            }
            self.begin_line(self.quote_depth);
        } else if self.has_gap && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        (self.breaks, self.has_gap) = (0, false);
        self.text.push_str(word);
    }

    fn begin_line(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n("> ", depth));
        self.line_depth = depth;
    }

    /// Adds the character of a reference. Returns the text after it.
    fn push_reference<'a>(&mut self, marked: &'a str) -> &'a str {
        let end = marked.bytes().take(MAX_REFERENCE_BYTES).position(|byte| byte == b';');
        let reference = end.and_then(|end| marked.get(..=end)).filter(|name| name.is_ascii());
        let Some(reference) = reference else {
            self.push("&");
            return marked.get(1..).unwrap_or_default();
        };
        let mut character = String::new();
        add_html_token(&mut character, reference.as_bytes(), false);
        // A space by reference is a gap like any other.
        self.push_words(&character);
        marked.get(reference.len()..).unwrap_or_default()
    }

    /// Applies a tag. Returns the text after it, or after the content that is no text.
    fn pass_markup<'a>(&mut self, marked: &'a str) -> &'a str {
        let Some((inside, rest)) = split_markup(marked) else {
            self.push("<");
            return marked.get(1..).unwrap_or_default();
        };
        let tag = Tag::parse(inside);
        if tag.is_one_of(SKIPPED_ELEMENTS) {
            return if tag.is_end { rest } else { skip_element(rest, tag.name) };
        }
        if tag.is_one_of(PARAGRAPH_ELEMENTS) {
            self.breaks = self.breaks.max(2);
            self.change_depth(&tag);
        } else if tag.is_one_of(LINE_ELEMENTS) {
            let is_second_break = tag.is_one_of(&["br"]) && self.breaks > 0;
            self.breaks = if is_second_break { 2 } else { self.breaks.max(1) };
            if tag.is_one_of(&["li"]) && !tag.is_end {
                self.push("- ");
            }
        } else if tag.is_one_of(&["td", "th"]) {
            self.has_gap = true;
        }
        rest
    }

    fn change_depth(&mut self, tag: &Tag<'_>) {
        let depth = match tag {
            _ if tag.is_one_of(&["blockquote"]) => &mut self.quote_depth,
            _ if tag.is_one_of(&["pre"]) => &mut self.preformatted_depth,
            _ => return,
        };
        *depth =
            if tag.is_end { depth.saturating_sub(1) } else { (*depth + 1).min(MAX_QUOTE_DEPTH) };
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }
}

/// The deepest quotation that is marked.
const MAX_QUOTE_DEPTH: usize = 20;

/// Returns the text after the end tag of an element. A `head` ends where the `body` begins, too.
pub(crate) fn skip_element<'a>(html: &'a str, name: &str) -> &'a str {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let marked = rest.get(at..).unwrap_or_default();
        let tag = Tag::parse(marked.get(1..).unwrap_or_default());
        if tag.is_end && tag.is_one_of(&[name]) {
            return split_markup(marked).map_or("", |(_, rest)| rest);
        }
        if name.eq_ignore_ascii_case("head") && !tag.is_end && tag.is_one_of(&["body"]) {
            return marked;
        }
        rest = marked.get(1..).unwrap_or_default();
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::html_to_text;

    #[test]
    fn words_and_paragraphs() {
        for (html, text) in [
            ("", ""),
            ("<p>one</p><p>two</p>", "one\n\ntwo\n"),
            ("<div>a</div><div>b</div>", "a\nb\n"),
            ("a<br>b<br><br>c", "a\nb\n\nc\n"),
            ("f<b>o</b>o  <i>bar</i>\n baz", "foo bar baz\n"),
            ("<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter\n"),
            ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3\n"),
            ("so:<blockquote>one<br>two</blockquote>yes", "so:\n\n> one\n> two\n\nyes\n"),
            ("<pre>a  b\n\nc</pre>", "a  b\n\nc\n"),
        ] {
            assert_eq!(html_to_text(html), text, "{html}");
        }
    }

    #[test]
    fn markup_is_no_text() {
        for (html, text) in [
            ("<head><title>T</title><style>p > b {}</style></head>x", "x\n"),
            ("<head><meta x><body>x", "x\n"),
            ("a<!-- <b> -- > -->b", "ab\n"),
            ("<a href=\"x>y\" title='a\"b'>link</a>", "link\n"),
            ("<script>if (a < b) alert('</p>')</SCRIPT >x", "x\n"),
            ("<!DOCTYPE html><?xml?>x</no", "x\n"),
            ("1 < 2 & 3 <3", "1 < 2 & 3 <3\n"),
            ("<p title=don't>kept</p>", "kept\n"),
        ] {
            assert_eq!(html_to_text(html), text, "{html}");
        }
    }

    #[test]
    fn references() {
        for (html, text) in [
            ("caf&eacute;s &amp; &#8364;&#x20ac;", "caf\u{e9}s & \u{20ac}\u{20ac}\n"),
            ("a&nbsp;&nbsp;b", "a b\n"),
            ("&nosuch; &; &#xffffffff;", "&nosuch; &; \u{fffd}\n"),
            ("AT&T; &lt;b&gt;", "AT&T; <b>\n"),
        ] {
            assert_eq!(html_to_text(html), text, "{html}");
        }
    }
}
