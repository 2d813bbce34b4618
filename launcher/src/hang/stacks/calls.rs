//! Which call has led to a function: how its frame is found on the stack where it needs a frame pointer and none is known.
//!
//! The kernel tells of a sleeping thread its next instruction and its stack pointer, and unwinding finds the frame pointer once a function
//! has saved it. If one is needed before that (Rust's standard library, systems that compile everything with frame pointers),
//! each word of the stack may be one. It is if the address behind it follows a call of this very function, and all further out are of calls.

use std::io;

use framehop::UnwindRegsNative;

/// Reads memory of the process.
pub type Read<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + 'a;

#[cfg(target_arch = "x86_64")]
pub fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.bp()
}

#[cfg(target_arch = "x86_64")]
pub fn with_frame_pointer(registers: &UnwindRegsNative, pointer: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.ip(), registers.sp(), pointer)
}

#[cfg(target_arch = "aarch64")]
pub fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.fp()
}

#[cfg(target_arch = "aarch64")]
pub fn with_frame_pointer(registers: &UnwindRegsNative, pointer: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.lr(), registers.sp(), pointer)
}

/// Whether the instruction before an address is a call whose target is that function, by the instruction or by a table of the linker's.
#[cfg(target_arch = "x86_64")]
pub fn leads_to(returns_to: u64, function: u64, read: &Read<'_>) -> bool {
    target(returns_to, read).is_some_and(|target| target == function || stub(target, read) == Some(function))
}

#[cfg(target_arch = "x86_64")]
fn target(returns_to: u64, read: &Read<'_>) -> Option<u64> {
    let mut code = [0; 6];
    read(returns_to.checked_sub(6)?, &mut code).ok()?;
    match code {
        // call [rip + DISTANCE]
        [0xff, 0x15, a, b, c, d] => word(away(returns_to, [a, b, c, d]), read),
        // call DISTANCE
        [_, 0xe8, a, b, c, d] => Some(away(returns_to, [a, b, c, d])),
        _ => None,
    }
}

/// Whether the instruction before an address is a call of any kind.
#[cfg(target_arch = "x86_64")]
pub fn follows_one(returns_to: u64, read: &Read<'_>) -> bool {
    let mut code = [0; 7];
    if returns_to.checked_sub(7).is_none_or(|from| read(from, &mut code).is_err()) {
        return false;
    }
    // One by a pointer in a register or in memory, whose length the second byte and the third tell.
    let by_pointer = |start: usize| match code[start..] {
        [0xff, mode, ref rest @ ..] if mode >> 3 & 7 == 2 => {
            let wide = rest.first().is_some_and(|scale| scale & 7 == 5);
            let length = match (mode >> 6, mode & 7) {
                (3, _) => 2,
                (0, 4) if !wide => 3,
                (0, 4) | (2, 4) => 7,
                (0, 5) | (2, _) => 6,
                (1, 4) => 4,
                (0, _) => 2,
                (1.., _) => 3,
            };
            start + length == code.len()
        }
        _ => false,
    };
    code[2] == 0xe8 || (0..6).any(by_pointer)
}

