"""The window is started on what is there, and the package builds."""

import importlib.util
import os
import stat
import subprocess
import sys
import pathlib
import zipfile

import numpy as np
import pytest

import headscope as hs


def test_open_starts_the_window(tmp_path, monkeypatch):
    program = tmp_path / "headscope"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("HEADSCOPE", str(program))
    captures = tmp_path / "captures"
    path = hs.save(captures / "x.npz", np.ones((1, 1, 1, 1)))

    def told(trace):
        hs.open(trace).wait()
        return (tmp_path / "told").read_text().split()

    assert told(path) == [path]
    assert told(captures) == ["--watch", str(captures)]
    assert told(hs.Capture(np.ones((1, 1, 1, 1))))[0].endswith("capture.npz")
    monkeypatch.setenv("HEADSCOPE", str(tmp_path / "nowhere"))
    with pytest.raises(hs.HeadscopeError, match="HEADSCOPE: expected the path of headscope"):
        hs.open(path)


def test_the_wheel_holds_the_package(tmp_path):
    if not all(importlib.util.find_spec(name) for name in ("pip", "setuptools", "wheel")):
        pytest.skip("pip, setuptools and wheel build the package")
    source = pathlib.Path(__file__).resolve().parents[1]
    copy = tmp_path / "source"  # setuptools writes beside what it builds
    subprocess.run(["cp", "-r", str(source), str(copy)], check=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(copy)],
                   check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    (wheel,) = tmp_path.glob("headscope-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"headscope/{p.name}" for p in (source / "headscope").glob("*.py")} <= set(names)
    assert not [name for name in names if "test" in name]
