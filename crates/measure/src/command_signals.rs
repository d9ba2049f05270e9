//! Signals to this program that are meant for the command that it measures.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Signals that have arrived, as handlers note them.
#[derive(Debug, Clone, Default)]
pub struct CommandSignals {
    /// The number of a signal that requests the end, SIGTERM or SIGHUP: it is sent on to the
    /// command. 0: none.
    pub termination: Arc<AtomicUsize>,
    /// Set by an interrupt. The command, in the same group of processes, gets it as well, and
    /// decides.
    pub interrupt: Arc<AtomicBool>,
}

impl CommandSignals {
    /// Returns whether a signal has arrived that was not sent on.
    pub(crate) fn is_any(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.termination.load(Ordering::Relaxed) != 0
    }

    /// Sends a signal that requests the end on to the command; returns whether there was one. The
    /// child must not have been waited for: its id may be another's then.
    pub(crate) fn send_on(&self, child: &Child) -> bool {
        self.interrupt.store(false, Ordering::Relaxed);
        let number = self.termination.swap(0, Ordering::Relaxed);
        let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
        if let Some(signal) = signal {
            // A command that has just ended is past signals.
            let _ = kill_process(Pid::from_child(child), signal);
        }
        signal.is_some()
    }
}
