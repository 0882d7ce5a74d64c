"""A trigger that rejects raw vectors: it measures what ``Check`` measures, in SQL, for every row that is written."""

import numpy as np
from numpy.typing import NDArray

from unface.scale.receipt import Check
from unface.stores.postgres_session import Connection, literal
from unface.stores.postgres_table import VectorColumn

TRIGGER = "unface_reject_raw"

# Of a vector of length one. Wider than the rounding that Check allows: pgvector adds up in float32. Raw vectors have
# some hundred times that along a removed direction.
_ALLOWED = {"vector": 1e-4, "halfvec": 1e-2}


def rejecting_function(connection: Connection, column: VectorColumn, check: Check) -> str:
    """The statement that creates it."""
    basis, mean = check.readers()
    allowed = _ALLOWED["halfvec" if column.half else "vector"]
    vector = f"{column.pgvector_schema}.vector"
    scaled, fixed = np.zeros(basis.shape[1]), np.zeros(basis.shape[1])
    if mean is not None and not check.projection.normalise:
        fixed = mean
    elif mean is not None and mean.any():
        scaled = mean / np.linalg.norm(mean)
    gate = check.projection.gate
    # What the gate does not take for a face may be written as it is.
    is_no_face = (
        "false"
        if gate is None
        else f"-(written OPERATOR({column.pgvector_schema}.<#>) '[{_listed(gate.weights)}]'::{vector})"
        f" + {gate.offset:.9g} * length <= {allowed} * length"
    )
    readers = ", ".join(f"'[{_listed(each)}]'" for each in basis.T)
    body = f"""DECLARE
        readers {vector}[] := ARRAY[{readers}]::{vector}[];
        scaled float8[] := ARRAY[{_listed(scaled)}]::float8[];
        fixed float8[] := ARRAY[{_listed(fixed)}]::float8[];
        written {vector} := NEW.{column.column};
        length float8 := {column.pgvector_schema}.vector_norm(written);
        read float8[];
        along float8 := 0;
    BEGIN
        IF {is_no_face} THEN
            RETURN NEW;
        END IF;
        FOR i IN 1 .. {basis.shape[1]} LOOP
            read[i] := -(written OPERATOR({column.pgvector_schema}.<#>) readers[i]);
            along := along + read[i] * scaled[i];
        END LOOP;
        FOR i IN 1 .. {basis.shape[1]} LOOP
            IF abs(read[i] - greatest(along, 0) * scaled[i] - fixed[i]) > {allowed} * length THEN
                RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE =
                    'a raw vector was written to a sanitised column; erase it with the projection first';
            END IF;
        END LOOP;
        RETURN NEW;
    END"""
    return (
        f"CREATE OR REPLACE FUNCTION {column.rejecting}() RETURNS trigger LANGUAGE plpgsql"
        f" AS {literal(connection, body)}"
    )


def _listed(numbers: NDArray[np.float64]) -> str:
    return ", ".join(f"{number:.9g}" for number in numbers)
