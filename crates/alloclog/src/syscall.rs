//! System calls that leave `errno` alone and need no part of libc, which may not have started yet.
//!
//! Each returns the kernel's result: a negative number is an error.

use core::arch::asm;

/// Makes a system call of at most three arguments.
#[inline(always)]
pub(crate) unsafe fn syscall3(number: i64, a: usize, b: usize, c: usize) -> isize {
    let result: isize;
    // SAFETY: the kernel changes only the registers named here, and memory that the caller passes.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b,
            in("rdx") c, out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Makes a system call of at most six arguments.
#[inline(always)]
pub(crate) unsafe fn syscall6(number: i64, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: as above.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b,
            in("rdx") c, in("r10") d, in("r8") e, in("r9") f, out("rcx") _, out("r11") _,
            options(nostack));
    }
    result
}

/// Returns the address of the control block of this thread, which names it among its siblings.
#[inline(always)]
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: on x86-64 Linux the segment register leads to the control block, whose third word is
    // its own address.
    unsafe {
        asm!("mov {}, fs:0x10", out(reg) pointer, options(nostack, pure, readonly, preserves_flags));
    }
    pointer
}

/// Returns the id of this process.
pub(crate) fn process_id() -> u32 {
    // SAFETY: takes no pointer.
    unsafe { syscall3(libc::SYS_getpid, 0, 0, 0) as u32 }
}

/// Returns the id of this thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: takes no pointer.
    unsafe { syscall3(libc::SYS_gettid, 0, 0, 0) as u32 }
}

/// Returns the id of the parent of this process.
pub(crate) fn parent_id() -> u32 {
    // SAFETY: takes no pointer.
    unsafe { syscall3(libc::SYS_getppid, 0, 0, 0) as u32 }
}

/// Returns the time of the monotonic clock in nanoseconds. libc reads it without a system call
/// where the kernel has a function for that (vDSO): a program may have forbidden itself the call.
pub(crate) fn clock_nanoseconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: libc writes the structure; it leaves `errno` alone, as this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Closes a file descriptor.
pub(crate) unsafe fn close(descriptor: usize) {
    // SAFETY: the caller owns the descriptor.
    unsafe { syscall3(libc::SYS_close, descriptor, 0, 0) };
}
