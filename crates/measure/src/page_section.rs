//! Sections of a page that a benchmark writes anew, between `<!-- NAME -->` and `<!-- /NAME -->`.
//! The text around them is written by hand.
//!
//! Separate from `html_page`: the page, in any markup, exists already.

/// Replaces the section with this name. Returns false, and changes nothing, if there is none.
pub fn replace_section(text: &mut String, name: &str, with: &str) -> bool {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    if let Some((before, rest)) = text.split_once(&open)
        && let Some((_, behind)) = rest.split_once(&close)
    {
        *text = format!("{before}{open}\n{}\n{close}{behind}", with.trim_end());
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_nothing_else() {
        let mut text = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n".to_string();
        assert!(replace_section(&mut text, "one", "new\n"));
        assert!(!replace_section(&mut text, "two", "new"));
        assert_eq!(text, "a\n<!-- one -->\nnew\n<!-- /one -->\nb\n");
    }
}
