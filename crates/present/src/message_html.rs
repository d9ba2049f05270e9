//! Mail messages as an HTML page for a browser.
//!
//! The page has the HTML of a message, or its text. It runs no script and loads nothing from
//! anywhere: the markup is sanitized, and a policy in the page forbids the rest. Separate from the
//! lists of `agenda`, which are text for a terminal.

use larder_format::message::{Message, MessagePart, PartContent, PartRole};
use larder_format::safe_html::{escape_html, sanitize_html};

/// The start of a page. The policy comes before anything of a message. It allows the style below,
/// by the SHA-256 of its text.
const PAGE_START: &str = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-LXZaFMpUZq0QreCwq/QWUEqgvPUP1dM3S4bwD10R0Jg='; \
    base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
/// The style of a page.
const PAGE_STYLE: &str = "<style>body { font-family: sans-serif; max-width: 50em; margin: 1em auto }\n\
    th { text-align: left; padding-right: 1em; font-weight: normal; color: #666 }\n\
    .text { white-space: pre-wrap; overflow-wrap: anywhere }\n\
    blockquote { border-left: 2px solid #aaa; margin-left: 0; padding-left: 1em; color: #555 }\n\
    article + article { border-top: 1px solid #aaa; margin-top: 2em }\n</style>\n";

/// A message with the rows of its header.
#[derive(Debug)]
pub struct MessageArticle<'m> {
    /// The message.
    pub message: &'m Message,
    /// The names and texts of the rows above it.
    pub rows: Vec<(&'m str, String)>,
}

/// Returns an article of the page.
#[must_use]
pub fn format_message_article(article: &MessageArticle<'_>) -> String {
    let message = article.message;
    let mut html = format!("<article>\n<h1>{}</h1>\n<table>\n", escape_html(title_of(message)));
    for (name, value) in &article.rows {
        let (name, value) = (escape_html(name), escape_html(value));
        html.push_str(&format!("<tr><th>{name}</th><td>{value}</td></tr>\n"));
    }
    html.push_str("</table>\n");
    let parts: Vec<&str> = html_parts(message).collect();
    if parts.is_empty() {
        let text = escape_html(message.body_text().trim_end());
        html.push_str(&format!("<div class=\"text\">{text}</div>\n"));
    }
    for part in parts {
        html.push_str(&format!("<div>{}</div>\n", sanitize_html(part)));
    }
    html + "</article>\n"
}

/// Returns a page of articles.
#[must_use]
pub fn format_message_page(title: &str, articles: &[String]) -> String {
    let title = format!("<title>{}</title>\n", escape_html(title));
    [PAGE_START, &title, PAGE_STYLE, "</head>\n<body>\n", &articles.concat(), "</body>\n</html>\n"]
        .concat()
}

fn title_of(message: &Message) -> &str {
    message.headers.subject.as_deref().filter(|title| !title.is_empty()).unwrap_or("(no subject)")
}

/// Returns the HTML of the message itself, in place of its plain text.
fn html_parts(message: &Message) -> impl Iterator<Item = &str> {
    let inner =
        message.parts.iter().position(|part| matches!(part.content, PartContent::Message(_)));
    let own = message.parts.iter().take(inner.unwrap_or(message.parts.len()));
    own.filter_map(|part: &MessagePart| match (&part.content, part.role) {
        (PartContent::Html(html), PartRole::Body | PartRole::AlternativeBody) => {
            Some(html.as_str())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(source: &str) -> String {
        let message = Message::parse(source.as_bytes());
        let rows = vec![("from", "A <a@b.example>".to_string())];
        let article = format_message_article(&MessageArticle { message: &message, rows });
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
    }
}
