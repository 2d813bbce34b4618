//! Which call has led to a function: how its frame is found on the stack where it needs a frame pointer and none is known.
//!
//! The kernel tells of a sleeping thread its next instruction and its stack pointer, and unwinding finds the frame pointer once a function
//! has saved it. If one is needed before that (Rust's standard library, systems that compile everything with frame pointers),
//! each word of the stack may be one. It is if the address behind it follows a call of this very function.

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
