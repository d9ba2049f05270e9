//! HTML without anything that runs, loads or leads astray: for mail that is shown as HTML.
//!
//! The result is written anew from a list of elements and attributes; all other markup is left
//! out, and every other angle bracket is escaped. So it does not matter whether a browser would
//! have read the source in another way. Separate from `html_text`, which keeps no markup at all.

use crate::html_text::{MAX_REFERENCE_BYTES, Tag, skip_element, split_markup};
use mail_parser::decoders::html::add_html_token;

/// Elements that stay.
#[rustfmt::skip] // A table is read by its columns.
const KEPT_ELEMENTS: &[&str] = &[
    "a", "abbr", "address", "article", "aside", "b", "bdi", "bdo", "big", "blockquote", "br", "caption",
    "center", "cite", "code", "col", "colgroup", "dd", "del", "dfn", "div", "dl", "dt", "em",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "ins",
    "kbd", "li", "main", "mark", "ol", "p", "pre", "q", "s", "samp", "section", "small", "span",
    "strike", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "tt", "u",
    "ul", "var", "wbr",
];
/// Elements without content.
const VOID_ELEMENTS: &[&str] = &["br", "col", "hr", "wbr"];
/// Elements that are left out with their content.
#[rustfmt::skip]
const REMOVED_ELEMENTS: &[&str] = &[
    "applet", "audio", "canvas", "embed", "frameset", "head", "iframe", "math", "noembed", "noframes",
    "noscript", "object", "plaintext", "script", "select", "style", "svg", "template", "textarea",
    "title", "video", "xmp",
];
/// Attributes that stay, beside links.
const KEPT_ATTRIBUTES: &[&str] = &["align", "colspan", "dir", "lang", "rowspan", "start", "valign"];
/// The beginnings of addresses that links may have.
const KEPT_SCHEMES: &[&str] = &["http://", "https://", "mailto:"];
/// The most open elements.
const MAX_OPEN_ELEMENTS: usize = 200;

/// Returns HTML that runs no script and loads nothing: links stay, pictures become their texts.
/// Every element that it opens is closed.
#[must_use]
pub fn sanitize_html(html: &str) -> String {
    let mut writer = SafeWriter::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, marked) = rest.split_at(at);
        escape_text(&mut writer.output, before);
        rest = writer.pass_markup(marked);
    }
    escape_text(&mut writer.output, rest);
    while let Some(name) = writer.open.pop() {
        writer.write_end(name);
    }
    writer.output
}

/// Escapes plain text for HTML.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in shown_chars(text) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Adds text of HTML, whose character references stay.
fn escape_text(output: &mut String, text: &str) {
    for c in shown_chars(text) {
        match c {
            '<' => output.push_str("&lt;"),
            '>' => output.push_str("&gt;"),
            c => output.push(c),
        }
    }
}

/// Returns the characters without controls, which browsers ignore, but a terminal that the page is
/// printed on obeys.
fn shown_chars(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
}

/// HTML that is written anew.
#[derive(Debug, Default)]
struct SafeWriter {
    output: String,
    /// The names of the open elements, the innermost last.
    open: Vec<&'static str>,
}

