//! Progress bars for long work: drawn on a terminal, silent elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar over bytes, or a spinner if the total is unknown.
pub(crate) fn byte_progress(quiet: bool, total: Option<u64>) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(total, target);
    let template = match total {
        Some(_) => "{wide_bar} {bytes}/{total_bytes}  {msg}  {eta} left",
        None => "{spinner} {bytes}  {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Returns a bar over a number of items, which becomes known later.
pub(crate) fn count_progress(quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {eta} left") {
        bar.set_style(style);
    }
    bar
}
