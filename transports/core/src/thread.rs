//! Which thread this is: a number that no other living thread of the process has, without a call.

/// A number of the running thread, never 0. It may be another thread's once this one has ended.
#[inline(always)]
pub fn current() -> usize {
    pointer()
}

/// The thread pointer.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: the word at %fs:0 is the thread pointer itself (ELF Handling For Thread-Local Storage, §3.4.6: variant II of
    // x86-64); reading it changes nothing.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, pure, readonly, preserves_flags));
    }
    pointer
}

/// The thread pointer.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
#[inline(always)]
fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: TPIDR_EL0 is the thread pointer (ELF for the Arm 64-bit Architecture, "Thread Local Storage"); reading it
    // changes nothing.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, pure, preserves_flags));
    }
    pointer
}

/// The address of a variable of the thread's own.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
fn pointer() -> usize {
    std::thread_local! {
        static OWN: u8 = const { 0 };
    }
    OWN.try_with(|own| std::ptr::from_ref(own).addr()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_threads_have_different_numbers() {
        let gate = std::sync::Barrier::new(4);
        let numbers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        gate.wait();
                        let number = current();
                        assert_eq!(number, current());
                        gate.wait();
                        number
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::HashSet<_>>()
        });
        assert_eq!((numbers.len(), numbers.contains(&0)), (4, false));
    }
}
