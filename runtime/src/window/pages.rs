//! The pages of memory that a window allocates.

use transom_transport::Span;
use transom_transport::memory::HUGE_PAGE;

use super::options::Word;

/// The hint `transom_pages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum PagesHint {
    /// As the setting says, and else small ones.
    #[default]
    Auto,
    /// Small ones, which memory is taken for when they are touched.
    Small,
    /// Huge ones at once, as far as the kernel has them.
    Huge,
}

pub(super) const PAGES: &str = "transom_pages";
/// What became of that: no hint, but told among them.
pub(super) const PAGES_AS: &str = "transom_pages_as";

impl Word for PagesHint {
    const KEY: &'static str = PAGES;
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("small", Self::Small), ("huge", Self::Huge)];
}

impl PagesHint {
    /// Does what is asked for, with a window's new memory: what has become of it, in words, if anything was asked for.
    pub fn apply(self, memory: &Span) -> Option<String> {
        if self != Self::Huge {
            return None;
        }
        let have = memory.collapse();
        Some(match have {
            0 if memory.len() < HUGE_PAGE => "small: less than a huge page".into(),
            0 => "small: the kernel gives no huge ones".into(),
            _ => format!("huge: {} of {} KiB", have >> 10, memory.len().div_ceil(1 << 10)),
        })
    }
}
