//! A bar on a terminal; silence in a pipe.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a file was read, how fast marks go and how long it takes
/// still.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    marks: u64,
}

impl Progress {
    /// Of a file of `bytes` (unknown for a pipe), of which `from` are done.
    pub(super) fn new(name: &str, bytes: Option<u64>, from: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(bytes, target);
        let template = match bytes {
            Some(_) => "{prefix} {wide_bar} {percent}%  {msg}  {eta} left",
            None => "{prefix} {spinner} {bytes}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_position(from);
        bar.reset_eta();
        Self { bar, start: Instant::now(), marks: 0 }
    }

    /// `marks` more were answered; the file is read up to `offset`.
    pub(super) fn advance(&mut self, offset: u64, marks: u64) {
        self.marks += marks;
        let rate = self.marks as f64 / self.start.elapsed().as_secs_f64().max(0.001);
        self.bar.set_position(offset);
        self.bar.set_message(format!("{} marks, {rate:.0}/s", self.marks));
    }

    /// Prints `line` without breaking the bar.
    pub(super) fn note(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
