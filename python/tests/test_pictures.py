"""Pictures that a notebook shows."""

import xml.dom.minidom

import numpy as np
import pytest

import headscope as hs


def test_pictures_are_svg(induction, tmp_path):
    for picture in (hs.heads(induction), hs.head(induction, "1.0"), hs.head(induction, "1.0", "arcs", threshold=0.2),
                    hs.head(induction, "1.0", "bars", row=-1), hs.head(induction, ["0.0", "1.0"], theme="light"),
                    hs.row(induction, -1)):
        svg = picture._repr_svg_()
        assert svg.startswith("<svg") and xml.dom.minidom.parseString(svg)
    assert "Layer 1 · Head 0" in hs.head(induction, "1.0").svg
    written = hs.head(induction, "1.0").save(tmp_path / "x.png", width=300)
    assert open(written, "rb").read(8) == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(hs.HeadscopeError, match="head 7.0"):
        hs.head(induction, "7.0")


def test_attention_over_a_picture(tmp_path):
    attn = np.full((1, 1, 5, 5), 0.2, np.float32)
    attn[0, 0, 0] = [0.125, 0, 0.125, 0.25, 0.5]
    path = hs.save(tmp_path / "vit.npz", attn, grid=(2, 2, 1), image=np.full((4, 6, 3), 128, np.uint8))
    svg = hs.patches(path, "0.0").svg
    assert 'id="patch.1.1"' in svg and "<image" in svg
    assert "0.875 on the picture" in svg
    smooth = hs.patches(path, "0.0", row=3, smooth=True).svg
    assert 'id="overlay"' in smooth and 'id="query"' in smooth
    with pytest.raises(hs.HeadscopeError, match="keys are patches"):
        hs.patches(hs.save(tmp_path / "text.npz", attn), "0.0", row=0)


def test_a_capture_can_be_drawn_without_a_file():
    capture = hs.Capture(np.tril(np.ones((1, 2, 3, 3))) / np.arange(1, 4)[:, None], tokens=["a", "b", "c"], model="by hand")
    assert "by hand" in hs.heads(capture).svg
