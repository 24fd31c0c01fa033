//! The pages for browsers that this program carries: what `ui/` was built
//! into, or a page that says how to build it.

use tideline_gateway::PageFile;

/// Every file, by path.
pub(crate) const FILES: &[PageFile] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_always_a_page_to_open() {
        let paths: Vec<_> = super::FILES.iter().map(|file| file.path).collect();
        assert!(paths.contains(&"/index.html"), "{paths:?}");
        assert!(paths.is_sorted(), "{paths:?}");
    }
}
