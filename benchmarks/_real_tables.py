"""Real tables of R packages, from the package pydataset: people, computers, films and patients.

`SOURCES` and `IDENTIFIED` are for evaluation only: no default, constant or rule may be chosen on them. Text and
booleans are categories, everything else numbers, numbered persons and places among them unless `identifiers` lists
them.
"""

import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution
from typing import NamedTuple

import numpy as np
import pandas as pd

LEAST_ROWS = 15  # of a class


class Source(NamedTuple):
    name: str
    file: str
    target: str
    least: int | None = None  # rows with this much of the target are positive; None if it has the classes
    not_features: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()  # categories that are numbers in the file


class RealTable(NamedTuple):
    name: str
    X: pd.DataFrame
    y: np.ndarray


GENRES = "Action", "Animation", "Comedy", "Drama", "Romance", "Short"
SOURCES = (
    Source("mortgage_denied", "Ecdat/Hdma", "deny"),
    Source("verb_aggression", "lme4/VerbAgg", "r2", not_features=("resp",)),
    Source("diamonds_cut", "ggplot2/diamonds", "cut"),
    Source("movies_documentary", "ggplot2/movies", "Documentary", not_features=("title", *GENRES)),
    Source("movies_romance", "ggplot2/movies", "Romance", not_features=("title",)),
    Source("wife_insured", "Ecdat/HI", "whi", not_features=("hhi", "hhi2")),
    Source("lecture_rating", "lme4/InstEval", "y", least=5),
    Source("pharmacy_visits", "Ecdat/VietNamI", "pharvis", least=2),
    Source("doctor_10", "Ecdat/DoctorContacts", "mdu", least=10),
    Source("hospital_visit", "COUNT/rwm5yr", "hospvis", least=1, not_features=("id", "docvis")),
    Source("pc_premium", "Ecdat/Computers", "premium"),
    Source("tuna_brand", "Ecdat/Tuna", "Tuna.choice", not_features=("Tuna.id",)),
    Source("benefits", "Ecdat/Benefits", "ui"),
    Source("union", "Ecdat/Males", "union", not_features=("nr",)),
    Source("hospital_stay", "Ecdat/OFP", "hosp", least=1, not_features=("emr",)),
    Source("admitted", "Ecdat/DoctorAUS", "hospadmi", least=1, not_features=("hospdays",)),
    Source("school_col4", "Ecdat/RetSchool", "col4"),
)
# Five of them with the identifiers of students, persons and households as categories.
IDENTIFIED = (
    Source("lecture_rating", "lme4/InstEval", "y", least=5, identifiers=("s", "d", "dept", "service")),
    Source("verb_aggression", "lme4/VerbAgg", "r2", not_features=("resp",), identifiers=("id", "item")),
    Source("union", "Ecdat/Males", "union", identifiers=("nr",)),
    Source("hospital_visit", "COUNT/rwm5yr", "hospvis", least=1, not_features=("docvis",), identifiers=("id",)),
    Source("tuna_brand", "Ecdat/Tuna", "Tuna.choice", identifiers=("Tuna.id",)),
)
# Tables with identifiers on which constants were chosen.
DEVELOPMENT = (
    Source(
        "baseball",
        "plyr/baseball",
        "hr",
        least=10,
        not_features=(
            *("r", "ab", "h", "X2b", "X3b", "rbi", "sb", "cs", "bb", "so"),
            *("ibb", "hbp", "sh", "sf", "gidp"),
        ),
        identifiers=("id",),
    ),
    Source("ketchup", "Ecdat/Ketchup", "Ketchup.choice", not_features=("Ketchup.id",), identifiers=("Ketchup.hid",)),
    Source("catsup", "Ecdat/Catsup", "choice", identifiers=("id",)),
    Source("cracker", "Ecdat/Cracker", "choice", identifiers=("id",)),
    Source("yogurt", "Ecdat/Yogurt", "choice", identifiers=("id",)),
    Source("medpar", "COUNT/medpar", "died", identifiers=("provnum",)),
)


def real_tables(sources: tuple[Source, ...] = SOURCES) -> Iterator[RealTable]:
    """Yield every table, without rows that have no label and classes of few rows."""
    # The package is not imported: it would write a copy of its files to the home folder.
    with tarfile.open(distribution("pydataset").locate_file("pydataset/resources.tar.gz")) as archive:
        for source in sources:
            file = archive.extractfile(f"resources/rdata/csv/{source.file}.csv")
            assert file is not None
            # The first column is the number of the row and no feature.
            yield prepare(source, pd.read_csv(file, index_col=0, low_memory=False))


def prepare(source: Source, frame: pd.DataFrame) -> RealTable:
    """Return features and the numbers of the classes."""
    frame = frame.dropna(subset=source.target).drop(columns=list(source.not_features))
    labels = frame.pop(source.target)
    if source.least is not None:
        labels = labels >= source.least
    kept = labels.groupby(labels).transform("size") >= LEAST_ROWS
    numbers, booleans = frame.select_dtypes("number").columns, frame.select_dtypes("bool").columns
    frame = frame.astype(dict.fromkeys(source.identifiers, str))
    types = {column: np.float64 if column in numbers.difference(source.identifiers) else "category" for column in frame}
    # XGBoost refuses categories that are booleans.
    X = frame[kept].astype(dict.fromkeys(booleans, str)).astype(types)
    return RealTable(source.name, X, np.unique(labels[kept], return_inverse=True)[1])
