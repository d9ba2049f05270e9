//! A new ring, made known to the collector: a memory file whose descriptor is sent through the
//! socket at which the collector listens.
//!
//! The environment is read from the kernel, because the first allocation of a program comes before
//! libc has set up its own copy; so the very first call is recorded.

use crate::ring_layout::{
    ENVIRONMENT_VARIABLE, HEADER_BYTES, RING_MAGIC, RING_VERSION, offset, ring_state,
};
use crate::syscall::{clock_nanoseconds, close, process_id, syscall3, syscall6};
use core::mem::{size_of, zeroed};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};

/// The longest path of a socket, with its final zero.
const MAX_PATH_BYTES: usize = 108;
/// Nanoseconds for which a program waits at its start until the collector accepts its connection,
/// and between two attempts.
const CONNECT_NANOSECONDS: i64 = 10_000_000_000;
const CONNECT_PAUSE_NANOSECONDS: usize = 5_000_000;
/// The numbers before the path.
const SETTINGS: usize = 3;

/// The settings of a recording, from the environment variable.
#[derive(Clone, Copy)]
pub(crate) struct RecordingSettings {
    pub(crate) capacity_log2: u32,
    /// Bytes between two samples of the stack; 0: none are taken.
    pub(crate) stack_interval: u64,
    path: [u8; MAX_PATH_BYTES],
    path_bytes: usize,
}

/// The process that this one comes from.
#[derive(Clone, Copy)]
pub(crate) struct RingOrigin {
    pub(crate) parent: u32,
    /// The inode of the ring of the parent that this process was forked from, or 0.
    pub(crate) parent_ring: u64,
    /// The number of the fork, and the write position of the parent at that moment; 0: not known.
    pub(crate) fork_number: u32,
    pub(crate) fork_position: u64,
}

/// A ring in the memory of this process.
pub(crate) struct NewRing {
    pub(crate) words: *mut u64,
    /// The inode of its file, by which children of forks name it.
    pub(crate) inode: u64,
}

/// Reads the settings from the environment with which this program was started; `None` without the
/// variable, or if it is not as it should be.
pub(crate) fn read_settings() -> Option<RecordingSettings> {
    let mut parser = VariableParser::new();
    let mut chunk = [0_u8; 1024];
    // SAFETY: the path ends with a zero byte, the buffer is as long as the kernel is told.
    unsafe {
        let file = syscall6(
            libc::SYS_openat,
            [
                libc::AT_FDCWD as usize,
                c"/proc/self/environ".as_ptr() as usize,
                (libc::O_RDONLY | libc::O_CLOEXEC) as usize,
                0,
                0,
                0,
            ],
        );
        if file < 0 {
            return None;
        }
        loop {
            let count =
                syscall3(libc::SYS_read, file as usize, chunk.as_mut_ptr() as usize, chunk.len());
            if count <= 0 || chunk.iter().take(count as usize).any(|byte| parser.take(*byte)) {
                break;
            }
        }
        close(file as usize);
    }
    parser.settings()
}

/// Finds the variable among those of an environment, byte by byte.
struct VariableParser {
    /// Bytes of `NAME=` that matched in this variable; `None`: it is another one.
    matched: Option<usize>,
    /// The index of the current number; [`SETTINGS`]: the path.
    part: usize,
    numbers: [u64; SETTINGS],
    path: [u8; MAX_PATH_BYTES],
    path_bytes: usize,
    is_complete: bool,
}

impl VariableParser {
    fn new() -> VariableParser {
        VariableParser {
            matched: Some(0),
            part: 0,
            numbers: [0; SETTINGS],
            path: [0; MAX_PATH_BYTES],
            path_bytes: 0,
            is_complete: false,
        }
    }

    /// Takes the next byte; returns whether the variable is complete.
    fn take(&mut self, byte: u8) -> bool {
        let name = ENVIRONMENT_VARIABLE.as_bytes();
        match self.matched {
            Some(matched) if matched > name.len() => return self.take_value(byte),
            Some(matched) => {
                let expected = name.get(matched).copied().unwrap_or(b'=');
                self.matched = if byte == expected { Some(matched + 1) } else { None };
            }
            None => {}
        }
        if byte == 0 {
            self.matched = Some(0);
        }
        false
    }

