#!/usr/bin/env python3
"""Would the tests notice? Small faults (mutants) in the sources of attention, metrics and analysis, and the tests that see them.

One instrumented build holds all mutants (mutant.h); HEADSCOPE_MUTANT=17 turns one of them on as the tests start. Needs the
build of ./run or ./test (build/release), whose objects it links with its own; writes only to build/mutation. Standard library only.

    tests/mutation/mutate.py                   # 600 mutants, evenly over the files: report in build/mutation/report.md
    tests/mutation/mutate.py --tests tests/attention,tests/metrics,tests/analysis --quicker-than 8   # by fewer: a fifth of the time
    tests/mutation/mutate.py --again           # only those that survived or were never reached, by tests that are new to them
    tests/mutation/mutate.py --in metrics/mass --count 200
    tests/mutation/mutate.py --only 17,31      # these, with what the tests say
"""
import argparse, collections, concurrent.futures, hashlib, json, os, pathlib, random, re, shlex, subprocess, sys, time

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
FOLDERS = ["core/attention", "core/metrics", "core/analysis"]
TESTS = ["tests/attention", "tests/metrics", "tests/analysis"]
OTHERS = ["tests/app", "tests/corpus", "tests/edits", "tests/generate", "tests/model", "tests/run", "tests/tensor", "tests/trace",
          "tests/lesson", "tests/train", "tests/viz"]  # which read the same code, and are asked last
