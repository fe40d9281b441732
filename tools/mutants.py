#!/usr/bin/env python3
"""Which changes of src/ does no test notice?

    tools/mutants.py build           makes the changes and the test binaries, and asks which test reaches which function; of earlier
                                     runs it keeps all but what was missed (delete results.jsonl to keep nothing)
    tools/mutants.py run [K/N] ROOM...   tests every change in these rooms (src/ROOM.rs, src/ROOM/**), or in all; with K/N every N-th,
                                     from the K-th on, K from 0
    tools/mutants.py table           one line a room, from all runs since the build

The changes are those of `cargo mutants --list` (cargo install --locked cargo-mutants) under .cargo/mutants.toml. That tool builds
the crate again for each of them, which takes longer than testing it: here every function gets all its changed bodies at once,
behind a `match` on the environment variable MUTANT, and is built once. A change is tested by the tests that reach its function,
those first that noticed other changes of the file, then the shortest, until one fails or SECONDS of tests have passed. A change
that does not compile is "unviable"; one whose function cannot hold two bodies (it returns `impl Trait`, or runs at compile time) is
"apart": `cargo mutants --re NAME` tests it. Documentation tests and those of the command-line tool are not run.

Files: $CARGO_TARGET_DIR/mutants (target/mutants).
"""
import collections, json, os, re, resource, shutil, signal, subprocess, sys, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"
TREE, STATE, RESULTS = WORK / "tree", WORK / "state.json", WORK / "results.jsonl"
FEATURES = "interop-rocksdb,interop-parquet,interop-cassandra"
# The tests of the command-line tool start a binary of its own.
NOT_RUN = ("cli", "tool", "common")
MEMORY = 6 << 30
# A change that is harmless, such as a cache line not requested, would take all tests: minutes.
SECONDS = float(os.environ.get("MUTANT_SECONDS", 15))

SWITCH = """
#[doc(hidden)]
#[allow(missing_docs)]
pub mod mutant {
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
    static RECORDS: AtomicBool = AtomicBool::new(false);
    static REACHED: [AtomicBool; FUNCTIONS] = [const { AtomicBool::new(false) }; FUNCTIONS];
    #[inline]
    pub fn chosen(function: u32) -> u32 {
        let chosen = CHOSEN.load(Relaxed);
        if chosen < u32::MAX - 1 { chosen } else { slow(function) }
    }
    #[cold]
    fn slow(function: u32) -> u32 {
        if CHOSEN.load(Relaxed) == u32::MAX {
            if let Ok(chosen) = std::env::var("MUTANT") {
                CHOSEN.store(chosen.parse().unwrap(), Relaxed);
                return chosen.parse().unwrap();
            }
            RECORDS.store(std::env::var_os("MUTANT_RECORD").is_some(), Relaxed);
            CHOSEN.store(u32::MAX - 1, Relaxed);
        }
        if RECORDS.load(Relaxed) && !REACHED[function as usize].swap(true, Relaxed) {
            use std::io::Write;
            let path = std::env::var_os("MUTANT_RECORD").unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(std::format!("{function}\\n").as_bytes()).unwrap();
        }
        u32::MAX - 1
    }
}
"""


