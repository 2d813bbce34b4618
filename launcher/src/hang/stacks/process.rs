//! A process: what is mapped where in it, and its stacks with that.

use std::collections::HashMap;
use std::fs::{File, read_link, read_to_string};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::rc::Rc;

use framehop::{
    CacheNative, FrameAddress, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder, UnwinderNative,
};

use super::names::{Owner, owner, owner_of_file};
use super::snapshot::{self, Snapshot};
use super::symbols::{Bytes, Rules, Symbols};
use super::{Place, Thread, calls};

/// Frames of a stack that are looked at.
const DEEPEST: usize = 512;
/// Bytes of the code that the kernel puts into each process, at most.
const VDSO: u64 = 1 << 20;

/// What is known of files, which the ranks of a host share.
#[derive(Default)]
pub struct Files {
    rules: HashMap<String, Option<Rc<Rules>>>,
    symbols: HashMap<String, Rc<Symbols>>,
}

/// Executable memory of a process.
#[derive(Debug)]
struct Mapped {
    range: Range<u64>,
    /// Where in the file it begins.
    offset: u64,
    inode: u64,
    /// The file, as the kernel names it.
    path: String,
    /// The same with its file system and number, which no other file has.
    name: String,
    /// Addresses here less those in the file; none until it is known.
    bias: Option<u64>,
}

impl Mapped {
    /// A line of proc_pid_maps(5).
    fn of(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut field = || {
            let (field, after) = rest.trim_start().split_once(' ')?;
            rest = after;
            Some(field)
        };
        let (range, rights, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let path = rest.trim_start().to_owned();
        let is_code = rights.contains('x') && (path.starts_with('/') || path == "[vdso]");
        let name = format!("{device} {inode} {path}");
        let (range, offset, inode) = (hex(start)?..hex(end)?, hex(offset)?, inode.parse().ok()?);
        is_code.then_some(Self { range, offset, inode, path, name, bias: None })
    }
}

/// A walk from the innermost function outwards.
struct Search {
    /// Whether the call has been found that the thread is in, or it is in none.
    is_open: bool,
    /// The user's, with its line. Within the call: Transom may have called it.
    best: Option<Place>,
    /// Of a library in source, or without a line. Within the call those are what Transom uses.
    second_best: Option<Place>,
}

impl Search {
    fn see(&mut self, owner: Owner, place: Option<Place>) {
        match (owner, place) {
            (Owner::Transom, _) if !self.is_open => (self.is_open, self.second_best) = (true, None),
            (Owner::User, Some(place)) if place.line.is_some() => {
                self.best = self.best.take().or(Some(place))
            }
            (Owner::User | Owner::Library, place) => self.second_best = self.second_best.take().or(place),
            _ => {}
        }
    }
}

/// A running process.
pub struct Process {
    id: i32,
    memory: File,
    mapped: Vec<Mapped>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Process {
    /// Looks at what is mapped there.
    ///
    /// # Errors
    /// It has ended, or is not this user's.
    pub fn open(id: i32) -> io::Result<Self> {
        let maps = read_to_string(format!("/proc/{id}/maps"))?;
        Ok(Self {
            id,
            memory: File::open(format!("/proc/{id}/mem"))?,
            mapped: maps.lines().filter_map(Mapped::of).collect(),
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
        })
    }

    /// A thread at this moment; none if it runs.
    ///
    /// # Errors
    /// It has ended, or may not be looked at.
    pub fn look(&self, thread: Thread) -> io::Result<Option<Snapshot>> {
        snapshot::take(thread, &self.memory)
    }

    /// Where in the program a thread is: of one in a call, whence that was called.
    pub fn place(&mut self, from: &Snapshot, of: Thread, files: &mut Files) -> Option<Place> {
        let mut registers = from.registers;
        let mut next = Some(FrameAddress::from_instruction_pointer(from.at));
        let mut search = Search { is_open: !of.waits, best: None, second_best: None };
        for _ in 0..DEEPEST {
            let Some(address) = next else { break };
            if let Some(index) = self.prepare(address.address_for_lookup(), files) {
                let functions = self.functions(index, address, files);
                functions.into_iter().for_each(|(owner, place)| search.see(owner, place));
            }
            if search.is_open && search.best.is_some() {
                return search.best;
            }
            next = self.caller(from, address, &mut registers, files);
        }
        search.second_best.filter(|_| search.is_open)
    }

    /// One frame outwards.
    fn caller(
        &mut self,
        from: &Snapshot,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        files: &mut Files,
    ) -> Option<FrameAddress> {
        let mut read = |address| from.word(address).ok_or(());
        let before = *registers;
        let caller = self.unwinder.unwind_frame(address, registers, &mut self.cache, &mut read);
        if let Ok(Some(caller)) = caller {
            return FrameAddress::from_return_address(caller);
        }
        *registers = before;
        // It has ended there, or needs the frame pointer, which the kernel does not tell.
        if calls::frame_pointer(registers) != 0 {
            return None;
        }
        let start = self.start(address.address_for_lookup(), files)?;
        for at in from.addresses(before.sp()) {
            let mut guess = calls::with_frame_pointer(&before, at);
            let caller = self.unwinder.unwind_frame(address, &mut guess, &mut self.cache, &mut read);
            // Words of calls that are over remain where nothing has been written since.
            if let Ok(Some(caller)) = caller
                && self.is_code(caller)
                && calls::leads_to(caller, start, &self.read())
                && self.leads_out(from, caller, guess, files)
            {
                *registers = guess;
                return FrameAddress::from_return_address(caller);
            }
        }
        None
    }

    /// Whether the frames from a return address on are those of calls, up to the first of the thread or as far as the stack is known.
    fn leads_out(
        &mut self,
        from: &Snapshot,
        mut caller: u64,
        mut registers: UnwindRegsNative,
        files: &mut Files,
    ) -> bool {
        let mut read = |address| from.word(address).ok_or(());
        for _ in 0..DEEPEST {
            let Some(address) = FrameAddress::from_return_address(caller) else { return false };
            if !self.is_code(caller) || !calls::follows_one(caller, &self.read()) {
                return false;
            }
            self.prepare(address.address_for_lookup(), files);
            match self.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read) {
                Ok(Some(next)) => caller = next,
                Ok(None) => return true,
                Err(framehop::Error::CouldNotReadStack(address)) => return address >= from.end(),
                Err(_) => return false,
            }
        }
        true
    }

