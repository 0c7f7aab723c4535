"""Runs of the program: arrays under TransformerLens' names, whose numbers NumPy finds again."""

import numpy as np
import pytest

import headscope as hs


def test_names_shapes_and_tokens(induction):
    n = len(induction.tokens)
    assert "".join(induction.tokens) == "Mr Fox and Mr Fo"
    assert induction["blocks.1.attn.hook_pattern"].shape == (4, n, n)
    assert induction["blocks.0.attn.hook_q"].shape[:2] == (n, 4)
    assert induction["logits"].shape[0] == n
    assert induction["tokens"].shape == (n,)
    assert induction.patterns.shape == (2, 4, n, n)
    assert induction.model["layers"] == 2
    assert np.allclose(induction.patterns.sum(-1), 1, atol=1e-5)
    assert (np.triu(induction.patterns, 1) == 0).all()


def test_softmax_of_q_and_k_is_the_pattern(induction):
    q, k = induction["blocks.1.attn.hook_q"], induction["blocks.1.attn.hook_k"]
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    assert np.abs(weights / weights.sum(-1, keepdims=True) - induction["blocks.1.attn.hook_pattern"]).max() < 1e-5


def test_metrics_agree_with_numpy(induction):
    ids, patterns = induction["tokens"], induction.patterns
    rows = [(i, [j + 1 for j in range(i) if ids[j] == ids[i]]) for i in range(len(ids))]
    rows = [(i, keys) for i, keys in rows if keys]
    for head in hs.metrics(induction):
        pattern = patterns[head["layer"], head["head"]]
        n = len(pattern)
        assert head["values"]["prefix_matching"] == pytest.approx(np.mean([pattern[i, keys].sum() for i, keys in rows]), abs=1e-5)
        assert head["values"]["previous_token"] == pytest.approx(np.mean([pattern[i, i - 1] for i in range(1, n)]), abs=1e-5)
        assert head["values"]["sink"] == pytest.approx(pattern[1:, 0].mean(), abs=1e-5)
    classes = {(head["layer"], head["head"]): [each["class"] for each in head["classes"]] for head in hs.metrics(induction)}
    assert classes[0, 0][0] == "previous_token"


def test_edits_change_what_follows(induction):
    edited = hs.run("Mr Fox and Mr Fo", model="induction", edits=["1.0: ablate zero"])
    last, without = induction["logits"][-1], edited["logits"][-1]
    texts = dict(zip(induction["tokens"], induction.tokens))
    assert texts[last.argmax()] == "x" and last.argmax() != without.argmax()
    assert (edited["blocks.0.attn.hook_pattern"] == induction["blocks.0.attn.hook_pattern"]).all()
    with pytest.raises(hs.HeadscopeError, match="--edit"):
        hs.run("x", model="induction", edits="1.0: explode")


def test_text_that_looks_like_an_option():
    assert "".join(hs.run("--help", model="induction").tokens) == "--help"
