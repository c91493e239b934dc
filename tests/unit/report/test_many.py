from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.render.formats import formats_of, render
from bubblefinder.report.many import MOST, gpu_words, gpus_shown, ranks_shown
from bubblefinder.report.model import GpuInfo, Stats
from tests import samples

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

MANY = 2_000


def many(number: int = MANY) -> Report:
    """A report on so many GPUs; the last of them idles most."""
    known = samples.report("nextn_before.node")
    rank, device = known.steps.by_device[0], known.devices[0]
    worse = Stats(mean=2e7, p50=2e7, p95=2e7, min=20_000_000, max=20_000_000)
    ranks = [replace(rank, gpu=gpu, pid=gpu + 1) for gpu in range(number)]
    ranks[-1] = replace(ranks[-1], per_step=rank.per_step | {"duration": worse})
    devices = [replace(device, gpu=gpu, pids=[gpu + 1]) for gpu in range(number)]
    devices[-1] = replace(devices[-1], busy_ns=0)
    where = [replace(known.findings[0].devices[0], gpu=gpu, pid=gpu + 1) for gpu in range(number)]
    return replace(
        known,
        devices=devices,
        steps=replace(known.steps, by_device=ranks, gpu=7, pid=8),
        trace=replace(known.trace, gpus=[GpuInfo(gpu=gpu, name="NVIDIA H200") for gpu in range(number)]),
        findings=[replace(finding, devices=where) for finding in known.findings],
    )


def test_of_many_ranks_those_that_idle_most_and_the_reported_one_are_shown() -> None:
    report = many()
    ranks, others = ranks_shown(report)
    assert len(ranks) == MOST
    assert [rank.gpu for rank in ranks] == sorted(rank.gpu for rank in ranks)
    assert {7, MANY - 1} <= {rank.gpu for rank in ranks}
    assert others == "1,968 ranks more, which idle less: the JSON report has all."
    gpus, other_gpus = gpus_shown(report)
    assert len(gpus) == MOST
    assert {7, MANY - 1} <= {gpu.gpu for gpu in gpus}
    assert other_gpus.startswith("1,968 GPUs more")


def test_few_are_all_shown_and_nothing_is_said() -> None:
    report = many(MOST)
    assert ranks_shown(report) == (report.steps.by_device, "")
    assert gpus_shown(report) == (report.devices, "")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["H200"], "GPU 0 H200"),
        ([None, "H200"], "GPU 0, GPU 1 H200"),
        (["H200"] * 8 + ["L4"], "8 GPUs H200, 1 GPU L4"),
        ([str(number) for number in range(20)], ", ".join(f"1 GPU {number}" for number in range(8)) + ", others"),
    ],
)
def test_gpus_are_named_or_counted(names: list[str | None], said: str) -> None:
    assert gpu_words([GpuInfo(gpu=gpu, name=name) for gpu, name in enumerate(names)]) == said


@pytest.mark.parametrize("form", sorted(formats_of("report").keys() - {"json", "html", "perfetto", "csv", "parquet"}))
def test_what_people_read_of_a_capture_stays_as_short_with_thousands_of_gpus(form: str) -> None:
    few, thousands = (render("report", many(number), form) for number in (MOST, MANY))
    assert len(thousands) < len(few) + 1_000


def test_the_page_grows_by_what_it_embeds_alone() -> None:
    page = str(render("report", many(), "html"))
    ledgers = page.partition("<caption>The ledger of each GPU over the whole window</caption>")[2].partition(
        "</table>"
    )[0]
    assert ledgers.count('<th scope="row"') == MOST
    assert page.count("ranks more, which idle less") == page.count("GPUs more, which idle less") == 1
