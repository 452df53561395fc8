//! An S3 server for tests of buckets: `holdall serve`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use holdall::Store;

use crate::support::{Home, Run};

/// A serving process with the bucket `backups`. It is killed with this.
pub struct Server {
    child: Child,
    pub endpoint: String,
}

impl Server {
    pub fn start(home: &Home, more: &[&str]) -> Self {
        if !home.path("server").exists() {
            let store = Store::create(home.path("server")).unwrap();
            store.write(|tx| tx.collection("backups")?.create_collection()).unwrap();
            store.close().unwrap();
        }
        let args = ["serve", "server", "--listen", "127.0.0.1:0", "--json"];
        let mut command = home.command(&[&args[..], more].concat());
        command.env("HOLDALL_ACCESS_KEY", "K").env("HOLDALL_SECRET_KEY", "secret-of-K-0123");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let endpoint = format!("http://{}", told["listening"].as_str().unwrap());
        Self { child, endpoint }
    }

    /// A command whose keys are in the environment.
    pub fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        self.tell(&mut command, home);
        command
    }

    /// Tells a command of the server and of its keys.
    pub fn tell(&self, command: &mut Command, home: &Home) {
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("HOME", home.path(""));
        command.env("AWS_ACCESS_KEY_ID", "K").env("AWS_SECRET_ACCESS_KEY", "secret-of-K-0123");
    }

    pub fn run(&self, home: &Home, args: &[&str]) -> Run {
        Run::of(self.command(home, args).output().unwrap())
    }

    pub fn ok(&self, home: &Home, args: &[&str]) -> String {
        let run = self.run(home, args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
        String::from_utf8(run.out).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