/// Where a stub for a function of another library jumps to.
#[cfg(target_arch = "x86_64")]
fn stub(at: u64, read: &Read<'_>) -> Option<u64> {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let mut code = [0; 11];
    read(at, &mut code).ok()?;
    let mut start = 0;
    if code.starts_with(&ENDBR64) {
        start += ENDBR64.len();
    }
    // A prefix that says that the target is checked.
    start += usize::from(code[start] == 0xf2);
    match code[start..] {
        // jmp [rip + DISTANCE]
        [0xff, 0x25, a, b, c, d, ..] => word(away(at.wrapping_add(start as u64 + 6), [a, b, c, d]), read),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
fn away(from: u64, distance: [u8; 4]) -> u64 {
    from.wrapping_add_signed(i32::from_le_bytes(distance).into())
}

#[cfg(target_arch = "x86_64")]
fn word(address: u64, read: &Read<'_>) -> Option<u64> {
    let mut word = [0; 8];
    read(address, &mut word).ok()?;
    Some(u64::from_le_bytes(word))
}

/// On this machine a leaf's caller stands in a register that the kernel does not tell either.
#[cfg(target_arch = "aarch64")]
pub fn leads_to(_: u64, _: u64, _: &Read<'_>) -> bool {
    false
}

#[cfg(target_arch = "aarch64")]
pub fn follows_one(_: u64, _: &Read<'_>) -> bool {
    false
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    const CODE: u64 = 0x40_0000;
    const FUNCTION: u64 = 0x40_0800;
    const STUB: u64 = 0x40_0100;
    const TABLE: u64 = 0x40_0400;

    /// Whether a call leads to the function, which is reached by a stub, too.
    fn leads(call: &[u8], stub: &[u8], function: u64) -> bool {
        let mut memory = vec![0x90; 0x1000];
        let mut put = |at: u64, bytes: &[u8]| {
            let start = usize::try_from(at - CODE).unwrap();
            memory[start..start + bytes.len()].copy_from_slice(bytes);
        };
        let returns_to = CODE + 0x20;
        put(returns_to - call.len() as u64, call);
        put(STUB, stub);
        put(TABLE, &FUNCTION.to_le_bytes());
        let read = |address: u64, bytes: &mut [u8]| {
            let start = usize::try_from(address.wrapping_sub(CODE)).unwrap();
            let from = memory.get(start..start + bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
            bytes.copy_from_slice(from);
            Ok(())
        };
        leads_to(returns_to, function, &read)
    }

    /// An instruction that ends with a distance from its end, which is at `end`.
    fn to(code: &[u8], end: u64, target: u64) -> Vec<u8> {
        let distance = i32::try_from(target.cast_signed() - end.cast_signed()).unwrap();
        [code, &distance.to_le_bytes()].concat()
    }

    #[test]
    fn calls_of_a_function() {
        let end = CODE + 0x20;
        let direct = to(&[0xe8], end, FUNCTION);
        let far = to(&[0xe8], end, CODE + 0x4000_0000);
        let by_table = to(&[0xff, 0x15], end, TABLE);
        let by_stub = to(&[0xe8], end, STUB);
        let plain = to(&[0xff, 0x25], STUB + 6, TABLE);
        let marked = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &to(&[0xff, 0x25], STUB + 10, TABLE)].concat();
        let checked = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &to(&[0xf2, 0xff, 0x25], STUB + 11, TABLE)].concat();
        for (call, stub) in [
            (&direct, &plain),
            (&by_table, &plain),
            (&by_stub, &plain),
            (&by_stub, &marked),
            (&by_stub, &checked),
        ] {
            assert!(leads(call, stub, FUNCTION), "{call:x?} {stub:x?}");
            assert!(!leads(call, stub, FUNCTION + 1), "{call:x?} {stub:x?}");
        }
        // A target that cannot be read, a register's, and no call at all.
        for call in [&far[..], &[0xff, 0xd0], &[0xe9, 0, 0, 0, 0], &[]] {
            assert!(!leads(call, &plain, FUNCTION), "{call:x?}");
        }
    }

    #[test]
    fn calls_of_any_kind() {
        let is_call = |code: &[u8]| {
            let memory = [&[0x90; 8][..], code].concat();
            let read = |address: u64, bytes: &mut [u8]| {
                bytes.copy_from_slice(&memory[usize::try_from(address - CODE).unwrap()..][..bytes.len()]);
                Ok(())
            };
            follows_one(CODE + memory.len() as u64, &read)
        };
        for code in [
            &[0xe8, 1, 2, 3, 4][..],
            &[0xff, 0xd0],                         // rax
            &[0x41, 0xff, 0xd4],                   // r12
            &[0xff, 0x10],                         // [rax]
            &[0xff, 0x14, 0xc8],                   // [rax + rcx * 8]
            &[0xff, 0x50, 0x18],                   // [rax + 24]
            &[0x41, 0xff, 0x54, 0x24, 0x18],       // [r12 + 24]
            &[0xff, 0x15, 1, 2, 3, 4],             // [rip + DISTANCE]
            &[0xff, 0x90, 1, 2, 3, 4],             // [rax + DISTANCE]
            &[0x41, 0xff, 0x94, 0x24, 1, 2, 3, 4], // [r12 + DISTANCE]
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],       // [rax * 8 + DISTANCE]
        ] {
            assert!(is_call(code), "{code:x?}");
            assert!(!is_call(&[code, &[0xc3]].concat()), "{code:x?}");
        }
        for code in [&[0x0f, 0x05][..], &[0xff, 0xe0], &[0xff, 0x25, 1, 2, 3, 4], &[0xe9, 1, 2, 3, 4], &[]] {
            assert!(!is_call(code), "{code:x?}");
        }
    }
}
