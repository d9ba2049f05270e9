//! Mail messages as an HTML page for a browser.
//!
//! The page has the HTML and the texts of a message, and those of the messages in it. It runs no
//! script and loads nothing from anywhere: the markup is sanitized, and a policy in the page
//! forbids the rest. Separate from the lists of `agenda`, which are text for a terminal.

use larder_format::message::{Message, MessageHeaders, MessagePart, PartContent, PartRole};
use larder_format::safe_html::{escape_html, sanitize_html};

/// The start of a page. The policy comes before anything of a message. It allows the style below,
/// by the SHA-256 of its text. It does not forbid browsers to look up the hosts of links, whose
/// names may be those of readers: that is a field of its own.
const PAGE_START: &str = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-LXZaFMpUZq0QreCwq/QWUEqgvPUP1dM3S4bwD10R0Jg='; \
    base-uri 'none'; form-action 'none'\">\n<meta http-equiv=\"x-dns-prefetch-control\" content=\"off\">\n\
    <meta name=\"referrer\" content=\"no-referrer\">\n";
/// The style of a page.
const PAGE_STYLE: &str = "<style>body { font-family: sans-serif; max-width: 50em; margin: 1em auto }\n\
    th { text-align: left; padding-right: 1em; font-weight: normal; color: #666 }\n\
    .text { white-space: pre-wrap; overflow-wrap: anywhere }\n\
    blockquote { border-left: 2px solid #aaa; margin-left: 0; padding-left: 1em; color: #555 }\n\
    article + article { border-top: 1px solid #aaa; margin-top: 2em }\n</style>\n";

/// The names and texts of the rows of a header.
pub type HeaderRows = Vec<(&'static str, String)>;

/// A message with the rows of its header.
#[derive(Debug)]
pub struct MessageArticle<'m> {
    /// The message.
    pub message: &'m Message,
    /// The rows above it.
    pub rows: HeaderRows,
    /// The rows of each message in it, in their order.
    pub inner_rows: Vec<HeaderRows>,
}

/// Returns an article of the page.
#[must_use]
pub fn format_message_article(article: &MessageArticle<'_>) -> String {
    let message = article.message;
    let mut html = format!("<article>\n<h1>{}</h1>\n", escape_html(title_of(&message.headers)));
    add_rows(&mut html, &article.rows);
    let mut inner_rows = article.inner_rows.iter();
    for (part, is_shown) in message.parts.iter().zip(shown_parts(&message.parts)) {
        match &part.content {
            PartContent::Message(headers) => {
                let rows = inner_rows.next();
                if is_shown {
                    let title = escape_html(title_of(headers));
                    html.push_str(&format!("<h2>Message: {title}</h2>\n"));
                    add_rows(&mut html, rows.map_or(&[], Vec::as_slice));
                }
            }
            PartContent::Text(text) if is_shown => {
                if part.is_report() {
                    html.push_str(&format!("<h2>{}</h2>\n", escape_html(&part.media_type)));
                }
                let text = escape_html(text.trim_end());
                html.push_str(&format!("<div class=\"text\">{text}</div>\n"));
            }
            PartContent::Html(text) if is_shown => {
                html.push_str(&format!("<div>{}</div>\n", sanitize_html(text)));
            }
            _ => {}
        }
    }
    html + "</article>\n"
}

