"""Reading the stacks of all threads."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from firesteel.process.frames import current_frames

COLLECTIONS_EVERYWHERE = """
import gc, threading, time
from firesteel.process.frames import current_frames

def start_threads():
    while True:
        threading.Thread(target=time.sleep, args=(0,), daemon=True).start()

for _ in range(3):
    threading.Thread(target=start_threads, daemon=True).start()
gc.callbacks.append(lambda phase, info: time.sleep(0))
gc.set_threshold(1)
for _ in range(3000):
    current_frames()
print("done")
"""
"""Objects are collected whenever one is allocated, and other threads run meanwhile."""


def test_threads_that_start_during_a_collection_do_not_block_the_process() -> None:
    command = [sys.executable, "-c", COLLECTIONS_EVERYWHERE]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.stdout == "done\n", ran.stderr


def test_every_thread_is_there_and_collection_goes_on() -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    try:
        assert {thread.ident, threading.get_ident()} <= current_frames().keys()
        assert gc.isenabled()
    finally:
        may_end.set()
        thread.join()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        assert current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()
