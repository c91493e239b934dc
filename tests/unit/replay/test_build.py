"""What the model knows of streams, events, ranks and threads, and what it has to guess."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblefinder.replay.changes import HostSpeed, RemoveWaits
from bubblefinder.replay.model import EdgeKind, Model
from bubblefinder.replay.predict import predict
from tests.modelled import model_drawn, steps_us
from tests.unit.causes.test_collectives import RANKS
from tests.unit.causes.test_sites import steps


def kinds(model: Model) -> set[EdgeKind]:
    return {EdgeKind(kind) for kind in np.unique(model.edges.kind)}


PRIVATE = (
    steps(
        "..G.R.W.CSSSSSSSSSSSS....",
        "...gggggggggfffff........",
        "[step                   ]",
        times=5,
    )
    + "gpu0 s14 | "
    + "...................C....." * 5
    + """
    G = graph 5 g f
    C = copy DtoH 8 pinned
    R = cudaEventRecord s7 e1
    W = cudaStreamWaitEvent s14 e1
    S = cudaStreamSynchronize s14
"""
)


def test_an_event_orders_work_of_two_streams() -> None:
    model = model_drawn(PRIVATE)
    assert model.guesses == 0
    copies = model.blocks.with_row_index("block").filter(model.blocks["kind"] == "copy")["block"].to_numpy()
    behind = model.edges.source[(model.edges.kind == EdgeKind.QUEUE) & np.isin(model.edges.owner, copies)]
    assert set(behind) <= set(model.blocks["end"].to_list())
    assert len(behind) == 5 + 4  # the graph before each by the event, and the copy before by the stream


LONG = """
    nvtx     | [step                                                          ]
    api      | G.C............................................................
    gpu0 s7  | ..gggggggggggggggggggggggggggggggggggggggggggggg................
    gpu0 s14 | .................................................C..............
"""


def wide(picture: str, times: int) -> str:
    return "\n".join(
        line.split("|")[0] + "| " + line.split("| ", 1)[1].ljust(64, ".") * times
        for line in picture.splitlines()
        if "|" in line
    )


def test_work_that_starts_long_after_its_launch_and_its_stream_waited_for_something_seen() -> None:
    model = model_drawn(wide(LONG, 5) + "\nG = graph 5 g\nC = copy DtoH 8 pinned\n")
    assert EdgeKind.SEEN in kinds(model)
    assert model.guesses == 5
    (then,) = predict(model, [HostSpeed(2)]).values()
    assert then.notes == ("5 orders between streams or waits are told by the times seen alone",)
    (once,) = predict(replace(model, guesses=1), [HostSpeed(2)]).values()
    assert once.notes == ("1 order between streams or waits is told by the times seen alone",)


def test_ranks_are_joined_by_their_collectives() -> None:
    model = model_drawn(RANKS)
    assert EdgeKind.MEET in kinds(model)
    assert steps_us(model) == [20, 20]


LATE = """
    p1 nvtx    | [step                  ]
    p1 api     | G.CCCCCCCCC.............
    p1 gpu0 s7 | .aa.nnnnnbC.............
    p2 nvtx    | [step                  ]
    p2 api     | ...G.DDDDDD.............
    p2 gpu1 s7 | ....aa.nnbD.............
"""
LEGEND = """
    G = graph 5 a n b
    n = kernel ncclDevKernel_AllReduce
    C = copy DtoH 8 pageable
    D = copy DtoH 8 pageable
"""


def test_a_read_removed_on_one_rank_only_gains_nothing_while_the_other_still_waits() -> None:
    picture = "\n".join(
        line.split("|")[0] + "| " + line.split("| ", 1)[1] * 5 for line in LATE.splitlines() if "|" in line
    )
    model = model_drawn(picture + LEGEND)
    assert steps_us(model) == [24, 24]
    first = sorted(set(model.waits.filter(model.waits["gpu"] == 0)["site"]))
    alone = steps_us(model, [RemoveWaits(frozenset(first))])
    both = steps_us(model, [RemoveWaits(frozenset(model.waits["site"]))])
    assert alone[1] == 24
    assert max(both) < 24


EARLY = steps(
    "..G.........ECCCC........",
    "...ggggggggggff.C........",
    "[step                   ]",
    times=5,
)


@pytest.mark.parametrize(
    "early", ["..............EE.........", ".............E..........."], ids=["ends after it", "ends inside it"]
)
def test_work_that_began_early_never_lets_what_follows_overtake_the_work_ahead(early: str) -> None:
    legend = "G = graph 5 g f\nC = copy DtoH 8 pageable\nE = kernel sample\n"
    model = model_drawn(f"{EARLY}gpu0 s7 | {early * 5}\n{legend}")
    assert steps_us(model) == [25]
    (then,) = steps_us(model, [RemoveWaits(frozenset(model.waits["site"])), HostSpeed(100)])
    assert then >= 12


def test_a_thread_held_up_by_another_goes_on_when_that_ones_wait_is_gone() -> None:
    picture = steps(
        "..G.....................",
        "...gggggg.ffffC.........",
        "[step                  ]",
        times=5,
    )
    helper = "api2 | " + "....CCCCCCCCCCCC........" * 5 + "\nos | " + "...xxxxxxxxxxxxxx......." * 5
    model = model_drawn(
        picture
        + helper
        + "\nG = graph 5 g f\nC = copy DtoH 8 pageable via cudaMemcpy_v3020\nx = name pthread_cond_wait\n",
    )
    assert EdgeKind.HANDOVER in kinds(model)
    assert steps_us(model) == [24]
    (then,) = steps_us(model, [RemoveWaits(frozenset(model.waits["site"]))])
    assert then < 24
