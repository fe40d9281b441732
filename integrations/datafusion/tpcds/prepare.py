#!/usr/bin/env python3
"""Writes TPC-DS for the tests and the example: tables, queries, and DuckDB's answers.

    python3 tpcds/prepare.py SCALE DIRECTORY

DIRECTORY/tables/TABLE/N.parquet   the 24 tables at a scale factor, large ones in four files
DIRECTORY/queries/NN.sql           the 99 queries
DIRECTORY/answers/NN.parquet       their rows from DuckDB, which sorts NULL as DataFusion does

The generator and the queries come from DuckDB's Python package, which is installed from PyPI into
DIRECTORY/venv. This needs Python 3 with `venv`. Version 1.1.3 includes them; later versions
download them. The queries have another licence than this project, so never commit the output.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

DUCKDB = "duckdb==1.1.3"
# Tables with at least LARGE rows have FILES files.
LARGE, FILES = 10_000, 4


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    scale, directory = float(sys.argv[1]), Path(sys.argv[2]).absolute()
    environment = directory / "venv"
    if Path(sys.prefix) != environment:
        if not (environment / "bin" / "python").exists():
            venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", DUCKDB]
        subprocess.run([python, *install], check=True)
        os.execv(python, [python, __file__, str(scale), str(directory)])
    write(scale, directory)


def write(scale, directory):
    import duckdb

    folders = {name: directory / name for name in ("tables", "queries", "answers")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    database = duckdb.connect()
    # NULL is the largest value, as in DataFusion.
    database.execute("SET default_null_order = 'postgres'")
    database.execute(f"CALL dsdgen(sf = {scale})")
    tables = [name for (name,) in database.execute("SHOW TABLES").fetchall()]
    for table in tables:
        (rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        files = FILES if rows >= LARGE else 1
        (folders["tables"] / table).mkdir(exist_ok=True)
        for file in range(files):
            first, end = rows * file // files, rows * (file + 1) // files
            path = folders["tables"] / table / f"{file}.parquet"
            part = f"SELECT * FROM {table} WHERE rowid >= {first} AND rowid < {end}"
            database.execute(f"COPY ({part}) TO '{path}' (FORMAT parquet)")
    queries = database.execute("FROM tpcds_queries()").fetchall()
    for number, query in queries:
        query = query.strip().removesuffix(";")
        (folders["queries"] / f"{number:02}.sql").write_text(query + "\n")
        path = folders["answers"] / f"{number:02}.parquet"
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    print(f"{directory}: {len(tables)} tables, {len(queries)} queries and their answers")


main()
