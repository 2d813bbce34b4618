//! What a program or library says of its code: how it is unwound, functions, lines.

use std::cell::OnceCell;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use addr2line::gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use framehop::ExplicitModuleSectionInfo;
use object::read::ReadRef;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SegmentFlags, SymbolKind, elf};

use super::names::{crate_of, is_transom_source, readable};

/// Bytes of a section of unwinding rules, at most.
const LONGEST_SECTION: u64 = 256 << 20;
/// Functions that may begin between the beginning of one and an address in it: other names of it, and parts.
const NESTED: usize = 8;
/// Functions of Transom that are asked for their source.
const SAMPLES: usize = 64;

/// Bytes that several processes share.
pub type Bytes = Arc<[u8]>;

/// Its part that is executed: addresses in it, and where in the file they begin.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// The first address.
    pub address: u64,
    /// The place in the file.
    pub offset: u64,
    /// How long it is there.
    pub size: u64,
}

/// A function at an address, the innermost of those that were put into one another.
#[derive(Debug)]
pub struct Function {
    /// Its name as in the source.
    pub name: String,
    /// File and line.
    pub source: Option<(String, u32)>,
    /// Whether it is one of Transom's, as far as its source says.
    pub is_transom: bool,
}

/// Rules for unwinding.
#[derive(Debug, Default)]
pub struct Rules {
    /// What is executed.
    pub segments: Vec<Segment>,
    /// The sections.
    pub sections: ExplicitModuleSectionInfo<Bytes>,
}

impl Rules {
    /// Of a file.
    pub fn of_file(path: &Path) -> Option<Self> {
        Self::of(&ReadCache::new(File::open(path).ok()?))
    }

    /// Of what a file, or memory, holds.
    pub fn of<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let runs = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
        let segments = file.segments().filter(|segment| runs(segment.flags())).map(|segment| {
            let (offset, size) = segment.file_range();
            Segment { address: segment.address(), offset, size }
        });
        let section = |name| -> Option<(Range<u64>, Bytes)> {
            let section = file.section_by_name(name).filter(|section| section.size() <= LONGEST_SECTION)?;
            let end = section.address().checked_add(section.size())?;
            Some((section.address()..end, section.data().ok()?.into()))
        };
        let address = |name| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
        let sections = ExplicitModuleSectionInfo {
            text_svma: address(".text"),
            got_svma: address(".got"),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Self { segments: segments.collect(), sections })
    }

    /// Where the function begins that an address of the file is in, by the rules for unwinding it.
    pub fn start(&self, address: u64) -> Option<u64> {
        let ExplicitModuleSectionInfo { eh_frame, eh_frame_svma, eh_frame_hdr, eh_frame_hdr_svma, .. } =
            &self.sections;
        let bases = BaseAddresses::default()
            .set_eh_frame(eh_frame_svma.as_ref()?.start)
            .set_eh_frame_hdr(eh_frame_hdr_svma.as_ref()?.start);
        let header = EhFrameHdr::new(eh_frame_hdr.as_ref()?, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(eh_frame.as_ref()?, LittleEndian);
        let rule =
            header.table()?.fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset).ok()?;
        Some(rule.initial_address())
    }
}

/// Names and lines.
pub struct Symbols {
    path: PathBuf,
    lines: Option<Loader>,
    table: OnceCell<Vec<(u64, u64, String)>>,
    /// Where Transom was when the program was compiled with it.
    transom: OnceCell<Option<String>>,
}

impl Symbols {
    /// Of a file, as far as it has any.
    pub fn of_file(path: PathBuf) -> Self {
        Self { lines: Loader::new(&path).ok(), path, table: OnceCell::new(), transom: OnceCell::new() }
    }

    /// The functions that an address is in, the innermost first.
    pub fn functions(&self, address: u64) -> Vec<Function> {
        let mut found = Vec::new();
        let frames = self.lines.as_ref().and_then(|lines| lines.find_frames(address).ok());
        if let Some(mut frames) = frames {
            while let Ok(Some(frame)) = frames.next() {
                let source = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
                let name = frame.function.and_then(|name| Some(readable(&name.raw_name().ok()?)));
                let Some(name) = name.or_else(|| self.symbol(address)) else { continue };
                // Lines without more come with names without paths, but with what they are generic over.
                let file = source.as_ref().map(|(file, _): &(String, u32)| file);
                let file = file.filter(|file| file.ends_with(".rs") && crate_of(&name).is_none());
                let is_transom = file.is_some_and(|file| is_transom_source(file, self.transom()));
                let short = file.and_then(|_| name.split('<').next().filter(|short| !short.is_empty()));
                let name = short.unwrap_or(&name).to_owned();
                found.push(Function { name, source, is_transom });
            }
        }
        // All but the last were put into that one, which has a symbol.
        if let Some(last) = found.last_mut().filter(|last| crate_of(&last.name).is_none())
            && let Some(name) = self.symbol(address).filter(|name| crate_of(name).is_some())
        {
            last.name = name;
        }
        if found.is_empty() {
            found.extend(self.symbol(address).map(|name| Function { name, source: None, is_transom: false }));
        }
        found
    }

    /// The folder that Transom's sources are in, by a function that has its name.
    fn transom(&self) -> Option<&str> {
        let find = || {
            let table = self.table.get_or_init(|| table(&self.path).unwrap_or_default());
            let named = table.iter().filter(|(.., name)| name.contains("transom"));
            let own = named.filter(|(.., name)| crate_of(&readable(name)) == Some("transom")).take(SAMPLES);
            let source = |start| {
                let mut frames = self.lines.as_ref()?.find_frames(start).ok()?;
                let mut last = None;
                while let Ok(Some(frame)) = frames.next() {
                    last = frame.location.and_then(|at| at.file).map(str::to_owned);
                }
                last
            };
            own.filter_map(|(start, ..)| source(*start))
                .find_map(|file| Some(file.rsplit_once("runtime/src/")?.0.to_owned()))
        };
        self.transom.get_or_init(find).as_deref()
    }

    /// The name by the table of symbols, which knows where each ends.
    fn symbol(&self, address: u64) -> Option<String> {
        let table = self.table.get_or_init(|| table(&self.path).unwrap_or_default());
        let before = &table[..table.partition_point(|(start, ..)| *start <= address)];
        let covers = |(start, size, _): &&(u64, u64, String)| address - start < *size;
        before.iter().rev().take(NESTED).find(covers).map(|(.., name)| readable(name))
    }
}

/// The functions of a file, by their addresses: that, length and name.
fn table(path: &Path) -> Option<Vec<(u64, u64, String)>> {
    let data = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&data).ok()?;
    let functions = file.symbols().chain(file.dynamic_symbols());
    let functions = functions.filter(|symbol| symbol.kind() == SymbolKind::Text);
    let known = functions
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())));
    let mut table: Vec<_> = known.collect();
    table.sort_unstable();
    Some(table)
}