TOKEN = re.compile(r"""
  (?P<space>\s+|\\\n) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<preprocessor>(?<=\n)\#(?:[^\n\\]|\\\n|\\.)*)
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
  | (?P<number>(?:0[xX][0-9a-fA-F']+|(?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfFzZ]*) | (?P<word>[A-Za-z_]\w*)
  | (?P<operator><=>|->\*|<<=|>>=|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
Token = collections.namedtuple("Token", "kind text at")
# operator → (proxy, what it becomes): one of them is drawn
BINARY = {"+": [("plus_minus", "-")], "-": [("minus_plus", "+")], "*": [("times_over", "/")], "/": [("over_times", "*")],
          "<": [("less_up_to", "<="), ("less_from", ">=")], "<=": [("up_to_less", "<"), ("up_to_more", ">")],
          ">": [("more_from", ">="), ("more_up_to", "<=")], ">=": [("from_more", ">"), ("from_less", "<")],
          "==": [("same_other", "!=")], "!=": [("other_same", "==")]}
# Constants of the language, declarations, and numbers that nothing is computed from: a slider's ends, room reserved ahead.
NO_STATEMENT = {"constexpr", "consteval", "constinit", "static_assert", "template", "case", "using", "enum", "assert", "operator"}
NO_CALL = re.compile(r"(?:number|whole|choice|toggle|seed)_parameter$|^reserve$|^assert$|^check$")


def tokens_of(text):
    return [Token(m.lastgroup if m.lastgroup != "mark" else "string", m.group(), m.start()) for m in TOKEN.finditer(text)]


def number_words(token, after_sign):
    """The constant, and a wrong one."""
    text, kind = token.text, re.match(r"(.*?)([uUlLfFzZ]*)$", token.text)
    if text[:2].lower() == "0x":
        return f"{text} + 1"
    digits, suffix = kind.group(1).replace("'", ""), kind.group(2)
    if re.search(r"[.eE]", digits) or "f" in suffix.lower():
        value = float(digits)
        return f"1.0{suffix}" if value == 0 else f"{2 * value!r}{suffix}"
    value = int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
    return f"{0 if after_sign and value == 1 else value + 1}{suffix}"


def candidates(path, text, rng):
    """Every place where one token may be exchanged: dictionaries with what to write and what it stands for."""
    every = tokens_of("\n" + text)[0:]
    shift = 1  # the line break before the first line lets a preprocessor line there be seen
    code = [t for t in every if t.kind not in ("space", "comment", "preprocessor")]
    plain = "\n" + text
    calls, open_calls, statement, out = [], [], [], []
    starts = {}
    begin = 0
    for i, t in enumerate(code):  # the statement that each token stands in
        if t.text in (";", "{", "}"):
            for j in range(begin, i + 1):
                starts[j] = (begin, i)
            begin = i + 1
    for i, t in enumerate(code):
        before, after = (code[i - 1] if i else None), (code[i + 1] if i + 1 < len(code) else None)
        if t.text == "(":
            open_calls.append(before.text if before and before.kind == "word" else "")
        elif t.text == ")" and open_calls:
            open_calls.pop()
        first, last = starts.get(i, (i, i))
        if any(code[j].text in NO_STATEMENT for j in range(first, last + 1)) or any(NO_CALL.search(c) for c in open_calls):
            continue
        if not before or not after:
            continue
        spaced = plain[t.at - 1].isspace() and plain[t.at + len(t.text)].isspace()
        operand = before.kind in ("word", "number") and before.text not in ("return", "case", "co_return") or before.text in (")", "]", "}")
        texts = "string" in (before.kind, after.kind)
        change = None  # (what is written with {id}, what replaces `original`)
        original, length = t.text, len(t.text)
        if t.kind == "operator":
            if t.text in BINARY and spaced and operand and not texts and after.text not in (")", ",", ";"):
                proxy, other = rng.choice(BINARY[t.text])
                change = (f"{t.text} ::mutant::{proxy}<{{id}}>{{{{}}}} {t.text}", other)
            elif t.text in ("&&", "||") and spaced and operand:
                change = (("&& ::mutant::true_or<{id}>{{}} |", "&& true ||") if t.text == "&&"
                          else ("|| ::mutant::false_and<{id}>{{}} &", "|| false &&"))
            elif t.text == "!" and after.kind in ("word", "operator") and not plain[t.at + 1].isspace():
                change = ("::mutant::no<{id}>{{}} ->* ", "")
            elif t.text == "-" and not operand and not plain[t.at + 1].isspace():
                change = ("::mutant::minus<{id}>{{}} ->* ", "")
            elif t.text in ("+=", "-=") and not texts:
                change = (f"{t.text} ::mutant::turned<{{id}}>{{{{}}}} {t.text}", t.text + " −")
            elif t.text in ("*=", "/="):
                change = (f"{t.text} ::mutant::kept<{{id}}>{{{{}}}} {t.text}", t.text + " 1 ·0")
        elif t.kind == "number" and not (before.text == "<" and not plain[before.at - 1].isspace()) and not (
                after.text == ">" and not plain[after.at - 1].isspace()) and before.text != "'":
            wrong = number_words(t, before.text in ("+", "-"))
            change = (f"::mutant::number<{{id}}>({t.text}, {wrong.replace('{', '{{')})", wrong)
        elif t.kind == "word" and before.text == "::" and code[i - 2].text == "std":
            if t.text in ("min", "max", "sqrt", "exp", "log", "abs") and after.text in ("(", "<"):
                other = {"min": "max", "max": "min"}.get(t.text, "")
                explicit = ""
                end = t.at + len(t.text)
                if after.text == "<":  # std::max<Index>(…)
                    m = re.compile(r"<([\w:]+)>\(").match(plain, end)
                    if not m:
                        continue
                    explicit, end = ", " + m.group(1), m.end() - 1
                start = code[i - 2].at
                original, length = plain[start:end], end - start
                change = (f"::mutant::{t.text}<{{id}}{explicit}>", f"std::{other}" if other else "")
                t = Token("word", original, start)
        elif t.kind == "word" and t.text in ("continue", "break") and after.text == ";" and code[i + 2].text != "else":
            change = (f"if (!::mutant::on({{id}})) {t.text}", "")
        if change:
            at = t.at - shift
            line = text.count("\n", 0, at) + 1
            out.append({"file": path, "line": line, "at": at, "length": length, "code": change[0], "original": original,
                        "mutant": change[1], "source": text.splitlines()[line - 1].strip()})
    return out


def key(mutant):
    """The same mutant in another run."""
    return ":".join(str(mutant[part]) for part in ("file", "at", "original", "mutant", "source"))


class Build:
    """The mutated copies, their objects, and the tests' program linked with them."""

    def __init__(self, build, out, header):
        self.build, self.out, self.header = build, out, header
        self.commands = {}  # source → compile command of the file or of the unity group that holds it
        for entry in json.loads((build / "compile_commands.json").read_text()):
            source, command = entry["file"], entry["command"]
            if "/Unity/" in source:
                for inner in re.findall(r'#include "([^"]+)"', pathlib.Path(source).read_text()):
                    self.commands[inner] = (source, command)
            elif "/core/" in source and source not in self.commands:
                self.commands[source] = (source, command)

    def mutated_path(self, path):
        return self.out / "source" / path

    def write(self, mutants):
        """Sources with these mutants; returns the compilation units that hold them: unit → its source text."""
        by_file = collections.defaultdict(list)
        for m in mutants:
            by_file[m["file"]].append(m)
        units = {}
        for path, own in by_file.items():
            text = (ROOT / path).read_text()
            for m in sorted(own, key=lambda m: -m["at"]):
                text = text[:m["at"]] + m["code"].format(id=m["id"]) + text[m["at"] + m["length"]:]
            target = self.mutated_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Highway compiles the file again for every instruction set: this copy, not the source without mutants.
            text = text.replace(f'#define HWY_TARGET_INCLUDE "{path}"', f'#define HWY_TARGET_INCLUDE "{target}"')
            target.write_text(f'#include "{self.header}"\n#line 1 "{target}"\n{text}')
            unit, command = self.commands[str(ROOT / path)]
            units[unit] = command
        sources = {}
        for unit, command in units.items():
            inner = re.findall(r'#include "([^"]+)"', pathlib.Path(unit).read_text()) if "/Unity/" in unit else [unit]
            lines = []
            for each in inner:
                own = os.path.relpath(each, ROOT)
                lines.append(f'#include "{self.mutated_path(own) if own in by_file else each}"')
            sources[unit] = ("\n".join(lines) + "\n", command)
        return sources

    def compile(self, unit, source, command):
        """The object, and the (file, line) of every error."""
        name = re.sub(r"\W", "_", os.path.relpath(unit, ROOT))
        path, target = self.out / "unit" / (name + ".cpp"), self.out / "unit" / (name + ".o")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        texts = [source, command, self.header.read_text()] + [pathlib.Path(p).read_text() for p in re.findall(r'#include "([^"]+)"', source)]
        stamp, state = hashlib.sha256("\0".join(texts).encode()).hexdigest(), self.out / "unit" / (name + ".stamp")
        if target.exists() and state.exists() and state.read_text() == stamp:
            return target, []
        words = shlex.split(command)
        words[words.index("-o") + 1], words[words.index("-c") + 1] = str(target), str(path)
        words = [w for w in words if w != "-Werror"] + ["-O1", "-w", "-fmax-errors=0", "-fdiagnostics-color=never"]
        run = subprocess.run(words, cwd=self.build, capture_output=True, text=True)
        if run.returncode == 0:
            state.write_text(stamp)
            return target, []
        faults = [(os.path.relpath(f, self.out / "source"), int(line)) for f, line in
                  re.findall(r"^(/[^:\n]+):(\d+):\d+:(?:\s+(?:error|required from)|\s+in .constexpr. expansion)", run.stderr, re.M)
                  if f.startswith(str(self.out / "source"))]
        if not faults:
            sys.exit(f"{unit}: does not compile, and not for a mutant:\n{run.stderr[-3000:]}")
        return None, faults

    def link(self, objects):
        lines = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", "headscope-tests"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        command = next(line for line in reversed(lines) if "-o tests/headscope-tests " in line)
        program = self.out / "headscope-tests"
        # Before the libraries: what these define is not taken from them.
        command = command.replace("-o tests/headscope-tests ", f"-o {program} {' '.join(map(str, objects))} ", 1)
        subprocess.run(command, shell=True, cwd=self.build, check=True)
        return program


def instrument(build, args):
    """Draws the mutants, evenly over the files, and builds with those that compile."""
    rng = random.Random(args.seed)
    waiting = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            name = str(path.relative_to(ROOT))
            own = candidates(name, path.read_text(), random.Random(f"{args.seed} {name}"))
            random.Random(f"{args.seed} {name} order").shuffle(own)
            if args.within in name and own:
                waiting[name] = own
    remembered = args.out / "dropped.json"  # what did not compile, so as not to try it again
    known = set(json.loads(remembered.read_text())) if remembered.exists() else set()
    chosen, dropped, number = [], 0, 0
    for attempt in range(24):
        while len(chosen) < args.count and any(waiting.values()) and attempt < 12:
            held = collections.Counter(m["file"] for m in chosen)
            name = min((n for n in waiting if waiting[n]), key=lambda n: (held[n], n))
            number += 1
            chosen.append(waiting[name].pop() | {"id": number})
        bad = {m["id"] for m in chosen if key(m) in known}
        if bad:
            dropped += len(bad)
            chosen = [m for m in chosen if m["id"] not in bad]
            continue
        units = build.write(chosen)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(lambda u: build.compile(u, *units[u]), units))
        faults = {f for _, found in results for f in found}
        print(f"  {len(chosen)} mutants, {sum(o is None for o, _ in results)} of {len(units)} units do not compile", flush=True)
        if not faults:
            return chosen, [o for o, _ in results], dropped
        for path, line in faults:
            own = [m for m in chosen if m["file"] == path]
            near = [m for m in own if m["line"] == line] or [m for m in own if abs(m["line"] - line) <= 3] or own
            known |= {key(m) for m in near}
        remembered.write_text(json.dumps(sorted(known), indent=0))
    sys.exit("still mutants that do not compile")


