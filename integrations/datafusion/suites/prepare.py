#!/usr/bin/env python3
"""Writes the tables and queries of a suite for the tests and the example.

    python3 suites/prepare.py SUITE SCALE DIRECTORY

tpcds      TPC-DS at a scale factor, with its 99 queries and DuckDB's answers
months     sales of TPC-DS in row groups of 20,480 rows, with the queries of months.sql
ssb        the Star Schema Benchmark at a scale factor, with the queries of ssb.sql
snowflake  tables like those of the Join Order Benchmark for SCALE films, with skewed keys and
           NULL, and the queries of snowflake.sql

DIRECTORY/tables/TABLE/N.parquet   the tables, large ones in four files
DIRECTORY/queries/NN.sql           the queries
DIRECTORY/answers/NN.parquet       tpcds: the rows from DuckDB, which sorts NULL as DataFusion does

DuckDB's Python package is installed from PyPI into DIRECTORY/venv, which needs Python 3 with
`venv`. Version 1.1.3 includes the generator and the queries of TPC-DS; later versions download
them. The queries have another licence than this project, so never commit the output.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

DUCKDB = "duckdb==1.1.3"
# Tables with at least LARGE rows have FILES files.
LARGE, FILES = 10_000, 4
# Values of a column are computed from the row's number and the column's number: uniform in [0, 1),
# uniform in 0 .. n, and in 1 .. n with a Zipf distribution (s = 1).
MACROS = """
    CREATE MACRO uniform(i, c) AS (hash(i * 1000003 + c) / 18446744073709551616.0);
    CREATE MACRO pick(i, c, n) AS CAST(hash(i * 1000003 + c) % n AS INT);
    CREATE MACRO zipf(i, c, n) AS CAST(floor(exp(uniform(i, c) * ln(n + 1.0))) AS INT);
    CREATE MACRO maybe(i, c, share, value) AS CASE WHEN uniform(i, c) < share THEN value END;
