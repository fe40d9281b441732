SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25;

SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35;

SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35;

SELECT sum(lo_revenue) AS r, d_year, p_brand1
FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_category = 'MFGR#12' AND s_region = 'REGION1'
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1;

SELECT sum(lo_revenue) AS r, d_year, p_brand1
FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'REGION2'
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1;

SELECT sum(lo_revenue) AS r, d_year, p_brand1
FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_brand1 = 'MFGR#2239' AND s_region = 'REGION3'
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1;

SELECT c_nation, s_nation, d_year, sum(lo_revenue) AS r
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_region = 'REGION2' AND s_region = 'REGION2' AND d_year >= 1992 AND d_year <= 1997
GROUP BY c_nation, s_nation, d_year
ORDER BY d_year ASC, r DESC, c_nation, s_nation;

SELECT c_city, s_city, d_year, sum(lo_revenue) AS r
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_nation = 'NATION07' AND s_nation = 'NATION07' AND d_year >= 1992 AND d_year <= 1997
GROUP BY c_city, s_city, d_year
ORDER BY d_year ASC, r DESC, c_city, s_city;

SELECT c_city, s_city, d_year, sum(lo_revenue) AS r
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND (c_city = 'CITY07_1' OR c_city = 'CITY07_5') AND (s_city = 'CITY07_1' OR s_city = 'CITY07_5') AND d_year >= 1992 AND d_year <= 1997
GROUP BY c_city, s_city, d_year
ORDER BY d_year ASC, r DESC, c_city, s_city;

SELECT c_city, s_city, d_year, sum(lo_revenue) AS r
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND (c_city = 'CITY07_1' OR c_city = 'CITY07_5') AND (s_city = 'CITY07_1' OR s_city = 'CITY07_5') AND d_yearmonth = 'Dec1997'
GROUP BY c_city, s_city, d_year
ORDER BY d_year ASC, r DESC, c_city, s_city;

SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND c_region = 'REGION1' AND s_region = 'REGION1' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')
GROUP BY d_year, c_nation
ORDER BY d_year, c_nation;

SELECT d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND c_region = 'REGION1' AND s_region = 'REGION1' AND (d_year = 1997 OR d_year = 1998) AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')
GROUP BY d_year, s_nation, p_category
ORDER BY d_year, s_nation, p_category;

SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND c_region = 'REGION1' AND s_nation = 'NATION06' AND (d_year = 1997 OR d_year = 1998) AND p_category = 'MFGR#14'
GROUP BY d_year, s_city, p_brand1
ORDER BY d_year, s_city, p_brand1;

SELECT c_city, s_city, d_year, sum(lo_revenue) AS r
FROM dates JOIN lineorder ON lo_orderdate = d_datekey JOIN customer ON lo_custkey = c_custkey JOIN supplier ON lo_suppkey = s_suppkey
WHERE c_nation = 'NATION07' AND s_nation = 'NATION07' AND d_year >= 1992 AND d_year <= 1997
GROUP BY c_city, s_city, d_year
ORDER BY 3, 4 DESC, 1, 2;

SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit
FROM lineorder JOIN dates ON lo_orderdate = d_datekey JOIN customer ON lo_custkey = c_custkey JOIN supplier ON lo_suppkey = s_suppkey JOIN part ON lo_partkey = p_partkey
WHERE c_region = 'REGION1' AND s_nation = 'NATION06' AND d_year >= 1993 AND p_category = 'MFGR#14'
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

SELECT d_year, p_brand1, sum(lo_revenue) AS r
FROM lineorder JOIN supplier ON lo_suppkey = s_suppkey JOIN dates ON lo_orderdate = d_datekey JOIN part ON lo_partkey = p_partkey
WHERE s_region <> 'REGION1' AND d_year > 1992 AND p_brand1 = 'MFGR#2239'
GROUP BY 1, 2
ORDER BY 1, 2;

SELECT d_year, p_brand1, sum(lo_revenue) AS r
FROM lineorder JOIN part ON lo_partkey = p_partkey JOIN supplier ON lo_suppkey = s_suppkey JOIN dates ON lo_orderdate = d_datekey
WHERE s_region <> 'REGION1' AND d_year > 1992 AND p_brand1 = 'MFGR#2239'
GROUP BY 1, 2
ORDER BY 1, 2;
