//! Control-C: the first stops between two batches, the second stops at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Returns a flag that the first interrupt sets. The second ends the process, which loses nothing
/// that was committed.
pub(crate) fn install_interrupt_flag() -> Arc<AtomicBool> {
    install_interrupt_wake(|| {})
}

/// Returns a flag that the first SIGINT sets, at once, unless it is ignored (`&` of a shell); the
/// second ends the process. SIGTERM and SIGHUP are left to [`note_termination`].
pub(crate) fn note_interrupt() -> Arc<AtomicBool> {
    let noted = Arc::new(AtomicBool::new(false));
    if !is_ignored(SIGINT) {
        // Where that fails, an interrupt ends the process.
        let _failure = flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&noted))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&noted)));
    }
    noted
}

/// Returns a number that SIGTERM and SIGHUP set to theirs, unless they are ignored (`nohup`); they
/// count as interrupts, too, if a flag of interrupts is installed before.
pub(crate) fn note_termination() -> Arc<AtomicUsize> {
    let number = Arc::new(AtomicUsize::new(0));
    for signal in [SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        let value = usize::try_from(signal).unwrap_or_default();
        // Where that fails, they are interrupts only.
        let _failure = flag::register_usize(signal, Arc::clone(&number), value);
    }
    number
}

/// Returns whether this program ignores a signal: then a command that it starts does so as well.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read("/proc/self/status").unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Returns a flag that the first interrupt sets before it calls `wake`. The second ends the
/// process, as with [`install_interrupt_flag`].
pub(crate) fn install_interrupt_wake(wake: impl Fn() + Send + 'static) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    on_interrupt(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        wake();
    });
    flag
}

/// Interrupts of work that only reads. The first one ends the process, until the work has begun to
/// ask for interrupts: from then on it sets a flag, as with [`install_interrupt_flag`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadingInterrupt {
    is_asked_for: Arc<AtomicBool>,
    flag: Arc<AtomicBool>,
}

impl ReadingInterrupt {
    /// Installs the handler, which prints a note if it ends the process.
    pub(crate) fn install(note: &'static str) -> ReadingInterrupt {
        let interrupt = ReadingInterrupt::default();
        let installed = interrupt.clone();
        on_interrupt(move || {
            let is_second = installed.flag.swap(true, Ordering::Relaxed);
            if !installed.is_asked_for.load(Ordering::Relaxed) {
                crate::output::print_message("note", note);
                std::process::exit(130);
            }
            if is_second {
                std::process::exit(130);
            }
        });
        interrupt
    }

    /// Returns whether there was an interrupt. Later ones wait until this is asked again.
    pub(crate) fn ask(&self) -> bool {
        self.is_asked_for.store(true, Ordering::Relaxed);
        self.flag.load(Ordering::Relaxed)
    }
}

/// Runs this at every interrupt and termination request (SIGINT, SIGTERM, SIGHUP) instead of
/// ending. Those that are ignored (`nohup`, `&` of a shell) stay so, also in programs that this one
/// starts.
pub(crate) fn on_interrupt(action: impl Fn() + Send + 'static) {
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let (sender, receiver) = mpsc::channel::<Signals>();
    let run = move || receiver.iter().for_each(|mut it| it.forever().for_each(|_| action()));
    // If no thread can be made, or no handler set, the default one ends the process, which is safe
    // too. The thread comes first, as signals without one would be lost.
    if std::thread::Builder::new().spawn(run).is_ok()
        && let Ok(signals) = Signals::new(signals)
    {
        // The thread is there to receive them.
        let _sent = sender.send(signals);
    }
}

/// Time for an orderly shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Requests an orderly shutdown at an interrupt, and ends the process after a grace period.
pub(crate) fn on_terminate(request_shutdown: impl Fn() + Send + 'static) {
    on_interrupt(move || {
        request_shutdown();
        std::thread::sleep(SHUTDOWN_GRACE_PERIOD);
        std::process::exit(130);
    });
}

/// While this is set, interrupts are for the program in the foreground, such as an editor.
pub(crate) type InterruptGuard = Arc<AtomicBool>;

/// Prints a hint before an interrupt ends the program. The program ignores interrupts while the
/// returned guard is set.
pub(crate) fn print_hint_on_interrupt(hint: String) -> InterruptGuard {
    let guard = InterruptGuard::default();
    let ignored = Arc::clone(&guard);
    on_interrupt(move || {
        if !ignored.load(Ordering::Relaxed) {
            crate::output::print_message("hint", &hint);
            std::process::exit(130);
        }
    });
    guard
}