    fn is_code(&self, address: u64) -> bool {
        self.mapped.iter().any(|mapped| mapped.range.contains(&address))
    }

    fn read(&self) -> impl Fn(u64, &mut [u8]) -> io::Result<()> + '_ {
        |address, bytes| self.memory.read_exact_at(bytes, address)
    }

    /// Where the function begins that an address is in.
    fn start(&mut self, address: u64, files: &mut Files) -> Option<u64> {
        let index = self.prepare(address, files)?;
        let mapped = &self.mapped[index];
        let bias = mapped.bias?;
        let rules = files.rules.get(&mapped.name)?.as_ref()?;
        Some(rules.start(address.wrapping_sub(bias))?.wrapping_add(bias))
    }

    /// The path by which this process can open a file of that one, if it is still the same file.
    fn open_path(&self, mapped: &Mapped) -> Option<PathBuf> {
        let exe = format!("/proc/{}/exe", self.id);
        // Even if the file has been replaced since.
        if read_link(&exe).is_ok_and(|path| path.as_os_str() == mapped.path.as_str()) {
            return Some(exe.into());
        }
        let path = PathBuf::from(format!("/proc/{}/root{}", self.id, mapped.path));
        (path.metadata().ok()?.ino() == mapped.inode).then_some(path)
    }

    /// Has the code at an address ready for unwinding, and says which it is.
    fn prepare(&mut self, address: u64, files: &mut Files) -> Option<usize> {
        let index = self.mapped.iter().position(|mapped| mapped.range.contains(&address))?;
        let mapped = &self.mapped[index];
        if mapped.bias.is_some() {
            return Some(index);
        }
        let rules = files
            .rules
            .entry(mapped.name.clone())
            .or_insert_with(|| self.rules(mapped).map(Rc::new))
            .clone()?;
        let offset = mapped.offset;
        // Both are moved to the beginning of a page.
        let within = |from: u64, size: u64| {
            offset <= from && from - offset < 1 << 16 || offset.wrapping_sub(from) < size
        };
        let segment = rules.segments.iter().find(|segment| within(segment.offset, segment.size))?;
        let first = segment.address.wrapping_add(offset.wrapping_sub(segment.offset));
        let bias = mapped.range.start.wrapping_sub(first);
        let module = Module::new(String::new(), mapped.range.clone(), bias, rules.sections.clone());
        self.unwinder.add_module(module);
        self.mapped[index].bias = Some(bias);
        Some(index)
    }

    fn rules(&self, mapped: &Mapped) -> Option<Rules> {
        if mapped.inode != 0 {
            return Rules::of_file(&self.open_path(mapped)?);
        }
        let size = mapped.range.end - mapped.range.start;
        let mut bytes = vec![0; usize::try_from(size.min(VDSO)).ok()?];
        self.memory.read_exact_at(&mut bytes, mapped.range.start).ok()?;
        Rules::of(&*bytes)
    }

    /// Whose the code at an address is, and which functions, the innermost first.
    fn functions(
        &self,
        index: usize,
        address: FrameAddress,
        files: &mut Files,
    ) -> Vec<(Owner, Option<Place>)> {
        let mapped = &self.mapped[index];
        if let Some(owner) = owner_of_file(&mapped.path) {
            return vec![(owner, None)];
        }
        let (Some(bias), Some(path)) = (mapped.bias, self.open_path(mapped)) else { return Vec::new() };
        let symbols =
            files.symbols.entry(mapped.name.clone()).or_insert_with(|| Rc::new(Symbols::of_file(path)));
        let functions = symbols.functions(address.address_for_lookup().wrapping_sub(bias));
        let place = |function: super::symbols::Function| {
            let source = function.source.as_ref().map(|(file, _)| file.as_str());
            let owner = if function.is_transom { Owner::Transom } else { owner(&function.name, source) };
            let (file, line) = match function.source {
                Some((file, line)) => (file, Some(line)),
                None => (mapped.path.trim_end_matches(" (deleted)").to_owned(), None),
            };
            (owner, Some(Place { function: function.name, file, line }))
        };
        functions.into_iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let code = "7f0a1000-7f0a2000 r-xp 00001000 fd:01 1234      /home/u/my program (deleted)";
        let mapped = Mapped::of(code).unwrap();
        assert_eq!(mapped.path, "/home/u/my program (deleted)");
        assert_eq!((mapped.range, mapped.offset, mapped.inode), (0x7f0a_1000..0x7f0a_2000, 0x1000, 1234));
        assert!(Mapped::of("7ffe000-7fff000 r-xp 00000000 00:00 0           [vdso]").is_some());
        for other in ["1000-2000 rw-p 00000000 fd:01 7 /bin/x", "1000-2000 rwxp 00000000 00:00 0 ", "x", ""] {
            assert!(Mapped::of(other).is_none(), "{other}");
        }
    }
}
