//! A page for people: one file of HTML that needs nothing else.
//!
//! Headings, sentences, key figures, tables and charts, readable in light and in dark, on a wide
//! screen, on a narrow one and on paper. There is no script in it, and it asks nobody for anything.
//! What it says comes from elsewhere; every text is escaped here.

use crate::chart::{Chart, XmlEscaped, render_figure};

/// A page while it is written.
#[derive(Debug)]
pub struct HtmlPage {
    title: String,
    body: String,
}

/// Texts of so many letters are not broken into lines.
const MAX_NOWRAP_CHARS: usize = 16;

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum TableCell {
    /// A text, which may be broken into lines.
    Text(String),
    /// A number with its unit: never broken, to the right.
    Number(String),
    /// Something that a program wrote.
    Code(String),
    /// A warning, set off from the text.
    Warning(String),
}

impl HtmlPage {
    /// A page with a title.
    #[must_use]
    pub fn new(title: &str) -> HtmlPage {
        HtmlPage { title: title.into(), body: format!("<h1>{}</h1>\n", XmlEscaped(title)) }
    }

    /// A heading.
    pub fn add_heading(&mut self, text: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", XmlEscaped(text)));
    }

    /// A smaller one.
    pub fn add_subheading(&mut self, text: &str) {
        self.body.push_str(&format!("<h3>{}</h3>\n", XmlEscaped(text)));
    }

    /// A sentence or two.
    pub fn add_paragraph(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", XmlEscaped(text)));
    }

    /// A sentence that must be seen.
    pub fn add_warning(&mut self, text: &str) {
        self.body.push_str(&format!("<p class=\"alarm\">{}</p>\n", XmlEscaped(text)));
    }

    /// Key figures: each a value and what it is.
    pub fn add_key_figures(&mut self, figures: &[(String, String)]) {
        self.body.push_str("<dl>");
        for (value, what) in figures {
            let (value, what) = (XmlEscaped(value), XmlEscaped(what));
            self.body.push_str(&format!("<div><dt>{what}</dt><dd>{value}</dd></div>\n"));
        }
        self.body.push_str("</dl>\n");
    }

    /// A chart.
    pub fn add_chart(&mut self, title: &str, about: &str, chart: &dyn Chart) {
        self.body.push_str(&render_figure(title, about, chart));
    }

    /// A table, if it has rows. Where it holds what a program wrote, its rows are set as paragraphs
    /// on a narrow screen, each cell with its name.
    pub fn add_table(&mut self, title: &str, head: &[&str], rows: &[Vec<TableCell>]) {
        let Some(first) = rows.first() else { return };
        let long = first.iter().any(|cell| matches!(cell, TableCell::Code(_)));
        let class = if long { " class=\"long\"" } else { "" };
        let title = XmlEscaped(title);
        self.body.push_str(&format!(
            "<div class=\"scroll\"><table{class}><caption>{title}</caption>\n<tr>"
        ));
        for (name, cell) in head.iter().zip(first) {
            let class = if matches!(cell, TableCell::Number(_)) { " class=\"n\"" } else { "" };
            self.body.push_str(&format!("<th{class}>{}</th>", XmlEscaped(name)));
        }
        self.body.push_str("</tr>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for (cell, name) in row.iter().zip(head) {
                self.write_cell(cell, if long { name } else { "" });
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</table></div>\n");
    }

    fn write_cell(&mut self, cell: &TableCell, name: &str) {
        let (class, text) = match cell {
            TableCell::Text(text) if text.chars().count() <= MAX_NOWRAP_CHARS => ("w", text),
            TableCell::Text(text) => ("", text),
            TableCell::Number(text) => ("n", text),
            TableCell::Code(text) => ("code", text),
            TableCell::Warning(text) => ("alarm", text),
        };
        let attribute = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(" {name}=\"{}\"", XmlEscaped(value)),
        };
        let (class, name) = (attribute("class", class), attribute("data-name", name));
        let text = match cell {
            // Dates and the like stay whole.
            TableCell::Code(text) => {
                let word = |word: &str| match word.chars().count() <= MAX_NOWRAP_CHARS {
                    true => format!("<span class=\"w\">{}</span>", XmlEscaped(word)),
                    false => XmlEscaped(word).to_string(),
                };
                let words: Vec<String> = text.split(' ').map(word).collect();
                format!("<code>{}</code>", words.join(" "))
            }
            _ => XmlEscaped(text).to_string(),
        };
        self.body.push_str(&format!("<td{class}{name}>{text}</td>"));
    }

    /// The whole file.
    #[must_use]
    pub fn into_html(self) -> String {
        let (title, body) = (XmlEscaped(&self.title), self.body);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{PAGE_CSS}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
        )
    }
}

/// Colours that most who see colours otherwise can tell apart (Okabe and Ito), for light and for
/// dark.
const PAGE_CSS: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#222;--faint:#5a5a5a;--line:#ddd;--box:#f5f6f8;\
--c0:#0072b2;--c1:#00805c;--c2:#9a4f86;--c3:#d5430e;--c4:#b07800;--c5:#8a8a8a}
@media(prefers-color-scheme:dark){:root{--ground:#16181c;--text:#e8e8e8;--faint:#aaa;--line:#383c44;--box:#1f2228;\
--c0:#56b4e9;--c1:#3fd0a0;--c2:#e09acb;--c3:#ff7d4d;--c4:#f0b429;--c5:#888}}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:54rem;background:var(--ground);color:var(--text)}
h1{font-size:1.6rem;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.2rem}
h3{font-size:1rem;margin:1.5rem 0 .5rem;overflow-wrap:anywhere}
p{margin:.5rem 0;overflow-wrap:anywhere}
p.alarm{border-left:4px solid var(--c3);padding-left:.7rem}
td.alarm{color:var(--c3);font-weight:600}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;margin:1rem 0}
dl div{background:var(--box);border-radius:6px;padding:.5rem .8rem}
dt{color:var(--faint);font-size:.8rem}
dd{margin:0;font-size:1.25rem;font-weight:600}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.86rem;width:100%}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{text-align:left;vertical-align:top;padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line)}
th{color:var(--faint);font-weight:400}
.w{white-space:nowrap}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
code{font:.82rem/1.35 ui-monospace,monospace;overflow-wrap:anywhere}
td code{display:inline-block;min-width:11rem}
figure{margin:1.4rem 0}
figcaption{margin-bottom:.4rem;font-size:.9rem}
.legend{display:inline-flex;flex-wrap:wrap;gap:.1rem 1.1rem}
.legend i{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;background:var(--c);margin-right:.35rem}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
.narrow{display:none}
@media(max-width:38rem){.wide{display:none}.narrow{display:block}}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
text{fill:var(--text)}text.faint{fill:var(--faint)}
.grid{stroke:var(--line);fill:none}
.fill{fill:var(--c)}
.line{stroke:var(--c);fill:none;stroke-width:2}
.area{fill:var(--c);opacity:.2}
.life{stroke:var(--c);fill:none}
.touch{fill:var(--c);opacity:0}.touch:hover{opacity:1}
@media(max-width:38rem){.long,.long tbody,.long caption{display:block}
.long tr{display:flex;flex-wrap:wrap;gap:0 1rem;border-bottom:1px solid var(--line);padding:.35rem 0}
.long tr:first-child{display:none}.long td{border:0;padding:0}.long .code{flex-basis:100%}
.long td[data-name]:not(.code)::before{content:attr(data-name)\" \";color:var(--faint);font-weight:400}}
@media not screen{body{max-width:none}h2,figure,tr{break-inside:avoid}}
";
