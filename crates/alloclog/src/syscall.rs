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

/// Returns the id of the parent of this process.
pub(crate) fn parent_id() -> u32 {
    // SAFETY: takes no pointer.
    unsafe { syscall3(libc::SYS_getppid, 0, 0, 0) as u32 }
}

/// Returns whether there is a process of this id, as far as can be seen.
pub(crate) fn process_exists(process: u32) -> bool {
    // SAFETY: the signal 0 only asks.
    let result = unsafe { syscall3(libc::SYS_kill, process as usize, 0, 0) };
    result != -(libc::ESRCH as isize)
}

/// Returns the time of the monotonic clock after so many nanoseconds, in seconds and nanoseconds.
pub(crate) fn time_after(nanoseconds: i64) -> [i64; 2] {
    let mut time = [0_i64; 2];
    // SAFETY: the kernel writes two numbers.
    unsafe {
        let clock = libc::CLOCK_MONOTONIC as usize;
        syscall3(libc::SYS_clock_gettime, clock, time.as_mut_ptr() as usize, 0);
    }
    let [seconds, part] = time;
    let part = part + nanoseconds;
    [seconds + part / 1_000_000_000, part % 1_000_000_000]
}

/// Closes a file descriptor.
pub(crate) unsafe fn close(descriptor: usize) {
    // SAFETY: the caller owns the descriptor.
    unsafe { syscall3(libc::SYS_close, descriptor, 0, 0) };
}
