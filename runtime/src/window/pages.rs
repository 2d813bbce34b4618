//! The pages of memory that a window allocates.

use transom_transport::Span;
use transom_transport::memory::HUGE_PAGE;

use super::options::{Info, invalid};
use crate::Result;

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

impl PagesHint {
    const ALL: [(&str, Self); 3] = [("auto", Self::Auto), ("small", Self::Small), ("huge", Self::Huge)];

    pub fn parse(info: &Info) -> Result<Self> {
        let Some(value) = info.get(PAGES).map(str::trim) else { return Ok(Self::Auto) };
        Self::named(value).ok_or_else(|| invalid(PAGES, &format!("is {value:?}"), "auto, small or huge"))
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, wanted)| *wanted)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, wanted)| *wanted == self).map_or("auto", |(name, _)| name)
    }

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
