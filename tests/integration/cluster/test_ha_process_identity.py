"""Whether a process is gone, as far as another one can tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from firesteel.cluster.ha.process_identity import ProcessIdentity, this_process
from firesteel.testing import eventually

HERE = this_process()
change = msgspec.structs.replace


def _identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return change(HERE, pid=process.pid, started=fields[19], incarnation="its own")


def test_this_process_is_not_gone() -> None:
    assert not HERE.is_gone()
    assert not msgspec.json.decode(msgspec.json.encode(HERE), type=ProcessIdentity).is_gone()


def test_a_process_that_began_anew_is_another_one() -> None:
    assert change(HERE, incarnation="before exec").is_gone()


@pytest.mark.parametrize("elsewhere", [{"boot_id": "another"}, {"pid_namespace": "another"}, {"boot_id": ""}])
def test_a_process_of_another_machine_may_be_there(elsewhere: dict[str, str]) -> None:
    assert not change(HERE, pid=2**22 + 1, **elsewhere).is_gone()


def test_a_process_is_gone_when_it_is_killed_even_if_nobody_has_taken_note() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        identity = _identity_of(process)
        assert not identity.is_gone()
        assert change(identity, started="0").is_gone(), "another process has its number"
        process.kill()
        eventually(identity.is_gone)
    finally:
        process.communicate()
    assert identity.is_gone()
