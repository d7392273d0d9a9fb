"""Files with one JSON object in each line."""

import re
from collections.abc import Mapping

from aucforest.tables.database import literal, literals, name_of
from aucforest.tables.files import check_column_names
from aucforest.tables.text_files import NESTED, NOT_UTF8, UNMARKED, TextFiles

JSON_SUFFIXES = tuple(f"{suffix}{packed}" for packed in ("", ".gz", ".zst") for suffix in (".jsonl", ".ndjson"))


class JsonFiles(TextFiles):
    """Files of JSON lines as one table, with a column for each key of any object; see `TextFiles`."""

    _reads_types = False
    _has_numbers = True
    _unmarked = UNMARKED

    def _read_header(self) -> None:
        compressions = {file.compression for file in self._readable}
        if len(compressions) > 1:
            raise ValueError(f"{self.name}: the files must be compressed in the same way, or not at all")
        self._lines = f"[{literals(self._patterns)}], format='newline_delimited', compression='{compressions.pop()}'"
        # With hive_partitioning, folders with names such as a=1 would add columns.
        self._source = f"read_json({self._lines}, records=true, hive_partitioning=false"
        # All rows are read to find the columns. With these thresholds, objects with many keys do not become maps.
        inference = "sample_size=-1, map_inference_threshold=-1, field_appearance_threshold=0"
        described = self._fetch(lambda: f"DESCRIBE FROM {self._source}, {inference})")
        self.columns = [column[0] for column in described]
        check_column_names(self.name, self.columns)
        self._check_case_of_keys()
        nested = [column for column, type_, *_ in described if "(" in type_ or type_.endswith("]")]
        self._types = dict.fromkeys(nested, NESTED)

    def _check_case_of_keys(self) -> None:
        """Raise ValueError if two keys differ only in case: the engine would read the values of one key for both."""
        # The engine appends a number to the second of two such names.
        lower = {column.lower() for column in self.columns}
        if any(re.sub(r"_\d+$", "", column).lower() in lower - {column.lower()} for column in self.columns):
            keys = f"SELECT DISTINCT unnest(json_keys(json)) FROM read_json_objects({self._lines})"
            for (key,) in self._fetch(lambda: keys):
                if key not in self.columns:
                    what = "differs from another in upper and lower case alone: rename one"
                    raise ValueError(f"{self.name}: the key {key!r} {what}")

    def _table(self, engine: Mapping[str, str], *, raw: bool = False) -> str:
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.columns)
        values = (f"{name_of(name)} AS c{index}" for index, name in enumerate(self.columns))
        return f"(SELECT {', '.join(values)} FROM {self._source}, columns={{{columns}}}))"

    def _explain(self, message: str) -> str:
        file = self._readable[self._file_index(message)]
        if "expected records" in message:
            is_empty = file.path.stat().st_size == 0
            reason = "it is empty" if is_empty else "each line must be an object with keys that are not empty"
            return f"cannot read {file.name}: {reason}"
        match = re.search(r"in line (\d+): ([^.\n]*)", message)
        if match is None:
            return f"cannot read {file.name}: {message.split(':', 1)[-1].strip().splitlines()[0]}"
        reason = match[2]
        # If a line cannot be parsed as JSON, its number in the message of the engine is one too large.
        where = f"{file.name}, line {int(match[1]) - (not reason.startswith('Object '))}"
        if "invalid UTF-8" in reason:
            return f"{where} is {NOT_UTF8}"
        reason = "text follows the object" if "content after document" in reason else reason
        return f"{where} is not one JSON object: {reason}"
