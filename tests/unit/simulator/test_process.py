"""The simulator as a process: alone, many callers at once, killed at any moment, gone with its parent."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.simulator.conftest import Outside
from tests.unit.simulator.wire import OwnProcess, alive, ask, wait_until

ORDER = {"order": "O-1", "sku": "SKU-118", "qty": 1}


def reserve(base: str, key: str) -> int:
    return ask(base, "POST", "/reservations", {**ORDER, "order": key}, key=key).status


def test_after_a_kill_everything_acknowledged_is_there_at_the_same_address(own_process: OwnProcess) -> None:
    base = own_process.system("stock")
    plan = {"rules": [{"tool": "reserve_stock", "match": "O-x", "mode": "refuse", "attempts": [2]}]}
    ask(own_process.admin, "POST", "/plan", plan)
    assert [reserve(base, f"O-{n}") for n in range(5)] == [201] * 5
    assert reserve(base, "O-x") == 201
    seen = ask(own_process.admin, "GET", "/ledger").json["records"]
    before = own_process.addresses["systems"]
    own_process.kill()
    own_process.start()
    assert own_process.addresses["systems"] == before
    assert ask(own_process.admin, "GET", "/ledger").json["records"] == seen
    assert reserve(base, "O-3") == 201
    assert ask(own_process.admin, "GET", "/effects?business=O-3").json["effects"]["reserve_stock"]["net"] == 1
    assert reserve(base, "O-x") == 422


def test_no_kill_leaves_half_an_effect(tmp_path: Path) -> None:
    process = OwnProcess(tmp_path)
    process.start()
    acknowledged: set[str] = set()
    stop = threading.Event()

    def keep_reserving(worker: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"O-{worker}-{number}"
            number += 1
            try:
                if reserve(process.system("stock"), key) == 201:
                    acknowledged.add(key)
            except OSError:
                return

    for _ in range(3):
        stop.clear()
        so_far = len(acknowledged)
        workers = [threading.Thread(target=keep_reserving, args=(n,)) for n in range(4)]
        for worker in workers:
            worker.start()
        assert wait_until(lambda: len(acknowledged) > so_far + 20)  # noqa: B023 - asked within the round
        process.kill()
        stop.set()
        for worker in workers:
            worker.join()
        process.start()
    books = ask(process.admin, "GET", "/books").json
    effects = ask(process.admin, "GET", "/ledger?kind=effect").json["records"]
    process.kill()
    assert acknowledged
    assert books["balanced"], books["complaints"]
    assert acknowledged <= {effect["key"] for effect in effects}
    assert len(effects) == len({effect["key"] for effect in effects})


def test_a_late_effect_survives_a_kill(own_process: OwnProcess) -> None:
    rule = {"tool": "reserve_stock", "mode": "late_effect", "delay_ms": 500}
    ask(own_process.admin, "POST", "/plan", {"rules": [rule]})
    with pytest.raises(TimeoutError):
        ask(own_process.system("stock"), "POST", "/reservations", ORDER, key="k", limit_s=0.1)
    address = own_process.admin
    assert wait_until(lambda: ask(address, "GET", "/ledger?kind=replied").json["records"])
    own_process.kill()
    own_process.start()
    address = own_process.admin
    assert wait_until(lambda: ask(address, "GET", "/ledger?kind=effect").json["records"])


def test_fifty_callers_are_served_while_others_hang(outside: Outside) -> None:
    outside.plan({"tool": "reserve_stock", "match": "O-hang", "mode": "ok", "gate_of_answer": "later"})
    base = outside.systems["stock"]

    with ThreadPoolExecutor(60) as pool:
        hanging = [pool.submit(reserve, base, f"O-hang-{number}") for number in range(10)]
        assert wait_until(lambda: len(outside.admin("GET", "/gates")["waiting"].get("later", ())) == 10)
        assert list(pool.map(lambda n: reserve(base, f"O-{n}"), range(50))) == [201] * 50
        assert not any(one.done() for one in hanging)
        outside.admin("POST", "/gates", {"open": "later"})
        assert [one.result() for one in hanging] == [201] * 10
    records = outside.records(kind="effect")
    assert len(records) == 60
    assert outside.balanced()


def test_two_processes_cannot_hold_one_store(own_process: OwnProcess) -> None:
    command = [sys.executable, "-m", "tools.simulator", "--store", str(own_process.folder / "store")]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "another simulator" in second.stderr


def test_it_ends_when_its_standard_input_closes(tmp_path: Path) -> None:
    process = OwnProcess(tmp_path, "--with-parent")
    process.start(stdin=subprocess.PIPE)
    assert process.process is not None
    assert process.process.stdin is not None
    process.process.stdin.close()
    assert process.process.wait(timeout=60) == 0


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    store, announced = str(tmp_path / "store"), str(tmp_path / "a.json")
    command = ["-m", "tools.simulator", "--store", store, "--announce", announced, "--fast", "--with-parent"]
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, *{command!r}], stdin=subprocess.DEVNULL)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert wait_until((tmp_path / "a.json").exists)
        pid = int(json.loads((tmp_path / "a.json").read_text())["pid"])
    finally:
        parent.kill()
        parent.wait()
    assert wait_until(lambda: not alive(pid))


def test_it_listens_on_loopback_only_and_imports_nothing_of_the_product() -> None:
    code = (
        "import sys, tools.simulator.__main__ as m\n"
        "names = {n.split('.')[0] for n in sys.modules}\n"
        "inside = {n for n in sys.modules if n.startswith('tools') and not n.startswith('tools.simulator')}\n"
        "print(m.HOST, sorted(names & {'django', 'celery', 'sagas', 'workbench', 'jsonschema'}), inside)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "127.0.0.1 [] {'tools'}"
