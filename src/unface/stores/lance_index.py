"""Vector indices of a Lance table: they hold raw vectors or codes of them, so they are made again as they were."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from lance import LanceDataset


class IndexPlan(BaseModel):
    """What an index tells about how it was made; what it does not tell (training samples, rounds) is the default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: str
    """IVF_PQ, IVF_HNSW_SQ, …"""
    metric: str
    parameters: dict[str, int]

    def build(self, data: "LanceDataset", column: str) -> None:
        asked: dict[str, Any] = dict(self.parameters)
        data.create_index(column, self.kind, name=self.name, metric=self.metric, replace=True, **asked)

    def sentence(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.name!r} ({self.kind}, {self.metric}, {told})"


def indices_on(data: "LanceDataset", column: str) -> list[IndexPlan]:
    """The indices on a column, in the order of their names."""
    names = sorted(index.name for index in data.describe_indices() if index.field_names == [column])
    return [_plan(data, name) for name in names]


def _plan(data: "LanceDataset", name: str) -> IndexPlan:
    told = data.stats.index_stats(name)
    # Rows added later may lie in an index of their own, made with the parameters of the first.
    first = told["indices"][0]
    inner = first["sub_index"]
    graph = inner.get("params", {})
    found = {
        "num_partitions": first.get("num_partitions"),
        "num_sub_vectors": inner.get("num_sub_vectors"),
        "num_bits": inner.get("nbits", inner.get("num_bits")),
        "m": graph.get("m"),
        "ef_construction": graph.get("ef_construction"),
        "max_level": graph.get("max_level"),
    }
    parameters = {key: int(value) for key, value in found.items() if value is not None}
    return IndexPlan(name=name, kind=told["index_type"], metric=first["metric_type"], parameters=parameters)
