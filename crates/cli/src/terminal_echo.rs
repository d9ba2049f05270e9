//! Switches off the echo of keys while a list is on the terminal.
//!
//! The terminal is as before when the program ends, is interrupted, or is suspended; when it goes
//! on in the foreground, the echo is off again. Separate from `screen`, which only computes bytes.

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use std::io::{Stdin, stdin};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Keys are not echoed while this value lives.
pub(crate) struct SilentTerminal {
    modes: Arc<TerminalModes>,
    signals: Option<(Handle, JoinHandle<()>)>,
}

/// The modes of the terminal of standard input.
pub(crate) struct TerminalModes {
    terminal: Stdin,
    original: Termios,
}

impl SilentTerminal {
    /// Switches off the echo. `None`: standard input is no terminal.
    pub(crate) fn begin() -> Option<SilentTerminal> {
        let terminal = stdin();
        let original = tcgetattr(&terminal).ok()?;
        let modes = Arc::new(TerminalModes { terminal, original });
        modes.disable_echo();
        let signals = Signals::new([SIGTSTP, SIGCONT, SIGQUIT]).ok().map(|mut signals| {
            let (handle, modes) = (signals.handle(), Arc::clone(&modes));
            let follow = move || {
                for signal in signals.forever() {
                    if signal != SIGCONT {
                        modes.restore();
                        // Returns when the process goes on.
                        let _not_stopped = emulate_default_handler(signal);
                    }
                    modes.disable_echo();
                }
            };
            (handle, std::thread::spawn(follow))
        });
        Some(SilentTerminal { modes, signals })
    }

    /// Returns the modes, to restore them when the process is terminated.
    pub(crate) fn modes(&self) -> Arc<TerminalModes> {
        Arc::clone(&self.modes)
    }
}

impl Drop for SilentTerminal {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.signals.take() {
            handle.close();
            let _panicked = thread.join();
        }
        self.modes.restore();
    }
}

impl TerminalModes {
    /// Returns whether the process may change the terminal: in the background it would be stopped.
    fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    }

    fn disable_echo(&self) {
        let mut modes = self.original.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        if self.is_foreground() {
            let _without_terminal = tcsetattr(&self.terminal, OptionalActions::Now, &modes);
        }
    }

    /// Restores the modes, and drops the keys that were typed: they were not for the shell.
    pub(crate) fn restore(&self) {
        if self.is_foreground() {
            let _without_terminal = tcflush(&self.terminal, QueueSelector::IFlush);
            let _without_terminal = tcsetattr(&self.terminal, OptionalActions::Now, &self.original);
        }
    }
}
