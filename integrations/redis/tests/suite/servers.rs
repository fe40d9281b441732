//! Each test has servers of its own, and ends them.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::server::{Server, call, module, wait_until};

const PREFIX: &str = "the server is at port ";

#[test]
fn a_server_that_was_there_before_is_not_taken_for_the_own() {
    let Some(first) = Server::start(&[]) else { return };
    call::<()>(&mut first.connect(), &["SET", "key", "value"]);
    // It answers at the port before the other one has seen that the port is taken.
    for _ in 0..5 {
        let log = Server::start_at(first.port, module(), Vec::new()).map(|_| ()).unwrap_err();
        assert!(log.contains("Address already in use"), "{log}");
    }
    assert_eq!(call::<String>(&mut first.connect(), &["GET", "key"]), "value");
}

#[test]
fn a_server_ends_with_the_program_that_started_it() {
    let test = "servers::starts_a_server_and_waits_to_be_killed";
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--ignored", "--nocapture"]);
    let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, number) = line.split_once(PREFIX)?;
        Some(number.parse::<u16>().unwrap())
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let Some(port) = port else {
        println!("NOT RUN: no redis-server");
        return;
    };
    wait_until("the server ends", || TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
#[ignore = "run by a_server_ends_with_the_program_that_started_it"]
fn starts_a_server_and_waits_to_be_killed() {
    let Some(server) = Server::start(&[]) else { return };
    println!("{PREFIX}{}", server.port);
    // Ends as well if the program that started this one has been killed.
    std::io::stdin().lines().count();
}
