//! Slots that Valkey moves between the nodes of a cluster while keys are added.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::Connection;

use crate::hostile::limit_memory;
use crate::persistence::{compare, fill};
use crate::server::{Server, call, command, info, items, reply, wait_until};

/// A node of a cluster, which has no slots; none if the server is not Valkey 9 or later.
fn node(options: &[&str]) -> Option<Server> {
    // Its port for other nodes is otherwise the one for clients and 10,000, which may be too high.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let cluster = ["--cluster-enabled", "yes", "--cluster-port", &port];
    let server = Server::start(&[&cluster, options].concat())?;
    let subcommands = reply(&mut server.connect(), &["CLUSTER", "HELP"]);
    if !subcommands.contains("MIGRATESLOTS") {
        println!("NOT RUN: a server that does not move slots by itself, as Valkey 9 does");
        return None;
    }
    Some(server)
}

/// Two nodes of a cluster with these options. The first has all slots.
pub(crate) fn cluster(options: [&[&str]; 2]) -> Option<[Server; 2]> {
    let nodes = [node(options[0])?, node(options[1])?];
    let mut first = nodes[0].connect();
    call::<()>(&mut first, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let bus: Vec<String> = call(&mut nodes[1].connect(), &["CONFIG", "GET", "cluster-port"]);
    let port = nodes[1].port.to_string();
    call::<()>(&mut first, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus[1]]);
    for node in &nodes {
        let mut connection = node.connect();
        wait_until("the cluster is there", || {
            let state: String = call(&mut connection, &["CLUSTER", "INFO"]);
            state.contains("cluster_state:ok") && state.contains("cluster_known_nodes:2")
        });
    }
    Some(nodes)
}

/// Ends the writer, also where the test fails while it runs.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts to move all slots.
fn move_slots(from: &mut Connection, to: &Server) {
    let id: String = call(&mut to.connect(), &["CLUSTER", "MYID"]);
    let words = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "16383", "NODE", &id];
    assert_eq!(reply(from, &words), "OK");
}

#[test]
fn slots_are_moved_while_keys_are_added() {
    // The other node's settings do not matter.
    let Some([first, mut second]) = cluster([&[]; 2]) else { return };
    let names = ["bf-error-rate", "bf-initial-size"].map(|name| format!("blocked-bloom.{name}"));
    for (name, value) in names.iter().zip(["0.2", "7"]) {
        call::<()>(&mut second.connect(), &["CONFIG", "SET", name, value]);
    }
    let mut connection = first.connect();
    let filters = fill(&mut connection);
    let is_moved = AtomicBool::new(false);
    // Item `i` of each filter is added by one command; the number of those that were acknowledged.
    let acknowledged = std::thread::scope(|scope| {
        let ends = Ends(&is_moved);
        let writer = scope.spawn(|| {
            let (mut connection, mut count) = (first.connect(), 0);
            while !is_moved.load(Ordering::Relaxed) {
                // To one that is there before, to several that grow, and to a new one.
                let item = |i: usize| format!("item:{i}");
                let commands = [
                    command("BF.ADD", "grown", &[item(count)]),
                    command("BF.MADD", &format!("f:{}", count % 10), &[item(count), item(count)]),
                    command("BF.ADD", &format!("new:{count}"), &[item(count)]),
                ];
                for command in commands {
                    // The first error is that the slot is elsewhere.
                    if command.query::<redis::Value>(&mut connection).is_err() {
                        return count;
                    }
                }
                count += 1;
            }
            count
        });
        wait_until("keys are added", || info(&mut connection, "total_commands_processed") > 1_000);
        move_slots(&mut connection, &second);
        wait_until("the slots are moved", || {
            let migrations = reply(&mut connection, &["CLUSTER", "GETSLOTMIGRATIONS"]);
            assert!(!migrations.contains("\"failed\""), "{migrations}\n{}", second.log());
            migrations.contains("\"success\"")
        });
        drop(ends);
        writer.join().unwrap()
    });
    let mut connection = second.connect();
    wait_until("the slots are here", || {
        !reply(&mut connection, &["BF.EXISTS", "grown", "key:1"]).starts_with("-MOVED")
    });
    let mut absent = 0;
    for count in 0..acknowledged {
        let item = [format!("item:{count}")];
        for name in ["grown".into(), format!("f:{}", count % 10), format!("new:{count}")] {
            absent += usize::from(!items(&mut connection, "BF.MEXISTS", &name, &item)[0]);
        }
    }
    println!("{acknowledged} items of each of three filters after all slots were moved");
    assert!(absent == 0 && acknowledged > 100, "{absent} absent of {acknowledged}");
    // Made by the numbers of the first node.
    assert_eq!(reply(&mut connection, &["BF.INFO", "new:99", "CAPACITY"]), "[100]");
    let unchanged = filters.into_iter().filter(|(name, _)| name != "grown").collect();
    compare(&mut connection, &unchanged);
    assert!(second.is_sound());
}

