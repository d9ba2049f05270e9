//! A self-contained HTML page of headings, texts, key figures, tables and charts.
//!
//! The page is readable in light and dark, on wide and narrow screens, and on paper. It has no
//! scripts and loads no external resources. Every text is escaped here.

use crate::chart::{CHART_CSS, Chart, PALETTE_CSS, XmlEscaped, render_figure};

/// An HTML page under construction.
#[derive(Debug)]
pub struct HtmlPage {
    title: String,
    body: String,
}

/// Code of at most this length is not broken into lines.
const MAX_NOWRAP_CHARS: usize = 16;

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum TableCell {
    /// A text, which may be broken into lines.
    Text(String),
    /// A number with its unit: not broken, aligned to the right.
    Number(String),
    /// A query or another text in a formal language.
    Code(String),
    /// A highlighted text.
    Warning(String),
}

impl HtmlPage {
    /// Begins a page with a title.
    #[must_use]
    pub fn new(title: &str) -> HtmlPage {
        HtmlPage { title: title.into(), body: format!("<h1>{}</h1>\n", XmlEscaped(title)) }
    }

    /// Adds a heading.
    pub fn add_heading(&mut self, text: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", XmlEscaped(text)));
    }

    /// Adds a heading of the second level.
    pub fn add_subheading(&mut self, text: &str) {
        self.body.push_str(&format!("<h3>{}</h3>\n", XmlEscaped(text)));
    }

    /// Adds a paragraph.
    pub fn add_paragraph(&mut self, text: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", XmlEscaped(text)));
    }

    /// Adds the line that says for whom the page is.
    pub fn add_audience(&mut self, text: &str) {
        self.body.push_str(&format!("<p class=\"faint\">{}</p>\n", XmlEscaped(text)));
    }

    /// Adds a highlighted paragraph.
    pub fn add_warning(&mut self, text: &str) {
        self.body.push_str(&format!("<p class=\"alarm\">{}</p>\n", XmlEscaped(text)));
    }

    /// Adds key figures, each with its value and its name. An even number of them makes whole rows
    /// on every screen.
    pub fn add_key_figures(&mut self, figures: &[(String, String)]) {
        let fits = |columns: &usize| figures.len().is_multiple_of(*columns);
        let columns = [4, 3, 5, 2].into_iter().find(fits).unwrap_or(4);
        self.body.push_str(&format!("<dl style=\"--columns:{columns}\">"));
        for (value, what) in figures {
            let (value, what) = (XmlEscaped(value), XmlEscaped(what));
            self.body.push_str(&format!("<div><dt>{what}</dt><dd>{value}</dd></div>\n"));
        }
        self.body.push_str("</dl>\n");
    }

    /// Adds a chart.
    pub fn add_chart(&mut self, title: &str, about: &str, chart: &dyn Chart) {
        self.body.push_str(&render_figure(title, about, chart));
    }

