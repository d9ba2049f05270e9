//! The Markdown of docs/ as roff: headings, paragraphs, lists, code blocks and tables.

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// Writes a document. Its title is left out, and its headings become sections.
pub(super) fn write(roff: &mut Roff, document: &str) {
    let mut lines = document.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("# ") || line.trim().is_empty() {
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            roff.control("SH", [heading.to_uppercase().as_str()]);
            continue;
        }
        if let Some(heading) = line.strip_prefix("### ") {
            roff.control("SS", [heading]);
            continue;
        }
        let mut block = vec![line.to_string()];
        let is_code = line.starts_with("    ");
        while let Some(next) = lines.next_if(|next| is_same_block(line, next)) {
            block.push(next.to_string());
        }
        if is_code {
            let code: Vec<String> =
                block.iter().map(|line| line.trim_start_matches("    ").to_string()).collect();
            write_literal(roff, &code);
        } else if line.starts_with('|') {
            write_table(roff, &block);
        } else if let Some(item) = line.strip_prefix("* ") {
            roff.control("IP", ["\\(bu", "2"]);
            block[0] = item.to_string();
            roff.text(inlines(&block.join("\n")));
        } else {
            roff.control("PP", []);
            roff.text(inlines(&block.join("\n")));
        }
    }
}

/// Returns whether a line continues the block that begins with `first`.
fn is_same_block(first: &str, next: &str) -> bool {
    let is_plain = |line: &str| {
        !line.trim().is_empty()
            && !["* ", "## ", "### ", "|"].iter().any(|mark| line.starts_with(mark))
    };
    match first {
        _ if first.starts_with("    ") => next.starts_with("    "),
        _ if first.starts_with('|') => next.starts_with('|'),
        _ => is_plain(next) && (first.starts_with("* ") || !next.starts_with("    ")),
    }
}

/// Writes the rows of a table as terms with descriptions; the heading and the rule are left out.
fn write_table(roff: &mut Roff, rows: &[String]) {
    for row in rows.iter().skip(2) {
        let mut cells = row.trim_matches('|').splitn(2, '|').map(str::trim);
        roff.control("TP", []);
        roff.text(inlines(cells.next().unwrap_or_default()));
        roff.text(inlines(cells.next().unwrap_or_default()));
    }
}

/// Writes lines as they are, indented.
pub(super) fn write_literal(roff: &mut Roff, lines: &[String]) {
    roff.control("RS", ["4"]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line.as_str())]);
    }
    roff.control("fi", []);
    roff.control("RE", []);
}

/// Returns the text with code and emphasis in bold, and links as their text.
fn inlines(text: &str) -> Vec<Inline> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => found.push(roman(strip_links(part).replace('*', ""))),
            _ => found.push(bold(part)),
        }
    }
    found
}

/// Replaces `[text](target)` by its text.
fn strip_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let target = link
            .split_once("](")
            .and_then(|(name, target)| target.split_once(')').map(|(_, after)| (name, after)));
        match target {
            Some((name, after)) => {
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_apart() {
        let mut roff = Roff::new();
        write(
            &mut roff,
            "# Title\n\nOne *word*\nand [a link](x.md).\n\n    code a\n    code b\n\n## Part\n\n* an\n  \
             item\n* `other`\n\n| a | b |\n|---|---|\n| `c` | d |\n",
        );
        let text = roff.to_roff();
        let expect = ".PP\nOne word and a link.\n.RS 4\n.nf\ncode a\ncode b\n.fi\n.RE\n.SH PART\n.IP \\(bu 2\n\
                      an item\n.IP \\(bu 2\n\\fBother\\fR\n.TP\n\\fBc\\fR\nd\n";
        assert_eq!(text, expect);
    }
}
