//! What all pages have in common: their style (light and dark), and the functions of their scripts.
//!
//! A page is a template, one file that needs no network. It has `/*STYLE*/` in its `style` element and `/*COMMON*/` at
//! the beginning of its script, after its elements. An element may have the id `tip`, for a description of what the
//! pointer is on.

const STYLE: &str = include_str!("page/style.css");
const COMMON: &str = include_str!("page/common.js");

/// The page made from a template.
#[must_use]
pub fn of(template: &str) -> String {
    template.replacen("/*STYLE*/", STYLE, 1).replacen("/*COMMON*/", COMMON, 1)
}

/// JSON for use in a script: it contains nothing that looks like the script's end.
#[must_use]
pub fn in_script(json: &str) -> String {
    json.replace("</", "<\\/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_style_and_script() {
        let page = of("<style>/*STYLE*/</style><script>/*COMMON*/</script>");
        assert!(page.contains("--text") && page.contains("const byId"), "{page}");
        assert!(!page.contains("/*STYLE*/") && !page.contains("/*COMMON*/"), "{page}");
        assert_eq!(in_script(r#"{"a":"</script>"}"#), r#"{"a":"<\/script>"}"#);
    }
}
