"""If these fail, tests that fork a command or remember a network would pass whatever the command or the network did."""

import os
import signal
from pathlib import Path

import numpy as np

from tests.encode.tiny import card, expected, noise, write_onnx
from tests.kit.forks import ForkServer
from unface.encode.onnx import OnnxEncoder


def test_a_fork_ends_with_the_code_and_the_words_of_its_command(forks: ForkServer, tmp_path: Path) -> None:
    done = forks.unface("report", "none.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert forks.unface("audit").returncode == 2
    done = forks.unface("--version")
    assert (done.returncode, done.stdout.partition(" ")[0], done.stderr) == (0, "unface", "")


def test_a_fork_dies_alone(forks: ForkServer) -> None:
    assert forks.call("os:abort").returncode == -signal.SIGABRT
    assert forks.call("time:sleep", 60, seconds=1).returncode == -signal.SIGALRM
    assert forks.call("tests.kit.absent:name").returncode == 1
    assert forks.call("os:_exit", 9).returncode == 9
    assert forks.unface("schema").returncode == 0


def test_a_network_is_asked_once_for_a_picture_and_again_for_another(remembered_networks: Path, tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4))  # a picture that no earlier run has shown
    pictures = noise(2, seed=seed)

    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    before = set(remembered_networks.iterdir())
    first = encoder.encode(pictures[:1])
    (file,) = set(remembered_networks.iterdir()) - before
    np.savez(file, 2 * first)  # not what the network gives: who reads it asked nobody
    again = OnnxEncoder(card(), tmp_path / "tiny.onnx")
    np.testing.assert_array_equal(again.encode(pictures[:1]), 2 * first)
    np.testing.assert_allclose(again.encode(pictures[1:]), expected(pictures[1:]), atol=1e-4)
    other = OnnxEncoder(card(std=(64.0, 64.0, 64.0)), tmp_path / "tiny.onnx")  # prepared in another way
    np.testing.assert_allclose(other.encode(pictures[:1]), 2 * first, atol=1e-4)
    for made in set(remembered_networks.iterdir()) - before:
        made.unlink()