def run_tests(program, file, mutant=0, hits=None, timeout=600, folder=None):
    environment = dict(os.environ, HEADSCOPE_MUTANT=str(mutant))
    if hits:
        environment["HEADSCOPE_MUTANT_HITS"] = str(hits)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        environment["TMPDIR"] = str(folder)
    begun = time.monotonic()
    try:
        done = subprocess.run([program, f"--source-file=*{file}", "--abort-after=1", "--no-colors=true"], cwd=ROOT, env=environment,
                              capture_output=True, text=True, errors="replace", timeout=timeout)
        return done.returncode, time.monotonic() - begun, done.stdout
    except subprocess.TimeoutExpired:
        return "timeout", time.monotonic() - begun, ""


def stamps_of(files, build):
    """Test file → what its verdicts hang on: its text, that of the tests' support, and everything else that is linked."""
    shared = hashlib.sha256()
    for path in [p for p in sorted((ROOT / "tests").rglob("*")) if p.suffix == ".h" or "support" in p.parts and p.is_file()]:
        shared.update(path.read_bytes())
    for path in sorted(build.out.glob("unit/*.stamp")) + sorted(build.build.rglob("lib*.a")):
        shared.update(path.read_bytes())
    return {f: hashlib.sha256(shared.digest() + (ROOT / f).read_bytes()).hexdigest() for f in files}