"""


def main():
    suites = {"tpcds": tpcds, "months": months, "ssb": ssb, "snowflake": snowflake}
    if len(sys.argv) != 4 or sys.argv[1] not in suites:
        sys.exit(__doc__)
    suite, scale, directory = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]).absolute()
    environment = directory / "venv"
    if Path(sys.prefix) != environment:
        if not (environment / "bin" / "python").exists():
            venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", DUCKDB]
        subprocess.run([python, *install], check=True)
        os.execv(python, [python, __file__, suite, str(scale), str(directory)])
    import duckdb

    for name in ("tables", "queries"):
        (directory / name).mkdir(exist_ok=True)
    database = duckdb.connect()
    # NULL is the largest value, as in DataFusion.
    database.execute("SET default_null_order = 'postgres'")
    suites[suite](database, scale, directory)
    if suite != "tpcds":
        text = Path(__file__).with_name(f"{suite}.sql").read_text()
        write_queries(directory, enumerate(text.strip().rstrip(";").split(";\n"), start=1))
    counts = [len(os.listdir(directory / name)) for name in ("tables", "queries")]
    print(f"{directory}: {counts[0]} tables and {counts[1]} queries")


def write_table(database, directory, name, rows, files, select, options=""):
    """Writes a table. `select` has the bounds `{first}` and `{end}` of a file's rows."""
    (directory / "tables" / name).mkdir(exist_ok=True)
    for file in range(files):
        path = directory / "tables" / name / f"{file}.parquet"
        part = select.format(first=rows * file // files, end=rows * (file + 1) // files)
        database.execute(f"COPY ({part}) TO '{path}' (FORMAT parquet{options})")


def write_queries(directory, queries):
    for number, query in queries:
        (directory / f"queries/{number:02}.sql").write_text(query.strip() + "\n")


def tpcds(database, scale, directory):
    database.execute(f"CALL dsdgen(sf = {scale})")
    for (table,) in database.execute("SHOW TABLES").fetchall():
        (rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        part = f"SELECT * FROM {table} WHERE rowid >= {{first}} AND rowid < {{end}}"
        write_table(database, directory, table, rows, FILES if rows >= LARGE else 1, part)
    (directory / "answers").mkdir(exist_ok=True)
    queries = database.execute("FROM tpcds_queries()").fetchall()
    queries = [(number, query.strip().removesuffix(";")) for number, query in queries]
    write_queries(directory, queries)
    for number, query in queries:
        path = directory / f"answers/{number:02}.parquet"
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def months(database, scale, directory):
    database.execute(f"CALL dsdgen(sf = {scale})")
    for table in ("catalog_sales", "inventory", "store_sales", "web_sales", "date_dim", "item"):
        write_table(database, directory, table, 0, 1, f"FROM {table}", ", ROW_GROUP_SIZE 20480")


def write_numbered(database, directory, name, rows, columns):
    """Writes a table whose columns are computed from the row's number `i`."""
    columns = columns.replace("{", "{{").replace("}", "}}")
    select = f"SELECT {columns} FROM range({{first}}, {{end}}) t(i)"
    write_table(database, directory, name, rows, FILES if rows >= LARGE else 1, select)


def ssb(database, scale, directory):
    database.execute(MACROS)
    customers, suppliers = max(1_000, int(30_000 * scale)), max(200, int(2_000 * scale))
    parts = max(5_000, int(200_000 * min(1.0, scale)))

    def place(prefix, column):
        nation = f"lpad(pick(i, {column}, 25)::VARCHAR, 2, '0')"
        return f"""'NATION' || {nation} AS {prefix}_nation,
            'REGION' || pick(i, {column}, 25) % 5 AS {prefix}_region,
            'CITY' || {nation} || '_' || pick(i, {column + 1}, 10) AS {prefix}_city"""

    day = "DATE '1992-01-01' + i::INT"
    category = "'MFGR#' || (1 + pick(i, 21, 5)) || (1 + pick(i, 22, 5))"
    tables = {
        "dates": (2_557, f"""CAST(strftime({day}, '%Y%m%d') AS INT) AS d_datekey,
            strftime({day}, '%B %d, %Y') AS d_date, year({day})::INT AS d_year,
            (year({day}) * 100 + month({day}))::INT AS d_yearmonthnum,
            strftime({day}, '%b%Y') AS d_yearmonth,
            weekofyear({day})::INT AS d_weeknuminyear"""),
        "customer": (customers, f"""i::INT + 1 AS c_custkey, 'Customer#' || i AS c_name,
            'addr ' || hash(i) AS c_address, {place("c", 1)},
            'SEG' || pick(i, 5, 5) AS c_mktsegment"""),
        "supplier": (suppliers, f"""i::INT + 1 AS s_suppkey, 'Supplier#' || i AS s_name,
            {place("s", 11)}"""),
        "part": (parts, f"""i::INT + 1 AS p_partkey, 'part ' || hash(i) AS p_name,
            'MFGR#' || (1 + pick(i, 21, 5)) AS p_mfgr, {category} AS p_category,
            {category} || lpad((1 + pick(i, 23, 40))::VARCHAR, 2, '0') AS p_brand1,
            pick(i, 24, 92) AS p_color"""),
        "lineorder": (int(6_000_000 * scale), f"""(i // 4 + 1)::INT AS lo_orderkey,
            (i % 4 + 1)::INT AS lo_linenumber, 1 + pick(i // 4, 31, {customers}) AS lo_custkey,
            1 + pick(i, 32, {parts}) AS lo_partkey, 1 + pick(i, 33, {suppliers}) AS lo_suppkey,
            CAST(strftime(DATE '1992-01-01' + pick(i // 4, 34, 2406), '%Y%m%d') AS INT)
                AS lo_orderdate,
            'PRIO' || pick(i // 4, 35, 5) AS lo_orderpriority, 1 + pick(i, 36, 50) AS lo_quantity,
            90000 + pick(i, 37, 10000000) AS lo_extendedprice, pick(i, 38, 11) AS lo_discount,
            90000 + pick(i, 39, 9000000) AS lo_revenue, 50000 + pick(i, 40, 70000) AS lo_supplycost,
            pick(i, 41, 9) AS lo_tax, 'MODE' || pick(i, 42, 7) AS lo_shipmode"""),
    }
    for name, (rows, columns) in tables.items():
        write_numbered(database, directory, name, rows, columns)


def snowflake(database, scale, directory):
    database.execute(MACROS)
    films = int(scale)
    people, companies, keywords = 4 * films, films // 8, films // 4

    def names(column, label):
        return f"i::INT + 1 AS id, '{label}' || (i + 1) AS {column}"

    tables = {
        "title": (films, """i::INT + 1 AS id, 'title ' || md5(i::VARCHAR) AS title,
            maybe(i, 1, 0.95, CAST(2020 - floor(90 * pow(uniform(i, 2), 2)) AS INT))
                AS production_year,
            1 + pick(i, 3, 7) AS kind_id, maybe(i, 4, 0.3, 1 + pick(i, 5, 40)) AS episode_nr,
            upper(substr(md5((i * 7)::VARCHAR), 1, 5)) AS phonetic"""),
        "kind_type": (7, names("kind", "kind")),
        "info_type": (113, names("info", "info")),
        "role_type": (12, names("role", "role")),
        "company_type": (4, names("kind", "ctype")),
        "name": (people, """i::INT + 1 AS id,
            substr(md5(i::VARCHAR), 1, 3) || ' ' || md5((i + 5)::VARCHAR) AS name,
            CASE pick(i, 8, 5) WHEN 0 THEN NULL WHEN 1 THEN 'f' ELSE 'm' END AS gender,
            substr(md5((i * 3)::VARCHAR), 1, 4) AS pcode"""),
        "company_name": (companies, """i::INT + 1 AS id, 'company ' || md5(i::VARCHAR) AS name,
            CASE WHEN uniform(i, 9) < 0.35 THEN '[us]' WHEN uniform(i, 10) < 0.08 THEN NULL
                ELSE '[' || substr(md5((i % 90)::VARCHAR), 1, 2) || ']' END AS country_code"""),
        "keyword": (keywords, """i::INT + 1 AS id, 'kw-' || md5(i::VARCHAR) AS keyword,
            'K' || substr(md5(i::VARCHAR), 1, 3) AS phonetic"""),
        "cast_info": (8 * films, f"""i::INT + 1 AS id, zipf(i, 13, {people}) AS person_id,
            zipf(i, 14, {films}) AS movie_id,
            maybe(i, 15, 0.15, 1 + pick(i, 16, {people})) AS person_role_id,
            maybe(i, 17, 0.4, '(' || substr(md5((i % 300)::VARCHAR), 1, 8) || ')') AS note,
            1 + pick(i, 18, 11) AS role_id"""),
        "movie_info": (4 * films, f"""i::INT + 1 AS id, zipf(i, 21, {films}) AS movie_id,
            1 + pick(i, 22, 71) AS info_type_id,
            repeat(md5((i % 5000)::VARCHAR), 1 + pick(i, 23, 5)) AS info,
            maybe(i, 24, 0.1, 'note' || pick(i, 25, 100)) AS note"""),
        "movie_keyword": (3 * films, f"""i::INT + 1 AS id, 1 + pick(i, 31, {films}) AS movie_id,
            zipf(i, 32, {keywords}) AS keyword_id"""),
        "movie_companies": (2 * films, f"""i::INT + 1 AS id, 1 + pick(i, 41, {films}) AS movie_id,
            zipf(i, 42, {companies}) AS company_id, 1 + pick(i, 43, 2) AS company_type_id,
            maybe(i, 44, 0.5, '(' || (1990 + pick(i, 45, 30)) || ') (presents)') AS note"""),
    }
    for name, (rows, columns) in tables.items():
        write_numbered(database, directory, name, rows, columns)


main()
