from __future__ import annotations

from bubblefinder.capture.recipes import eager_recipes, graph_recipes


def test_node_counts_lengths_grids_and_kinds_all_vary() -> None:
    recipes = {recipe.name: recipe for recipe in graph_recipes(dependent_launch=True)}
    kernels = [item for recipe in recipes.values() for item in recipe.items]
    counts = {len(recipe.items) for recipe in recipes.values()}
    assert min(counts) <= 60
    assert max(counts) >= 1500
    assert {1, 132, 1056} <= {item.grid for item in kernels}
    assert {0.0, 20.0} <= {item.micros for item in kernels}
    assert {item.kind for item in kernels} == {"kernel", "wide", "dependent", "stamped", "memset", "copy"}
    assert any(recipe.branches > 1 for recipe in recipes.values())


def test_names_are_unique_and_chains_the_same_every_time() -> None:
    once, again = (graph_recipes(dependent_launch=True) + eager_recipes() for _ in range(2))
    assert once == again
    assert len({recipe.name for recipe in once}) == len(once)


def test_early_launches_only_where_the_gpu_has_them() -> None:
    kinds = {item.kind for recipe in graph_recipes(dependent_launch=False) for item in recipe.items}
    assert "dependent" not in kinds


def test_a_dependent_chain_begins_with_a_plain_kernel() -> None:
    for recipe in graph_recipes(dependent_launch=True):
        if recipe.name.startswith("dependent"):
            assert [item.kind for item in recipe.items[:2]] == ["kernel", "dependent"]


def test_one_capture_stays_well_below_what_overflowed_a_collector() -> None:
    nodes = sum(len(recipe.items) for recipe in graph_recipes(dependent_launch=True))
    assert 2 * 6 * nodes < 200_000


def test_memsets_and_copies_are_added_to_the_plain_chain() -> None:
    recipes = {recipe.name: recipe.counts() for recipe in graph_recipes(dependent_launch=True)}
    assert recipes["nodes_200"] == {"kernel": 200}
    assert recipes["memset_every_4"] == {"kernel": 200, "memset": 50}
    assert recipes["copy_every_20"] == {"kernel": 200, "copy": 10}