def coverage(program, files, stamps, args):
    """Seconds of every test file without a mutant, and mutant → the files that come across it."""
    remembered, hits_of = args.out / "coverage.json", lambda file: args.out / ("hits-" + re.sub(r"\W", "_", file))
    known = json.loads(remembered.read_text()) if remembered.exists() else {}
    changed = [f for f in files if known.get(f, {}).get("stamp") != stamps[f]]
    if changed:
        print(f"Which mutants {len(changed)} test files reach …", flush=True)

        def cover(file):
            limit = 900 if file.startswith(tuple(TESTS)) else 60
            return file, run_tests(program, file, 0, hits_of(file), limit, args.out / "tmp" / re.sub(r"\W", "_", file))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for file, (code, seconds, said) in pool.map(cover, changed):
                if code != 0 and (code != "timeout" or file.startswith(tuple(TESTS))):
                    sys.exit(f"{file} fails without a mutant: {code}\n{said[-2000:]}")
                known[file] = {"stamp": stamps[file], "seconds": seconds if code == 0 else None}
        remembered.write_text(json.dumps(known, indent=0))
    took = {f: known[f]["seconds"] for f in files if known[f]["seconds"] is not None}
    reached = collections.defaultdict(list)
    for file in took:
        for id, hit in enumerate(hits_of(file).read_bytes()):
            if hit:
                reached[id].append(file)
    return took, reached


