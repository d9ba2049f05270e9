//! Names and passwords from git's credential helpers (gitcredentials(7)).

use super::environment::git_command;
use crate::wire::{CredentialSource, Login};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Output, Stdio};

/// Asks git, which asks its helpers and then the user.
#[derive(Clone, Debug, Default)]
pub struct GitCredentials {
    /// The git directory whose configuration names helpers; `None` outside of repositories.
    pub git_dir: Option<PathBuf>,
}

impl GitCredentials {
    /// Runs `git credential`; its questions go to the terminal.
    fn run(&self, action: &str, fields: &[(&str, &str)]) -> io::Result<Output> {
        let mut input = String::new();
        for (name, value) in fields {
            // A line break would begin another field.
            if value.contains(['\n', '\r', '\0']) {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            input.extend([name, "=", value, "\n"]);
        }
        let mut command = git_command();
        if let Some(directory) = &self.git_dir {
            command.arg("--git-dir").arg(directory);
        }
        command.args(["credential", action]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    }

    fn report(&self, action: &str, url: &str, login: &Login) {
        let fields = [("url", url), ("username", &login.user), ("password", &login.password)];
        // A helper that does not keep a login asks for it again.
        drop(self.run(action, &fields));
    }
}

impl CredentialSource for GitCredentials {
    fn find_login(&mut self, url: &str, user: Option<&str>) -> Option<Login> {
        let mut fields = vec![("url", url)];
        fields.extend(user.map(|user| ("username", user)));
        let output = self.run("fill", &fields).ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        let field = |name: &str| {
            let mut fields = text.lines().filter_map(|line| line.split_once('='));
            fields.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
        };
        Some(Login { user: field("username")?, password: field("password")? })
    }

    fn keep_login(&mut self, url: &str, login: &Login) {
        self.report("approve", url, login);
    }

    fn forget_login(&mut self, url: &str, login: &Login) {
        self.report("reject", url, login);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_helper_of_git_is_asked_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let init = Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status();
        assert!(init.expect("git").success());
        let helper = "!f() { echo \"$1\" >> calls; cat >> calls; \
            test \"$1\" != get || { echo username=user; echo password=a=b; }; }; f";
        let git_dir = folder.path().join(".git");
        let calls = folder.path().join("calls");
        let helper = helper.replace("calls", &format!("'{}'", calls.display()));
        let config = |name: &str, value: &str| {
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(&git_dir).args(["config", "--add", name, value]);
            assert!(command.status().expect("git").success());
        };
        // An empty value removes the helpers of the user.
        config("credential.helper", "");
        config("credential.helper", &helper);
        let mut credentials = GitCredentials { git_dir: Some(git_dir.clone()) };
        let login = credentials.find_login("https://host/repository", Some("user"));
        let login = login.expect("a login");
        assert_eq!(login, Login { user: "user".into(), password: "a=b".into() });
        credentials.keep_login("https://host/repository", &login);
        credentials.forget_login("https://host/repository", &login);
        assert_eq!(credentials.find_login("https://host/\nhost=other", None), None);
        let calls = std::fs::read_to_string(calls).expect("calls");
        let actions: Vec<_> = calls.lines().filter(|line| !line.contains('=')).collect();
        assert_eq!(actions, ["get", "store", "erase"]);
        assert!(calls.contains("host=host\n") && !calls.contains("host=other"), "{calls}");
    }
}
