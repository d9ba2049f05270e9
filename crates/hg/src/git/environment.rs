//! The variables by which git is told of its repository.
//!
//! git sets them for hooks and remote helpers, and they hold in the whole process. They are those
//! of one repository: where a person names another one, git must not see them.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variables of one repository, as `git rev-parse --local-env-vars` lists them, with its
/// namespace and the mark of changes that are not accepted yet. Those of settings are left out:
/// people set them, too.
const REPOSITORY_VARIABLES: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

static ARE_VARIABLES_IGNORED: AtomicBool = AtomicBool::new(false);

/// Keeps the variables of a repository from git, from now on in the whole process, because a person
/// has named the repository.
pub fn ignore_repository_variables() {
    ARE_VARIABLES_IGNORED.store(true, Ordering::Relaxed);
}

/// Returns a command that starts git.
pub(super) fn git_command() -> Command {
    let mut command = Command::new("git");
    if ARE_VARIABLES_IGNORED.load(Ordering::Relaxed) {
        for name in REPOSITORY_VARIABLES {
            command.env_remove(name);
        }
    }
    command
}