def report(mutants, dropped, args):
    count, rows = collections.Counter(m["verdict"].split()[0] for m in mutants), collections.defaultdict(collections.Counter)
    for m in mutants:
        rows[m["file"]][m["verdict"].split()[0]] += 1
    lines = [f"{len(mutants)} mutants (seed {args.seed}): {count['killed']} killed ({100 * count['killed'] / len(mutants):.1f} %), "
             f"{count['survived']} survived, {count['unreached']} reached by no test; {dropped} more did not compile.", "",
             "| file | mutants | killed | survived | unreached |", "|---|---|---|---|---|"]
    lines += [f"| {f} | {sum(c.values())} | {c['killed']} | {c['survived']} | {c['unreached']} |" for f, c in sorted(rows.items())]
    lines += ["", "| mutant | place | change | in |", "|---|---|---|---|"]

    def code(text):
        return "`" + (text.replace("|", "\\|") or " ") + "`"
    lines += [f"| {m['id']} | {m['file']}:{m['line']} | {code(m['original'])} → {code(m['mutant'])}"
              f"{', unreached' if m['verdict'] == 'unreached' else ''} | {code(m['source'])} |"
              for m in sorted(mutants, key=lambda m: (m["file"], m["at"])) if not m["verdict"].startswith("killed")]
    (args.out / "report.md").write_text("\n".join(lines) + "\n")
    return lines[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in", dest="within", default="", metavar="TEXT", help="only files whose path holds this")
    parser.add_argument("--again", action="store_true", help="only those that were not killed the last time")
    parser.add_argument("--only", default="", metavar="IDS", help="these, by number, with what the tests say")
    parser.add_argument("--quicker-than", type=float, default=1e9, metavar="S", help="leave out test files that take longer")
    parser.add_argument("--tests", default="tests/", metavar="PATHS", help="ask only test files whose path begins so, with commas between")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/mutation")
    args = parser.parse_args()
    os.nice(5)
    args.out.mkdir(parents=True, exist_ok=True)
    build = Build(args.build.resolve(), args.out.resolve(), ROOT / "tests/mutation/mutant.h")
    print("Instrumenting …", flush=True)
    mutants, objects, dropped = instrument(build, args)
    program = build.link(objects)

    files = sorted(str(p.relative_to(ROOT)) for folder in TESTS + OTHERS for p in (ROOT / folder).rglob("*_test.cpp"))
    files = [f for f in files if f.startswith(tuple(args.tests.split(",")))]
    stamps = stamps_of(files, build)
    took, reached = coverage(program, files, stamps, args)

    results, passed = args.out / "results.json", args.out / "passed.json"
    earlier = json.loads(results.read_text()) if results.exists() else {}
    asked = json.loads(passed.read_text()) if passed.exists() else {}  # mutant → stamps of test files that did not see it
    only = {int(x) for x in args.only.split(",") if x}

    def judge(mutant):
        id = mutant["id"]
        if args.again and earlier.get(key(mutant), "").startswith("killed"):
            return earlier[key(mutant)]
        for file in sorted((f for f in reached[id] if took[f] < args.quicker_than),
                           key=lambda f: (not f.startswith(tuple(TESTS)), took[f])):
            if args.again and stamps[file] in asked.get(key(mutant), []):
                continue
            code, _, said = run_tests(program, file, id, timeout=10 + 20 * took[file], folder=args.out / "tmp" / str(id))
            if code != 0:
                if only:
                    print(said[-1500:])
                return f"killed by {file}" + (" (it hung)" if code == "timeout" else "" if code == 1 else f" ({code})")
            asked.setdefault(key(mutant), []).append(stamps[file])
        return "survived" if reached[id] else "unreached"

    judged = sorted((m for m in mutants if not only or m["id"] in only), key=lambda m: m["id"])
    print(f"Running {len(judged)} mutants …", flush=True)
    begun, done = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for mutant, verdict in zip(judged, pool.map(judge, judged)):
            mutant["verdict"] = verdict
            done.append(mutant)
            if only:
                print(f"{mutant['id']} {mutant['file']}:{mutant['line']}  {mutant['original']} → {mutant['mutant'] or '(left out)'}  "
                      f"{verdict}  | {mutant['source']}", flush=True)
            elif len(done) % 25 == 0 or len(done) == len(judged):  # the report so far
                earlier |= {key(m): m["verdict"] for m in done}
                results.write_text(json.dumps(earlier, indent=0))
                passed.write_text(json.dumps(dict(asked), indent=0))
                print(f"  {time.monotonic() - begun:.0f} s: {report(done, dropped, args)}", flush=True)
    if not only:
        print(f"See {args.out / 'report.md'}")


if __name__ == "__main__":
    main()
