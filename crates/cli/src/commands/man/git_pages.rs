//! git-remote-hg(1) and git-cinnabar(1): larder under the names that git has for it.

use super::markdown;
use super::pages::{MANUAL, ManualPage, VERSION, write_entry};
use clap_mangen::roff::{Roff, bold, roman};

/// The documentation of Mercurial through git.
const HG_DOCUMENTATION: &str = include_str!("../../../../../docs/hg.md");

/// Renders git-remote-hg(1) from the documentation.
pub(super) fn render_helper_page() -> ManualPage {
    let mut roff = begin_page("git-remote-hg", "repositories of Mercurial for git");
    for line in ["git clone hg::URL", "git fetch"] {
        roff.text([bold(line)]);
        roff.control("br", []);
    }
    roff.control("SH", ["DESCRIPTION"]);
    markdown::write(&mut roff, HG_DOCUMENTATION);
    end_page("git-remote-hg", roff, "larder-hg(1), git-cinnabar(1), gitremote-helpers(7)")
}

/// Renders git-cinnabar(1) from its help.
pub(super) fn render_cinnabar_page(mut command: clap::Command) -> ManualPage {
    command.build();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut roff = begin_page("git-cinnabar", &about);
    roff.text([bold("git cinnabar"), roman(" COMMAND")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([
        bold("git-remote-hg(1)"),
        roman(" describes the settings, and what is converted. "),
        bold("larder hg"),
        roman(" has the same and more, with other messages."),
    ]);
    roff.control("SH", ["COMMANDS"]);
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = subcommand.get_name();
        let usage = subcommand.clone().render_usage().to_string();
        let operands = usage.trim_start_matches("Usage:").trim();
        let operands = operands.trim_start_matches("git-cinnabar").trim_start();
        let operands = operands.trim_start_matches(name);
        let usage = format!("git cinnabar {name}{operands}");
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        write_entry(&mut roff, &usage, &about);
        roff.control("RS", []);
        let is_shown =
            |argument: &&clap::Arg| !argument.is_hide_set() && argument.get_id() != "help";
        for argument in subcommand.get_arguments().filter(is_shown) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            write_entry(&mut roff, &argument.to_string(), &help);
        }
        roff.control("RE", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    write_entry(&mut roff, "0", "Success.");
    write_entry(&mut roff, "1", "Any error.");
    end_page("git-cinnabar", roff, "git-remote-hg(1), larder-hg(1)")
}

fn begin_page(name: &str, about: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("TH", [name.to_uppercase().as_str(), "1", "", VERSION, MANUAL]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    roff
}

fn end_page(name: &str, mut roff: Roff, related: &str) -> ManualPage {
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(related)]);
    ManualPage { name: name.to_string(), section: "1", text: roff.to_roff() }
}