    fn take_value(&mut self, byte: u8) -> bool {
        if byte == 0 {
            self.is_complete = true;
            return true;
        }
        match self.numbers.get_mut(self.part) {
            Some(_) if byte == b':' => self.part += 1,
            Some(number) => {
                *number = number.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0')));
            }
            None => {
                // The last byte stays zero.
                if self.path_bytes + 1 < MAX_PATH_BYTES
                    && let Some(place) = self.path.get_mut(self.path_bytes)
                {
                    *place = byte;
                }
                self.path_bytes += 1;
            }
        }
        false
    }

    fn settings(self) -> Option<RecordingSettings> {
        let [capacity_log2, stack_interval, _] = self.numbers;
        let is_valid = self.is_complete
            && (1..MAX_PATH_BYTES).contains(&self.path_bytes)
            && (10..=24).contains(&capacity_log2);
        is_valid.then_some(RecordingSettings {
            capacity_log2: capacity_log2 as u32,
            stack_interval,
            path: self.path,
            path_bytes: self.path_bytes,
        })
    }
}

/// Returns the bytes of a ring.
pub(crate) fn ring_bytes(capacity_log2: u32) -> usize {
    HEADER_BYTES + (8_usize << capacity_log2)
}

/// Makes a ring and sends it to the collector. Returns `None` where that is not possible: this
/// process is then not recorded, which the collector is told.
pub(crate) fn open_ring(settings: &RecordingSettings, origin: RingOrigin) -> Option<NewRing> {
    let ring = make_ring(settings, origin);
    if ring.is_none() {
        // SAFETY: there is no descriptor.
        unsafe { send_message(settings, None, origin) };
    }
    let (header, file) = ring?;
    let bytes = ring_bytes(settings.capacity_log2);
    // SAFETY: the file and its mapping are those of the ring.
    unsafe {
        let inode = inode(file);
        let is_sent = send_message(settings, Some(file), origin);
        close(file);
        if !is_sent {
            syscall3(libc::SYS_munmap, header as usize, bytes, 0);
            return None;
        }
        Some(NewRing { words: header.add(HEADER_BYTES).cast(), inode })
    }
}

