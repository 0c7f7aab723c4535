"""Pictures of heads as SVG, drawn by `headscope-cli render`: what a notebook shows and a paper prints."""

import os
import tempfile

from ._cli import cli, file_of


class Picture:
    """An SVG. A notebook shows it; save() writes it, or a PNG or CSV of the same."""

    def __init__(self, arguments, trace):
        self._arguments, self._trace = arguments, trace
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            path = os.path.join(folder, "picture.svg")
            cli("render", "--trace", file_of(trace), *arguments, "-o", path)
            with open(path, encoding="utf-8") as file:
                self.svg = file.read()

    def _repr_svg_(self):
        return self.svg[self.svg.index("<svg"):]

    def save(self, path, **options):
        """.svg, .png or .csv by the ending; options as `render` takes them: width=800, theme="print", dpi=300."""
        cli("render", "--trace", file_of(self._trace), *self._arguments, *_options(options), "-o", os.fspath(path))
        return os.fspath(path)


def _options(options):
    out = []
    for name, value in options.items():
        name = "--" + name.replace("_", "-")
        if value is True:
            out.append(name)
        elif value is not None and value is not False:
            out.append(f"{name}={value}")
    return out


def heads(trace, **options):
    """All heads. `trace`: a Trace, a Capture, or the path of a file. Options as in head()."""
    return Picture(_options(options), trace)


def head(trace, which, view="map", **options):
    """One head, "1.0", or several, ["0.2", "1.0"]. `view`: map, arcs, bars (with row=), patches.

    Options are those of `headscope-cli render`: row=-1, key=3, scale="log", threshold=0.1, skip_first=True, theme="light" …
    """
    if view not in ("map", "arcs", "bars", "patches"):
        raise ValueError(f'view: expected map, arcs, bars or patches, found "{view}"')
    which = which if isinstance(which, str) else ",".join(which)
    return Picture(["--head", which, *([] if view == "map" else ["--" + view]), *_options(options)], trace)


def row(trace, query, **options):
    """Where one token looks in every head; -1 is the last."""
    return Picture([f"--row={query}", *_options(options)], trace)


def patches(trace, which, row=None, smooth=False, **options):
    """Of a vision transformer: where one query (without `row` the CLS token) looks, over the picture."""
    return head(trace, which, "patches", row=row, smooth=smooth, **options)
