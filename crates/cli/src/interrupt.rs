//! Control-C: the first asks for an end between two batches, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flag that the first interrupt sets. Nothing that was committed is lost by the second one,
/// either.
pub(crate) fn install_interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    // Where no handler can be set the default one ends the process, which is safe as well.
    let _default = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    flag
}

/// Has every interrupt, and every request to end, do this instead.
pub(crate) fn on_interrupt(what: impl Fn() + Send + 'static) {
    let _default = ctrlc::set_handler(what);
}

/// What is to end in order has so long for it.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Asks for an end in order at an interrupt; what has not ended in a moment is ended.
pub(crate) fn on_terminate(ask: impl Fn() + Send + 'static) {
    let _default = ctrlc::set_handler(move || {
        ask();
        std::thread::sleep(SHUTDOWN_GRACE_PERIOD);
        std::process::exit(130);
    });
}

/// While this is set, somebody else in the foreground is meant by an interrupt: an editor.
pub(crate) type InterruptGuard = Arc<AtomicBool>;

/// Says something before an interrupt ends the program. What is given keeps the program alive while
/// it is set.
pub(crate) fn print_hint_on_interrupt(what: String) -> InterruptGuard {
    let elsewhere = InterruptGuard::default();
    let ignored = Arc::clone(&elsewhere);
    let _default = ctrlc::set_handler(move || {
        if !ignored.load(Ordering::Relaxed) {
            crate::output::print_message("hint", &what);
            std::process::exit(130);
        }
    });
    elsewhere
}