impl SafeWriter {
    /// Writes a tag, if it stays. Returns the text after it, or after what is left out with it.
    fn pass_markup<'a>(&mut self, marked: &'a str) -> &'a str {
        let Some((inside, rest)) = split_markup(marked) else {
            self.output.push_str("&lt;");
            return marked.get(1..).unwrap_or_default();
        };
        let tag = Tag::parse(inside);
        if tag.is_one_of(REMOVED_ELEMENTS) {
            return if tag.is_end { rest } else { skip_element(rest, tag.name) };
        }
        if tag.is_one_of(&["img"]) && !tag.is_end {
            self.write_picture(inside);
            return rest;
        }
        let kept = KEPT_ELEMENTS.iter().find(|name| name.eq_ignore_ascii_case(tag.name));
        let Some(name) = kept.copied() else { return rest };
        match tag.is_end {
            true => self.close(name),
            false => self.write_start(name, inside),
        }
        rest
    }

    fn write_start(&mut self, name: &'static str, inside: &str) {
        let is_void = VOID_ELEMENTS.contains(&name);
        if !is_void {
            if self.open.len() >= MAX_OPEN_ELEMENTS {
                return;
            }
            self.open.push(name);
        }
        self.output.push('<');
        self.output.push_str(name);
        for (attribute, value) in attributes(inside) {
            let attribute = attribute.to_ascii_lowercase();
            let value = match attribute.as_str() {
                "href" if name == "a" => safe_link(&value),
                kept if KEPT_ATTRIBUTES.contains(&kept) => Some(value),
                _ => None,
            };
            if let Some(value) = value {
                let value = escape_html(&value);
                self.output.push_str(&format!(" {attribute}=\"{value}\""));
            }
        }
        if name == "a" {
            self.output.push_str(" rel=\"noreferrer noopener\"");
        }
        self.output.push('>');
    }

    fn write_end(&mut self, name: &str) {
        self.output.push_str(&format!("</{name}>"));
    }

    /// Closes an element, with those that are open in it. One that is not open is ignored.
    fn close(&mut self, name: &str) {
        let Some(place) = self.open.iter().rposition(|open| *open == name) else { return };
        for name in self.open.split_off(place).into_iter().rev() {
            self.write_end(name);
        }
    }

    /// Writes the text of a picture.
    fn write_picture(&mut self, inside: &str) {
        let text =
            attributes(inside).into_iter().find(|(name, _)| name.eq_ignore_ascii_case("alt"));
        if let Some((_, text)) = text.filter(|(_, text)| !text.trim().is_empty()) {
            self.output.push_str(&format!("[{}]", escape_html(text.trim())));
        }
    }
}

/// Returns an address that a link may have.
fn safe_link(value: &str) -> Option<String> {
    let address: String = value.chars().filter(|c| !c.is_control() && *c != ' ').collect();
    let is_kept = |scheme: &&str| {
        address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    KEPT_SCHEMES.iter().any(is_kept).then_some(address)
}

/// Returns the attributes of a tag with their values, in which character references are resolved.
fn attributes(inside: &str) -> Vec<(&str, String)> {
    let is_space = |c: char| c.is_ascii_whitespace() || c == '/';
    let mut found = Vec::new();
    let mut rest = inside.find(is_space).and_then(|at| inside.get(at..)).unwrap_or_default();
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return found;
        }
        // A sign in front of a name is part of it.
        let ends_name = |(at, c): &(usize, char)| is_space(*c) || *c == '=' && *at > 0;
        let end = rest.char_indices().find(ends_name).map_or(rest.len(), |(at, _)| at);
        let (name, after) = rest.split_at(end);
        let after_name = after.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let Some(value) = after_name.strip_prefix('=') else {
            found.push((name, String::new()));
            rest = after;
            continue;
        };
        let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => {
                let value = value.get(1..).unwrap_or_default();
                value.split_once(quote).unwrap_or((value, ""))
            }
            None => {
                let end = value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len());
                value.split_at(end)
            }
        };
        found.push((name, resolve_references(value)));
        rest = after;
    }
}

/// Replaces character references by their characters.
fn resolve_references(value: &str) -> String {
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        let (before, marked) = rest.split_at(at);
        resolved.push_str(before);
        let end = marked.bytes().take(MAX_REFERENCE_BYTES).position(|byte| byte == b';');
        let reference = end.and_then(|end| marked.get(..=end)).filter(|name| name.is_ascii());
        match reference {
            Some(reference) => add_html_token(&mut resolved, reference.as_bytes(), false),
            None => resolved.push('&'),
        }
        rest = marked.get(reference.map_or(1, str::len)..).unwrap_or_default();
    }
    resolved + rest
}

#[cfg(test)]
mod tests {
    use super::{escape_html, sanitize_html};