#[test]
fn slots_that_the_other_node_has_no_memory_for_stay() {
    let Some([first, mut second]) = cluster([&[]; 2]) else { return };
    let mut connection = first.connect();
    call::<()>(&mut second.connect(), &["CONFIG", "SET", "maxmemory", "60mb"]);
    items(&mut connection, "BF.MADD", "f", &["a"]);
    // The filters are copied, and the slots stay here until it is allowed.
    call::<()>(&mut connection, &["DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1"]);
    move_slots(&mut connection, &second);
    wait_until("the filters are copied", || {
        let migrations = reply(&mut connection, &["CLUSTER", "GETSLOTMIGRATIONS"]);
        migrations.contains("waiting-to-pause") || migrations.contains("replicating")
    });
    // 136 MB, which a client could not have there. As a command of the other node it is not an
    // error that no one sees: it is done, and the server gives up the migration.
    let words = ["BF.INSERT", "large", "CAPACITY", "100000000", "ITEMS", "a"];
    assert_eq!(reply(&mut connection, &words), "[1]");
    items(&mut connection, "BF.MADD", "f", &["b"]);
    call::<()>(&mut connection, &["DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0"]);
    wait_until("the migration has failed", || {
        let migrations = reply(&mut connection, &["CLUSTER", "GETSLOTMIGRATIONS"]);
        assert!(!migrations.contains("\"success\""), "{migrations}\n{}", second.log());
        migrations.contains("\"failed\"")
    });
    assert!(second.log().contains("failed due to OOM"), "{}", second.log());
    assert_eq!(reply(&mut connection, &["BF.MEXISTS", "f", "a", "b"]), "[1 1]");
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "large", "a"]), "1");
    assert!(reply(&mut second.connect(), &["BF.EXISTS", "f", "a"]).starts_with("-MOVED"));
    assert!(second.is_sound());
}

/// Starts to move all slots, and runs `meanwhile` at the source after its filters are copied and
/// before the slots are moved. Returns whether the move has succeeded.
pub(crate) fn move_with(nodes: &[Server; 2], meanwhile: impl FnOnce(&mut Connection)) -> bool {
    let mut connection = nodes[0].connect();
    call::<()>(&mut connection, &["DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1"]);
    move_slots(&mut connection, &nodes[1]);
    let mut state = |expected: [&str; 3]| {
        let mut last = String::new();
        wait_until("the migration goes on", || {
            last = reply(&mut connection, &["CLUSTER", "GETSLOTMIGRATIONS"]);
            // The newest one is the first.
            let state = last.split("\"state\" ").nth(1).unwrap_or_default();
            last = state.split('"').nth(1).unwrap_or_default().to_string();
            expected.contains(&last.as_str()) || last == "failed"
        });
        last
    };
    if state(["waiting-to-pause", "replicating", "failed"]) != "failed" {
        meanwhile(&mut nodes[0].connect());
    }
    call::<()>(&mut nodes[0].connect(), &["DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0"]);
    state(["success", "failed", "failed"]) == "success"
}

/// The source still has the slots and the filter; the other node serves on.
fn stays(nodes: &mut [Server; 2], name: &str) {
    let mut source = nodes[0].connect();
    assert_eq!(reply(&mut source, &["BF.MEXISTS", name, "a", "b"]), "[1 1]");
    let mut target = nodes[1].connect();
    assert!(reply(&mut target, &["BF.EXISTS", name, "a"]).starts_with("-MOVED"));
    assert!(nodes[1].is_sound(), "{}", nodes[1].log());
}

#[test]
fn an_arriving_slot_needs_no_setting() {
    let Some([first, second]) = cluster([&[]; 2]) else { return };
    let mut nodes = [first, second];
    let name = "blocked-bloom.bf-expansion-factor";
    call::<()>(&mut nodes[1].connect(), &["CONFIG", "SET", name, "0"]);
    items(&mut nodes[0].connect(), "BF.MADD", "f", &["a"]);
    let moved = move_with(&nodes, |source| {
        let words = ["BF.INSERT", "f", "VALIDATESCALETO", "10000", "ITEMS", "b"];
        assert_eq!(reply(source, &words), "[1]");
        // A full filter: an error after the items that it accepts.
        call::<()>(source, &["BF.RESERVE", "full", "0.001", "2", "NONSCALING"]);
        let text = reply(source, &["BF.MADD", "full", "a", "b", "c"]);
        assert_eq!(text, "[1 1 -ERR non scaling filter is full]");
    });
    assert!(moved, "{}", nodes[1].log());
    let mut target = nodes[1].connect();
    assert_eq!(reply(&mut target, &["BF.MEXISTS", "f", "a", "b"]), "[1 1]");
    assert_eq!(reply(&mut target, &["BF.MEXISTS", "full", "a", "b", "c"]), "[1 1 0]");
    assert!(nodes[1].is_sound());
}