fn add_rows(html: &mut String, rows: &[(&'static str, String)]) {
    html.push_str("<table>\n");
    for (name, value) in rows {
        let (name, value) = (escape_html(name), escape_html(value));
        html.push_str(&format!("<tr><th>{name}</th><td>{value}</td></tr>\n"));
    }
    html.push_str("</table>\n");
}

/// Returns a page of articles.
#[must_use]
pub fn format_message_page(title: &str, articles: &[String]) -> String {
    let title = format!("<title>{}</title>\n", escape_html(title));
    [PAGE_START, &title, PAGE_STYLE, "</head>\n<body>\n", &articles.concat(), "</body>\n</html>\n"]
        .concat()
}

fn title_of(headers: &MessageHeaders) -> &str {
    headers.subject.as_deref().filter(|title| !title.is_empty()).unwrap_or("(no subject)")
}

/// Returns whether each part is on the page: messages, reports, and texts of the body. Of
/// alternatives with HTML, the last one with HTML is on it.
fn shown_parts(parts: &[MessagePart]) -> Vec<bool> {
    let parents = find_parents(parts);
    // Whether each part is HTML of the body or has some in it, and the last such part in each.
    let mut has_html = vec![false; parts.len()];
    let mut last_html = vec![None; parts.len()];
    for (at, part) in parts.iter().enumerate().rev() {
        let is_body = matches!(part.role, PartRole::Body | PartRole::AlternativeBody);
        if let PartContent::Html(html) = &part.content {
            has_html[at] = is_body && !html.trim().is_empty();
        }
        // The HTML of a message in the message is no alternative to a text outside of it.
        let is_message = matches!(part.content, PartContent::Message(_));
        if let Some(parent) = parents[at].filter(|_| has_html[at] && !is_message) {
            has_html[parent] = true;
            last_html[parent] = last_html[parent].or(Some(at));
        }
    }
    // A part is hidden in an alternative that is not chosen, and chosen in the other one.
    let mut is_hidden = vec![false; parts.len()];
    let mut is_chosen = vec![false; parts.len()];
    let mut is_shown = vec![false; parts.len()];
    for (at, part) in parts.iter().enumerate() {
        if let Some(parent) = parents[at] {
            is_hidden[at] = is_hidden[parent];
            is_chosen[at] = is_chosen[parent];
            let is_alternative = parts[parent].media_type == "multipart/alternative";
            if let Some(chosen) = last_html[parent].filter(|_| is_alternative) {
                is_hidden[at] |= chosen != at;
                is_chosen[at] = true;
            }
        }
        let has_role = match (part.role, &part.content) {
            (_, PartContent::Message(_)) | (PartRole::Body, _) => true,
            _ if part.is_report() => true,
            (PartRole::AlternativeBody, _) => is_chosen[at],
            // A footer in an alternative, which has the role of a file.
            _ => {
                let is_file = part.is_declared_attachment || part.file_name.is_some();
                is_chosen[at] && part.media_type == "text/plain" && !is_file
            }
        };
        is_shown[at] = has_role && !is_hidden[at];
    }
    is_shown
}

/// Returns the place of the part that contains each part.
fn find_parents(parts: &[MessagePart]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        while open.last().is_some_and(|last| parts[*last].depth >= part.depth) {
            open.pop();
        }
        parents.push(open.last().copied());
        open.push(at);
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(source: &str) -> String {
        let message = Message::parse(source.as_bytes());
        let rows = vec![("from", "A <a@b.example>".to_string())];
        let inner_rows = vec![vec![("from", "<inner>".to_string())]];
        let article =
            format_message_article(&MessageArticle { message: &message, rows, inner_rows });
        format_message_page("x", &[article])
    }

    #[test]
    fn pages_have_html_or_escaped_text() {
        let html = page(
            "Subject: <b>\nContent-Type: multipart/alternative; boundary=x\n\n--x\n\nplain\n\
             --x\nContent-Type: text/html\n\n<p onclick=a()>Hi<script>b()</script><img src=http://c/d>\n--x--\n",
        );
        assert!(html.contains("<h1>&lt;b&gt;</h1>"), "{html}");
        assert!(html.contains("<td>A &lt;a@b.example&gt;</td>"), "{html}");
        assert!(html.contains("<div><p>Hi"), "{html}");
        for text in ["plain", "onclick", "<script", "<img", "http://c"] {
            assert!(!html.contains(text), "{text}: {html}");
        }
        let text = page("Subject: x\n\n1 < 2 & </div><script>\n");
        assert!(
            text.contains("<div class=\"text\">1 &lt; 2 &amp; &lt;/div&gt;&lt;script&gt;</div>")
        );
        assert!(text.find("Content-Security-Policy") < text.find("<body>"));
        let no_lookups = "<meta http-equiv=\"x-dns-prefetch-control\" content=\"off\">\n";
        assert!(text.find(no_lookups).unwrap() < text.find("<body>").unwrap());
    }

    /// Returns the blocks of the page of a message with this content.
    fn blocks(content: &str) -> Vec<String> {
        let html = page(&format!("Subject: x\n{content}"));
        let (_, body) = html.split_once("</table>\n").unwrap();
        let (body, _) = body.split_once("</article>").unwrap();
        body.lines().map(str::to_string).collect()
    }

    #[test]
    fn all_texts_of_a_message_are_on_the_page() {
        let multipart = |kind: &str, boundary: &str, parts: &[&str]| {
            let parts = parts.concat().replace("--+", &format!("--{boundary}"));
            format!(
                "Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}--{boundary}--\n"
            )
        };
        let text = "--+\nContent-Type: text/plain\n\na < b\n";
        let footer = "--+\nContent-Type: text/plain\n\nfooter\n";
        let html = "--+\nContent-Type: text/html\n\n<b>c</b>\n";
        let more = "--+\nContent-Type: text/html\n\n<i>d</i>\n";
        let pdf = "--+\nContent-Type: application/pdf\n\nx\n";
        let shown_text = "<div class=\"text\">a &lt; b</div>";
        let shown_footer = "<div class=\"text\">footer</div>";
        let (shown_html, shown_more) = ("<div><b>c</b></div>", "<div><i>d</i></div>");

        // Apple Mail divides a text at a file, and a list adds a footer.
        let mixed = multipart("mixed", "m", &[text, pdf, html, footer]);
        assert_eq!(blocks(&mixed), [shown_text, shown_html, shown_footer]);
        let both = multipart("alternative", "a", &[text, html]);
        assert_eq!(blocks(&both), [shown_html]);
        let listed = multipart("mixed", "m", &["--+\n", &both, footer]);
        assert_eq!(blocks(&listed), [shown_html, shown_footer]);
        let nested = multipart("mixed", "n", &[html, pdf, more, footer]);
        let apple = multipart("alternative", "b", &[text, "--+\n", &nested]);
        assert_eq!(blocks(&apple), [shown_html, shown_more, shown_footer]);
        let related = multipart("related", "r", &[html]);
        let outlook = multipart("alternative", "b", &[text, "--+\n", &related]);
        assert_eq!(blocks(&outlook), [shown_html]);
        let texts = multipart("alternative", "a", &[text]);
        assert_eq!(blocks(&texts), [shown_text]);

        // A message in the message has a header and texts of its own.
        let inner = format!("--+\nContent-Type: message/rfc822\n\nSubject: y\n{both}\n");
        let forwarded = multipart("mixed", "m", &[text, &inner]);
        assert_eq!(
            blocks(&forwarded),
            [
                shown_text,
                "<h2>Message: y</h2>",
                "<table>",
                "<tr><th>from</th><td>&lt;inner&gt;</td></tr>",
                "</table>",
                shown_html,
            ]
        );
    }
}