    /// Adds a table, unless it has no rows. On a narrow screen the rows of a table with code are
    /// set as paragraphs in which each cell has the heading of its column.
    pub fn add_table(&mut self, title: &str, head: &[&str], rows: &[Vec<TableCell>]) {
        let Some(first) = rows.first() else { return };
        let long = first.iter().any(|cell| matches!(cell, TableCell::Code(_)));
        let class = if long { " class=\"long\"" } else { "" };
        let title = XmlEscaped(title);
        self.body.push_str(&format!(
            "<div class=\"scroll\"><table{class}><caption>{title}</caption>\n<tr>"
        ));
        for (name, cell) in head.iter().zip(first) {
            let is_long = name.split(' ').any(|word| word.chars().count() > MAX_NOWRAP_CHARS);
            let class = match (matches!(cell, TableCell::Number(_)), is_long) {
                (true, true) => " class=\"n b\"",
                (true, false) => " class=\"n\"",
                (false, true) => " class=\"b\"",
                (false, false) => "",
            };
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
            // Short code, such as a date, is not broken.
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

    /// Returns the complete file.
    #[must_use]
    pub fn into_html(self) -> String {
        let (title, body) = (XmlEscaped(&self.title), self.body);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{PALETTE_CSS}{PAGE_CSS}{CHART_CSS}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
        )
    }
}

/// The styles of the page around its charts. A table that is wider than the text goes on to the
/// right, as far as the screen has room. One that is wider than the screen scrolls, and has a
/// shadow at each side where columns are out of sight: the shadows stay where they are, and what
/// covers them moves with the table. Its caption stays, and is not wider than the screen. Long
/// names, as of logs, are broken.
const PAGE_CSS: &str = "\
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:54rem;background:var(--ground);color:var(--text)}
h1{font-size:1.6rem;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.2rem}
h3{font-size:1rem;margin:1.5rem 0 .5rem;overflow-wrap:anywhere}
p{margin:.5rem 0;overflow-wrap:anywhere}
p.alarm{border-left:4px solid var(--c3);padding-left:.7rem}
p.faint{color:var(--faint)}
td.alarm{color:var(--c3);font-weight:600}
dl{display:grid;grid-template-columns:repeat(var(--columns),1fr);gap:.6rem;margin:1rem 0}
dl div{background:var(--box);border-radius:6px;padding:.5rem .8rem}
dt{color:var(--faint);font-size:.8rem}
dd{margin:0;font-size:1.25rem;font-weight:600}
.scroll{overflow-x:auto;margin:1rem 0;background:linear-gradient(to right,var(--ground) 40%,transparent) left/2.5rem 100% no-repeat local,\
linear-gradient(to left,var(--ground) 40%,transparent) right/2.5rem 100% no-repeat local,\
linear-gradient(to right,var(--faint),transparent) left/.7rem 100% no-repeat scroll,\
linear-gradient(to left,var(--faint),transparent) right/.7rem 100% no-repeat scroll}
@media screen and (min-width:60rem){.scroll{width:fit-content;min-width:100%;max-width:calc(50vw + 25rem)}}
table{border-collapse:collapse;font-size:.86rem;width:100%}
caption{text-align:left;font-weight:600;padding:.3rem 0;position:sticky;left:0;max-width:min(54rem,100vw - 2rem);overflow-wrap:anywhere}
th,td{text-align:left;vertical-align:top;padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line)}
th{color:var(--faint);font-weight:400}
td:first-child:not([class]){min-width:9rem;overflow-wrap:anywhere}
th{vertical-align:bottom}th.n{white-space:normal}
.b{overflow-wrap:anywhere;min-width:5rem}
.w{white-space:nowrap}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
code{font:.82rem/1.35 ui-monospace,monospace;overflow-wrap:anywhere}
td code{display:inline-block;min-width:11rem}
figure{margin:1.4rem 0}
figcaption{margin-bottom:.4rem;font-size:.9rem;overflow-wrap:anywhere}
.legend{display:inline-flex;flex-wrap:wrap;gap:.1rem 1.1rem}
.legend span{display:flex;align-items:center}.legend svg,.legend i{flex:none}
.legend svg{margin-right:.35rem;vertical-align:middle}
.legend i{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;background:var(--c);margin-right:.35rem}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
.narrow svg{width:100%}
.narrow{display:none}
@media(max-width:38rem){dl{grid-template-columns:1fr 1fr}.wide{display:none}.narrow{display:block}}
@media(max-width:38rem){.long,.long tbody,.long caption{display:block}
.long tr{display:flex;flex-wrap:wrap;gap:0 1rem;border-bottom:1px solid var(--line);padding:.35rem 0}
.long tr:first-child,.long td:empty{display:none}.long td{border:0;padding:0}.long .code{flex-basis:100%}
.long td[data-name]:not(.code)::before{content:attr(data-name)\" \";color:var(--faint);font-weight:400}}
@media not screen{body{max-width:none}h2,figure,tr{break-inside:avoid}}
";

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a few cells, as one that counts what is left out, names no column of the others.
    #[test]
    fn cells_of_a_narrow_row_that_are_empty_are_not_named() {
        let mut page = HtmlPage::new("a");
        let row = |name: &str, bytes: &str| {
            vec![TableCell::Code(name.into()), TableCell::Number(bytes.into())]
        };
        page.add_table("t", &["function", "bytes"], &[row("f", "7"), row("and 3 more", "")]);
        let page = page.into_html();
        assert!(
            page.contains("<td class=\"n\" data-name=\"bytes\"></td></tr>\n</table>"),
            "{page}"
        );
        assert!(page.contains(".long td:empty{display:none}"));
    }

    /// Columns out of sight on a narrow screen are announced, and long paths leave room for them.
    #[test]
    fn a_wide_table_shows_that_it_scrolls() {
        let mut page = HtmlPage::new("a");
        let row = [TableCell::Text("/a/long/path/of/a/file".into()), TableCell::Number("1".into())];
        page.add_table("t", &["file", "bytes"], &[row.to_vec()]);
        let page = page.into_html();
        assert!(page.contains("<div class=\"scroll\"><table><caption>t"));
        let style = page.lines().find(|line| line.starts_with(".scroll{")).unwrap();
        assert_eq!(style.matches(" local").count(), 2, "{style}");
        assert_eq!(style.matches(" scroll").count(), 2, "{style}");
        assert!(
            page.contains("td:first-child:not([class]){min-width:9rem;overflow-wrap:anywhere}")
        );
    }

    /// The name of a log heads columns and is in captions: it is broken, and a table with it takes
    /// the room of a wide screen before it scrolls.
    #[test]
    fn long_names_fit_into_the_page() {
        let mut page = HtmlPage::new("a");
        let row = [TableCell::Text("calls".into()), TableCell::Number("1".into())];
        page.add_table("t", &["", "a_log_of_a_long_name"], &[row.to_vec()]);
        page.add_table("t", &["", "a b c d e f g h i j k"], &[row.to_vec()]);
        let page = page.into_html();
        assert!(page.contains("<th class=\"n b\">a_log_of_a_long_name</th>"), "{page}");
        assert!(page.contains("<th class=\"n\">a b c d e f g h i j k</th>"), "{page}");
        let style = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap();
        for broken in [".b{", "caption{", "figcaption{"] {
            assert!(style(broken).contains("overflow-wrap:anywhere"), "{broken}");
        }
        assert!(style("caption{").contains("max-width:min(54rem,100vw - 2rem)"));
        let wide = "(min-width:60rem){.scroll{width:fit-content;min-width:100%;max-width:";
        assert!(page.contains(wide), "{page}");
    }
}