#[test]
fn a_filter_that_there_is_no_memory_for_stays_at_the_source() {
    // 86 MB, and 72 MB of valkey-bloom.
    let capacity = ["CAPACITY", "60000000", "ERROR", "0.01"];
    for options in [&["EXPANSION", "4"], &["TIGHTENING", "0.5"]] {
        let Some([first, second]) = cluster([&[]; 2]) else { return };
        let mut nodes = [first, second];
        let mut source = nodes[0].connect();
        let words = [&["BF.INSERT", "f"], &capacity[..], options, &["ITEMS", "a", "b"]].concat();
        assert_eq!(reply(&mut source, &words), "[1 1]");
        if !limit_memory(&nodes[1], 60 << 20) {
            return;
        }
        assert!(!move_with(&nodes, |_| {}), "{options:?}: {}", nodes[1].log());
        stays(&mut nodes, "f");
        // With memory for the filter and some pieces the next try succeeds.
        if !limit_memory(&nodes[1], 140 << 20) {
            return;
        }
        assert!(move_with(&nodes, |_| {}), "{options:?}: {}", nodes[1].log());
        assert_eq!(reply(&mut nodes[1].connect(), &["BF.MEXISTS", "f", "a", "b"]), "[1 1]");
    }
}

#[test]
fn a_copy_during_a_move_that_there_is_no_memory_for_stays_at_the_source() {
    for command in ["COPY", "RESTORE"] {
        let Some([first, second]) = cluster([&[]; 2]) else { return };
        let mut nodes = [first, second];
        let mut source = nodes[0].connect();
        call::<()>(&mut source, &["BF.RESERVE", "f{1}", "0.01", "60000000"]);
        items(&mut source, "BF.MADD", "f{1}", &["a", "b"]);
        if !limit_memory(&nodes[1], 130 << 20) {
            return;
        }
        let moved = move_with(&nodes, |source| {
            if command == "COPY" {
                assert_eq!(reply(source, &["COPY", "f{1}", "g{1}"]), "1");
                return;
            }
            let payload: Vec<u8> = redis::cmd("DUMP").arg("f{1}").query(source).unwrap();
            redis::cmd("RESTORE").arg("g{1}").arg(0).arg(payload).exec(source).unwrap();
        });
        assert!(!moved, "{command}: {}", nodes[1].log());
        stays(&mut nodes, "f{1}");
        stays(&mut nodes, "g{1}");
    }
}

/// A replica of the target is a follower.
#[test]
fn a_replica_of_the_target_without_memory_ends() {
    let (Some(nodes), Some(mut replica)) = (cluster([&[]; 2]), node(&[])) else { return };
    let mut connection = replica.connect();
    let mut source = nodes[0].connect();
    let bus: Vec<String> = call(&mut connection, &["CONFIG", "GET", "cluster-port"]);
    let port = replica.port.to_string();
    call::<()>(&mut source, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus[1]]);
    let id: String = call(&mut nodes[1].connect(), &["CLUSTER", "MYID"]);
    wait_until("the replica knows the target", || {
        call::<String>(&mut connection, &["CLUSTER", "NODES"]).contains(&id)
    });
    assert_eq!(reply(&mut connection, &["CLUSTER", "REPLICATE", &id]), "OK");
    wait_until("the replica is linked", || {
        call::<String>(&mut connection, &["INFO", "replication"]).contains("link_status:up")
    });
    call::<()>(&mut source, &["BF.RESERVE", "f", "0.01", "60000000"]);
    items(&mut source, "BF.MADD", "f", &["a", "b"]);
    if !limit_memory(&replica, 60 << 20) {
        return;
    }
    assert!(move_with(&nodes, |_| {}), "{}", nodes[1].log());
    wait_until("the replica has ended", || replica.has_ended());
    assert!(replica.log().contains("of key `f`: "), "{}", replica.log());
    assert!(replica.log().contains("bytes could not be allocated. The source"));
    assert_eq!(reply(&mut nodes[1].connect(), &["BF.MEXISTS", "f", "a", "b"]), "[1 1]");
}
