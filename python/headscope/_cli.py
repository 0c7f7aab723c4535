"""Headscope's programs: finding them, running them, and what they say when something is wrong."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from ._trace import Trace


class HeadscopeError(RuntimeError):
    """What the program said: which file or option, what was expected, what was found."""


def find_program(name, variable):
    """`variable` of the environment, else PATH, else the build folder of the checkout that this package lies in."""
    given = os.environ.get(variable)
    if given:
        if os.path.isfile(given):
            return given
        raise HeadscopeError(f"{variable}: expected the path of {name}, found nothing at {given}")
    found = shutil.which(name)
    if found:
        return found
    build = pathlib.Path(__file__).resolve().parents[2] / "build"
    for folder in ("release", "asan", "tsan"):
        if os.access(build / folder / "app" / name, os.X_OK):
            return str(build / folder / "app" / name)
    raise HeadscopeError(f"{name}: expected it in PATH, found nothing\n  hint: set {variable} to where it lies, or build it with "
                         "./run in Headscope's folder")


def cli(*arguments):
    """headscope-cli with these arguments; what it printed. Raises HeadscopeError with what it said on standard error."""
    done = subprocess.run([find_program("headscope-cli", "HEADSCOPE_CLI"), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise HeadscopeError(done.stderr.strip() or f"headscope-cli ended with {done.returncode}")
    return done.stdout


def run(text, *, model, edits=(), sites=(), options=()):
    """Headscope's own forward pass on `text`: a Trace, whose arrays have TransformerLens' names.

    model    a folder, a file, or the name of a bundled model or of one in the Hugging Face cache
    edits    what is changed, as `headscope-cli run --edit` takes it: "1.0: ablate zero"
    sites    what is kept besides patterns and logits: "q", "k", "z", "resid_post", … or "all"
    options  further options of `headscope-cli capture`
    """
    wanted = list(sites)
    if not {"all", "logits"} & set(wanted):
        wanted.append("logits")
    folder = tempfile.TemporaryDirectory(prefix="headscope-")
    path = os.path.join(folder.name, "trace.safetensors")
    arguments = ["capture", "-m", model, "--text=" + text, "-o", path, "--sites", ",".join(wanted)]
    for edit in ([edits] if isinstance(edits, str) else edits):
        arguments += ["--edit", edit]
    cli(*arguments, *options)
    return Trace(path, keep=folder)


def file_of(trace):
    """The file behind a path, a Trace or a Capture."""
    if isinstance(trace, (str, os.PathLike)):
        path = os.fspath(trace)
    else:
        path = trace.path if isinstance(trace, Trace) else trace.file()
    if not os.path.exists(path):
        raise HeadscopeError(f"{path}: expected a capture or a trace, found nothing")
    return path


def metrics(trace, ids=("all",)):
    """Every metric of every head: a list of {"layer", "head", "values", "chance", "classes"} as the program measures them."""
    return json.loads(cli("metrics", "--trace", file_of(trace), "--metric", ",".join(ids), "--json"))["heads"]


def open(trace):
    """Starts the window on a capture, a trace, a folder of them (which it then watches), or a model. Returns the process."""
    place = trace if isinstance(trace, (str, os.PathLike)) else file_of(trace)
    program = find_program("headscope", "HEADSCOPE")
    folder = os.path.isdir(place) and not os.path.exists(os.path.join(place, "config.json"))
    process = subprocess.Popen([program, *(["--watch"] if folder else []), os.fspath(place)], stdin=subprocess.DEVNULL,
                               start_new_session=True)
    process.headscope_trace = trace  # its temporary file lives as long as somebody holds the process
    return process