    #[test]
    fn only_known_markup_stays() {
        for (html, expected) in [
            ("", ""),
            ("a < b & c > d &lt;b&gt;", "a &lt; b & c &gt; d &lt;b&gt;"),
            ("<P CLASS=x style='color:red'>Hi", "<p>Hi</p>"),
            ("<b>a<i>b</b>c</i>", "<b>a<i>b</i></b>c"),
            ("</div>a<div>b</div></div>", "a<div>b</div>"),
            ("a<script>alert(1)</script>b", "ab"),
            ("a<script>alert(1)", "a"),
            ("<scr<script>ipt>x", "ipt&gt;x"),
            ("<style>p{}</style><title>t</title>x", "x"),
            ("<svg onload=alert(1)><p>x</svg>y", "y"),
            ("<p onclick=\"alert('>')\">x</p>", "<p>x</p>"),
            ("<br/><hr class=x>", "<br><hr>"),
            ("<td colspan=2 align=\"left\">", "<td colspan=\"2\" align=\"left\"></td>"),
            ("<meta http-equiv=refresh content='0;url=http://x'>x", "x"),
            ("<form action=http://x><input name=a><button>x</button></form>", "x"),
            ("<img src=http://x/y.png alt='a \"b\" <c>'>", "[a &quot;b&quot; &lt;c&gt;]"),
            ("<img src=http://x/y.png>", ""),
            (
                "<a href='HTTPS://x/?a=1&amp;b=2' target=_top>x</a>",
                "<a href=\"HTTPS://x/?a=1&amp;b=2\" rel=\"noreferrer noopener\">x</a>",
            ),
            ("<a href=javascript:alert(1)>x</a>", "<a rel=\"noreferrer noopener\">x</a>"),
            ("<a href='java&#115;cript:alert(1)'>x", "<a rel=\"noreferrer noopener\">x</a>"),
            ("<a href=' \tjava\nscript:x'>x", "<a rel=\"noreferrer noopener\">x</a>"),
            (
                "<a href='mailto:a@b\" onclick=x'>x",
                "<a href=\"mailto:a@b&quot;onclick=x\" rel=\"noreferrer noopener\">x</a>",
            ),
            ("<p align='\"><script>'>x", "<p align=\"&quot;&gt;&lt;script&gt;\">x</p>"),
            ("<!-- <b> --><!DOCTYPE html><?x?>y", "y"),
            ("a\0b<\0p>", "ab&lt;p&gt;"),
            // Of a sequence for a terminal, the text stays.
            ("\u{1b}]0;x\u{7}a\r\n\tb\u{9b}2J\u{7f}", "]0;xa\n\tb2J"),
            ("<p align='\u{1b}[2J\u{90}'>", "<p align=\"[2J\"></p>"),
            ("<img alt='\u{1b}[2J&#27;&#x9b;x'>", "[[2Jx]"),
        ] {
            assert_eq!(sanitize_html(html), expected, "{html}");
        }
        assert_eq!(escape_html("\u{1b}[2J<a>\u{9b}&\"\t\r\n"), "[2J&lt;a&gt;&amp;&quot;\t\n");
    }

    #[test]
    fn nesting_is_bounded() {
        let html = "<div>".repeat(100_000);
        assert!(sanitize_html(&html).len() < 10_000);
    }

    proptest::proptest! {
        #[test]
        fn the_result_has_only_known_tags(
            html in proptest::collection::vec(
                proptest::sample::select(&[
                    "<", ">", "script", "</", "style", "p", " ", "=", "\"", "'", "a href", "img",
                    "onload", "javascript:", "&#60;", "&lt;", "<!--", "-->", "x", "svg", "/",
                    "\u{1b}", "\u{9b}", "&#27;", "alt",
                ][..]),
                0..30,
            )
        ) {
            let safe = sanitize_html(&html.concat());
            proptest::prop_assert!(!safe.contains(['\u{1b}', '\u{9b}']), "{}", safe);
            let tags = safe.split('<').skip(1).map(|tag| tag.trim_start_matches('/'));
            for tag in tags {
                let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
                proptest::prop_assert!(["p", "a"].contains(&name.as_str()), "{}", safe);
                let inside = tag.split('>').next().unwrap_or_default();
                proptest::prop_assert!(!inside.contains("onload"), "{}", safe);
            }
        }
    }
}