def place(text, at):
    """The offset of a line and column, both from 1."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: at["line"] - 1]) + at["column"] - 1


def body_of(text, start, end):
    """The offsets between the braces of the function, or None if it has no body here."""
    depth, at = 0, start
    while at < end:
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text.startswith("#[", at):
            nested = 0
            while True:
                nested += {"[": 1, "]": -1}.get(text[at], 0)
                if nested == 0 and text[at] == "]":
                    break
                at += 1
        elif text[at] in "([":
            depth += 1
        elif text[at] in ")]":
            depth -= 1
        elif text[at] == "{" and depth == 0:
            return at + 1, end - 1
        at += 1
    return None


def room_of(file):
    parts = Path(file).with_suffix("").parts[1:]
    return "/".join(parts[:2]) if parts[0] == "interop" and len(parts) > 2 else parts[0]


def generate(mutants, unviable):
    """Writes the tree. Returns, for each file, the lines of each changed body, and the mutants that cannot be made this way."""
    lines, apart, functions = {}, set(), []
    shutil.rmtree(TREE / "src", ignore_errors=True)
    shutil.copytree(ROOT / "src", TREE / "src")
    files = collections.defaultdict(list)
    for number, mutant in enumerate(mutants):
        files[mutant["file"]].append((number, mutant))
    for file, here in files.items():
        text = (ROOT / file).read_text()
        spans = collections.defaultdict(list)
        for number, mutant in here:
            owner = mutant["function"]
            if owner is None:
                apart.add(number)
                continue
            spans[place(text, owner["span"]["start"]), place(text, owner["span"]["end"])].append((number, mutant))
        outer = {s: next(o for o in sorted(spans) if o[0] <= s[0] and s[1] <= o[1]) for s in spans}
        merged = collections.defaultdict(list)
        for span, found in spans.items():
            merged[outer[span]] += found
        out, last, ranges = "", 0, []
        for (start, end), found in sorted(merged.items()):
            inside = body_of(text, start, end)
            head = text[start : inside[0]] if inside else ""
            plain = re.sub(r"(?m)^\s*///.*$", "", head)
            keeps_const = "const fn powers" in plain
            if inside is None or "-> impl " in plain or keeps_const:
                apart.update(number for number, _ in found)
                continue
            function = len(functions)
            functions.append([number for number, _ in found])
            out += text[last:start] + re.sub(r"\bconst fn\b", "fn", head)
            out += f"\nmatch crate::mutant::chosen({function}) {{\n"
            body = text[inside[0] : inside[1]]
            for number, mutant in found:
                if number in unviable:
                    continue
                a, b = (place(text, mutant["span"][edge]) - inside[0] for edge in ("start", "end"))
                first = out.count("\n") + 1
                out += f"{number} => {{\n{body[:a]} {mutant['replacement']} {body[b:]}\n}}\n"
                ranges.append((first, out.count("\n"), number))
            out += f"_ => {{\n{body}\n}}\n}}\n"
            last = inside[1]
        (TREE / file).write_text(out + text[last:])
        lines[file] = ranges
    library = TREE / "src/lib.rs"
    library.write_text(library.read_text() + SWITCH.replace("FUNCTIONS", str(len(functions))))
    return lines, apart, functions


def tests_there():
    names = {path.stem for path in (ROOT / "tests").iterdir() if path.suffix == ".rs" or (path / "main.rs").exists()}
    return sorted(name for name in names if not name.startswith(NOT_RUN))


def cargo(*arguments):
    environment = dict(os.environ, CARGO_PROFILE_TEST_OPT_LEVEL="1", CARGO_PROFILE_DEV_OPT_LEVEL="1",
                       CARGO_PROFILE_TEST_DEBUG="0", CARGO_PROFILE_DEV_DEBUG="0", CARGO_TARGET_DIR=str(WORK.parent))
    found = subprocess.run(["cargo", *arguments, "--message-format=json", "--features", FEATURES], cwd=TREE, env=environment,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return found.returncode, [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")], found.stderr


def build():
    found = subprocess.run(["cargo", "mutants", "--list", "--json", "--file", "src/**", "--exclude", "src/bin/**"],
                           cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    mutants = json.loads(found.stdout)
    TREE.mkdir(parents=True, exist_ok=True)
    for name in ("Cargo.toml", "Cargo.lock", "README.md", "docs", "tests", "benches", "examples", "fuzz"):
        source, target = ROOT / name, TREE / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", "corpus"))
        else:
            shutil.copy(source, target)
    # What did not compile before does not now.
    known = json.loads(STATE.read_text()) if STATE.exists() else {"mutants": [], "unviable": []}
    gone = {known["mutants"][number]["name"] for number in known["unviable"]}
    unviable = {number for number, mutant in enumerate(mutants) if mutant["name"] in gone}
    while True:
        lines, apart, functions = generate(mutants, unviable)
        code, messages, stderr = cargo("check", "--lib")
        if code == 0:
            code, messages, stderr = cargo("test", "--no-run", "--lib", *(f"--test={name}" for name in tests_there()))
        if code == 0:
            break
        bad = set()
        for message in messages:
            if message["reason"] != "compiler-message" or message["message"]["level"] != "error":
                continue
            spans = [s for s in message["message"]["spans"] if s["is_primary"]]
            hit = {number for s in spans for first, last, number in lines.get(s["file_name"], ())
                   if first <= s["line_start"] and s["line_end"] <= last}
            if not hit and spans:
                print(message["message"]["rendered"], file=sys.stderr)
            bad |= hit
        print(f"{len(bad)} changes do not compile", flush=True)
        if not bad:
            sys.exit(stderr[-3000:])
        unviable |= bad
    binaries = {m["target"]["name"]: m["executable"] for m in messages
                if m["reason"] == "compiler-artifact" and m["executable"] and m["profile"]["test"]}
    owner = {number: f for f, numbers in enumerate(functions) for number in numbers}
    tests = reach(binaries)
    # What was missed is tested again; the rest is kept, by name.
    numbers, kept = {mutant["name"]: number for number, mutant in enumerate(mutants)}, []
    for result in map(json.loads, RESULTS.read_text().splitlines() if RESULTS.exists() else ()):
        if result["verdict"] != "missed" and result["name"] in numbers:
            kept.append(json.dumps({**result, "number": numbers[result["name"]]}) + "\n")
    STATE.write_text(json.dumps({"mutants": mutants, "unviable": sorted(unviable), "apart": sorted(apart),
                                 "owner": owner, "binaries": binaries, "tests": tests}))
    RESULTS.write_text("".join(kept))
    print(f"{len(mutants)} changes: {len(unviable)} unviable, {len(apart)} apart; {len(tests)} tests")


def start(binary, names, environment, timeout):
    """None if every test passes, else how it failed."""
    def limit():
        # A loop without end ends even if nobody waits for it.
        resource.setrlimit(resource.RLIMIT_CPU, (4 * int(timeout) + 4,) * 2)
        # One test maps 256 GiB without using them.
        if not any("block_counts_up_to_the_last" in name for name in names):
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    child = subprocess.Popen([binary, "--exact", *names], cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             env=dict(os.environ, PROPTEST_MAX_SHRINK_ITERS="0", PROPTEST_FAILURE_PERSISTENCE="off", **environment),
                             start_new_session=True, preexec_fn=limit)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child.pid, signal.SIGKILL))
    signal.alarm(int(timeout) + 1)
    begun, failed = time.time(), None
    for line in child.stdout:
        if line.startswith("test ") and line.rstrip().endswith("FAILED"):
            failed = line.split()[1]
            os.killpg(child.pid, signal.SIGKILL)
            break
    code = child.wait()
    signal.alarm(0)
    child.stdout.close()
    if failed:
        return failed
    if code == -signal.SIGKILL and time.time() - begun >= timeout:
        return "timeout"
    return None if code == 0 else f"exit {code}: {names[0]}"


def reach(binaries):
    """Every test: binary, name, seconds, and the functions that it reaches."""
    tests, record = [], WORK / "record"
    for name, binary in sorted(binaries.items()):
        listed = subprocess.run([binary, "--list", "--format=terse"], stdout=subprocess.PIPE, text=True, cwd=TREE).stdout
        for test in (line[: -len(": test")] for line in listed.splitlines() if line.endswith(": test")):
            record.unlink(missing_ok=True)
            begun = time.time()
            failed = start(binary, [test], {"MUTANT_RECORD": str(record)}, 600)
            if failed:
                sys.exit(f"{name}: {failed} without a change")
            reached = sorted({int(line) for line in record.read_text().split()}) if record.exists() else []
            tests.append([name, test, round(time.time() - begun, 2), reached])
    record.unlink(missing_ok=True)
    return tests


def verdict(state, number, kills):
    if number in state["unviable"]:
        return "unviable", ""
    if number in state["apart"]:
        return "apart", ""
    function = state["owner"][str(number)]
    # Those first that noticed other changes of the file.
    mine = sorted((-kills[f"{name}: {test}"] if seconds < 1 else 0, seconds, name, test)
                  for name, test, seconds, reached in state["tests"] if function in reached)
    spent = 0.0
    while mine and spent < SECONDS:
        # Of one binary at a time, the next tests that take a second together.
        name, taken, seconds, known = mine[0][2], [], 0.0, mine[0][0] < 0
        for entry in list(mine):
            if entry[2] == name and (not taken or seconds + entry[1] < 1) and (entry[0] < 0) == known:
                taken.append(entry[3])
                seconds += entry[1]
                mine.remove(entry)
        spent += seconds
        failed = start(state["binaries"][name], taken, {"MUTANT": str(number)}, 5 * seconds + 15)
        if failed:
            return ("timeout" if failed == "timeout" else "caught"), f"{name}: {failed}"
    return "missed", ""


def run(rooms):
    first, step = 0, 1
    if rooms and (shard := re.fullmatch(r"(\d+)/(\d+)", rooms[0])):
        (first, step), rooms = map(int, shard.groups()), rooms[1:]
    state = json.loads(STATE.read_text())
    done, kills = set(), collections.defaultdict(collections.Counter)
    for result in map(json.loads, RESULTS.read_text().splitlines()):
        done.add(result["number"])
        kills[result["name"].split(":")[0]][result["by"]] += 1
    wanted = lambda file: not rooms or room_of(file) in rooms
    for room in rooms or [""]:
        for number, mutant in enumerate(state["mutants"]):
            if number % step != first or number in done or not wanted(mutant["file"]) or (room and room_of(mutant["file"]) != room):
                continue
            what, how = verdict(state, number, kills[mutant["file"]])
            kills[mutant["file"]][how] += 1
            with RESULTS.open("a") as out:
                out.write(json.dumps({"number": number, "name": mutant["name"], "verdict": what, "by": how}) + "\n")
            if what in ("missed", "timeout"):
                print(what, mutant["name"], flush=True)


def table():
    state = json.loads(STATE.read_text())
    kinds = ("caught", "missed", "timeout", "unviable", "apart")
    count = collections.Counter()
    for line in RESULTS.read_text().splitlines():
        result = json.loads(line)
        room = room_of(result["name"].split(":")[0])
        count[room, result["verdict"]] += 1
    all_of = collections.Counter(room_of(mutant["file"]) for mutant in state["mutants"])
    print("| room | changes | tested |", " | ".join(kinds), "|")
    for room, total in sorted(all_of.items()):
        row = [count[room, kind] for kind in kinds]
        print(f"| {room} | {total} | {sum(row)} |", " | ".join(map(str, row)), "|")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build"]: build()
        case ["run", *rooms]: run(rooms)
        case ["table"]: table()
        case _: sys.exit(__doc__)