/// Makes a ring; returns its memory and its file.
fn make_ring(settings: &RecordingSettings, origin: RingOrigin) -> Option<(*mut u8, usize)> {
    let bytes = ring_bytes(settings.capacity_log2);
    // SAFETY: the name ends with a zero byte; the mapping is new memory of `bytes` bytes.
    unsafe {
        let file = syscall3(
            libc::SYS_memfd_create,
            c"larder-alloclog".as_ptr() as usize,
            (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as usize,
            0,
        );
        if file < 0 {
            return None;
        }
        let file = file as usize;
        let header = if !set_file_bytes(file, bytes) {
            -1
        } else {
            // The collector maps the file, too: nobody may take its pages away.
            let seals = (libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) as usize;
            syscall3(libc::SYS_fcntl, file, libc::F_ADD_SEALS as usize, seals);
            let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
            syscall6(libc::SYS_mmap, [0, bytes, access, libc::MAP_SHARED as usize, file, 0])
        };
        // The last page of addresses holds the error codes.
        if (-4095..0).contains(&header) {
            close(file);
            return None;
        }
        let header = header as *mut u8;
        syscall3(libc::SYS_madvise, header as usize, bytes, libc::MADV_DONTFORK as usize);
        write_header(header, settings, origin);
        Some((header, file))
    }
}

/// Sets the length of a file; returns whether it has it. Beyond the limit for files the kernel
/// sends a signal, which ends the program: so the limit is raised meanwhile, if that is permitted.
unsafe fn set_file_bytes(file: usize, bytes: usize) -> bool {
    let set_limit = |limit: *const libc::rlimit, old: *mut libc::rlimit| {
        let kind = libc::RLIMIT_FSIZE as usize;
        // SAFETY: the kernel reads and writes the structures, as far as they are given.
        unsafe { syscall6(libc::SYS_prlimit64, [0, kind, limit as usize, old as usize, 0, 0]) == 0 }
    };
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    if !set_limit(null(), &raw mut old) {
        return false;
    }
    let needed = bytes as u64;
    let is_raised = old.rlim_cur < needed;
    let raised = libc::rlimit { rlim_cur: needed, rlim_max: old.rlim_max };
    if is_raised && (needed > old.rlim_max || !set_limit(&raw const raised, null_mut())) {
        return false;
    }
    // SAFETY: takes no pointer.
    let result = unsafe { syscall3(libc::SYS_ftruncate, file, bytes, 0) };
    if is_raised {
        set_limit(&raw const old, null_mut());
    }
    result == 0
}

/// Returns the inode of a file; 0: not known.
unsafe fn inode(file: usize) -> u64 {
    // SAFETY: the kernel fills in the structure, of which all zeros are a value.
    unsafe {
        let mut found: libc::stat = zeroed();
        syscall3(libc::SYS_fstat, file, &raw mut found as usize, 0);
        found.st_ino
    }
}

/// Fills in the header of a new ring.
unsafe fn write_header(header: *mut u8, settings: &RecordingSettings, origin: RingOrigin) {
    // SAFETY: the offsets are within the header, and aligned to their sizes.
    unsafe {
        header.add(offset::VERSION).cast::<u32>().write(RING_VERSION);
        header.add(offset::PROCESS).cast::<u32>().write(process_id());
        header.add(offset::CAPACITY).cast::<u64>().write(1 << settings.capacity_log2);
        header.add(offset::PARENT).cast::<u32>().write(origin.parent);
        header.add(offset::FORK_NUMBER).cast::<u32>().write(origin.fork_number);
        header.add(offset::FORK_POSITION).cast::<u64>().write(origin.fork_position);
        header.add(offset::PARENT_RING).cast::<u64>().write(origin.parent_ring);
        header.add(offset::MAGIC).cast::<u64>().write(RING_MAGIC);
        (*header.add(offset::STATE).cast::<AtomicU32>())
            .store(ring_state::RECORDING, Ordering::Release);
    }
}

/// Sends the descriptor of a ring through the collector's socket, or that there is none; returns
/// whether it was sent.
unsafe fn send_message(
    settings: &RecordingSettings,
    file: Option<usize>,
    origin: RingOrigin,
) -> bool {
    // SAFETY: the descriptor is that of a memory file, the socket a new one.
    unsafe {
        let limit = clock_nanoseconds() + CONNECT_NANOSECONDS;
        let socket = loop {
            match connect(settings) {
                Ok(socket) => break socket,
                // Too many others wait for the collector, which may be stopped. The socket of one
                // that is gone refuses connections.
                Err(error) if error == -(libc::EAGAIN as isize) && clock_nanoseconds() <= limit => {
                    let time = [0_usize, CONNECT_PAUSE_NANOSECONDS];
                    syscall3(libc::SYS_nanosleep, time.as_ptr() as usize, 0, 0);
                }
                Err(_) => return false,
            }
        };
        let is_sent = match file {
            Some(file) => send_descriptor(socket, file),
            None => send_failure(socket, origin),
        };
        close(socket);
        is_sent
    }
}

/// Wakes the collector, which sleeps until somebody connects; returns whether it is there as far as
/// can be seen.
pub(crate) fn wake_collector(settings: &RecordingSettings) -> bool {
    // SAFETY: the socket is a new one.
    match unsafe { connect(settings) } {
        Ok(socket) => {
            // SAFETY: as above.
            unsafe { close(socket) };
            true
        }
        // The socket outlives a collector that was killed.
        Err(error) => error != -(libc::ECONNREFUSED as isize),
    }
}

/// Connects to the collector's socket, without waiting.
unsafe fn connect(settings: &RecordingSettings) -> Result<usize, isize> {
    // SAFETY: all structures are as the kernel defines them, and outlive the calls.
    unsafe {
        let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
        let socket = syscall3(libc::SYS_socket, libc::AF_UNIX as usize, kind, 0);
        if socket < 0 {
            return Err(socket);
        }
        let socket = socket as usize;
        let mut address: libc::sockaddr_un = zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (place, byte) in address.sun_path.iter_mut().zip(settings.path) {
            *place = byte as i8;
        }
        let address_bytes = 2 + settings.path_bytes + 1;
        loop {
            let result =
                syscall3(libc::SYS_connect, socket, &raw const address as usize, address_bytes);
            if result == 0 {
                return Ok(socket);
            }
            if result != -(libc::EINTR as isize) {
                close(socket);
                return Err(result);
            }
        }
    }
}

/// A control message that carries one descriptor.
#[repr(C)]
struct DescriptorMessage {
    head: libc::cmsghdr,
    descriptor: i32,
    padding: u32,
}

/// The longest path of a program, and the longest part of a command line, that are sent.
const MAX_PROGRAM_BYTES: usize = 512;
const MAX_ARGUMENT_BYTES: usize = 1024;

/// Sends a descriptor with the path of the program, a zero byte, and its command line: the process
/// may have ended before the collector could look.
unsafe fn send_descriptor(socket: usize, file: usize) -> bool {
    let mut program = [0_u8; MAX_PROGRAM_BYTES + 1];
    let mut arguments = [0_u8; MAX_ARGUMENT_BYTES];
    // SAFETY: the paths end with a zero byte, the buffers are as long as the kernel is told; the
    // structures are as it defines them, and outlive the calls.
    unsafe {
        let path = c"/proc/self/exe".as_ptr() as usize;
        let program_bytes =
            syscall3(libc::SYS_readlink, path, program.as_mut_ptr() as usize, MAX_PROGRAM_BYTES);
        let argument_bytes = read_file(c"/proc/self/cmdline", &mut arguments);
        let mut parts = [
            libc::iovec {
                iov_base: program.as_mut_ptr().cast(),
                iov_len: program_bytes.max(0) as usize + 1,
            },
            libc::iovec { iov_base: arguments.as_mut_ptr().cast(), iov_len: argument_bytes },
        ];
        let mut control: DescriptorMessage = zeroed();
        control.head.cmsg_len = size_of::<libc::cmsghdr>() + size_of::<i32>();
        control.head.cmsg_level = libc::SOL_SOCKET;
        control.head.cmsg_type = libc::SCM_RIGHTS;
        control.descriptor = file as i32;
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len();
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<DescriptorMessage>();
        send(socket, &message)
    }
}

/// Sends that this process has no ring: the inode of the ring of its parent, and the number of the
/// fork there, 8 bytes each, then the path of the program.
unsafe fn send_failure(socket: usize, origin: RingOrigin) -> bool {
    let mut words = [origin.parent_ring, u64::from(origin.fork_number)];
    let mut program = [0_u8; MAX_PROGRAM_BYTES];
    // SAFETY: the structures are as the kernel defines them, and outlive the calls.
    unsafe {
        let path = c"/proc/self/exe".as_ptr() as usize;
        let program_bytes =
            syscall3(libc::SYS_readlink, path, program.as_mut_ptr() as usize, MAX_PROGRAM_BYTES);
        let mut parts = [
            libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) },
            libc::iovec {
                iov_base: program.as_mut_ptr().cast(),
                iov_len: program_bytes.max(0) as usize,
            },
        ];
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len();
        send(socket, &message)
    }
}

unsafe fn send(socket: usize, message: &libc::msghdr) -> bool {
    loop {
        let flags = libc::MSG_NOSIGNAL as usize;
        let message = &raw const *message as usize;
        // SAFETY: the duty of the caller.
        let result = unsafe { syscall3(libc::SYS_sendmsg, socket, message, flags) };
        if result != -(libc::EINTR as isize) {
            return result > 0;
        }
    }
}

/// Reads the beginning of a file; returns the number of bytes.
unsafe fn read_file(path: &core::ffi::CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: the path ends with a zero byte, the buffer is as long as the kernel is told.
    unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let folder = libc::AT_FDCWD as usize;
        let file = syscall6(libc::SYS_openat, [folder, path.as_ptr() as usize, flags, 0, 0, 0]);
        if file < 0 {
            return 0;
        }
        let count =
            syscall3(libc::SYS_read, file as usize, buffer.as_mut_ptr() as usize, buffer.len());
        close(file as usize);
        count.max(0) as usize
    }
}
