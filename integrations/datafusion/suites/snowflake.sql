SELECT min(t.title), count(*)
FROM title t, movie_keyword mk, keyword k
WHERE t.id = mk.movie_id AND mk.keyword_id = k.id AND k.keyword LIKE 'kw-ab%' AND t.production_year > 2010;

SELECT count(*), min(t.title)
FROM company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t
WHERE cn.country_code = '[us]' AND k.keyword LIKE '%77%' AND cn.id = mc.company_id AND mc.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id;

SELECT count(*), max(mi.info)
FROM keyword k, movie_info mi, movie_keyword mk, title t
WHERE k.phonetic = 'Kabc' AND mi.info LIKE '%dead%' AND t.production_year > 2005 AND t.id = mi.movie_id AND t.id = mk.movie_id AND mk.movie_id = mi.movie_id AND k.id = mk.keyword_id;

SELECT count(*), min(n.name), min(t.title)
FROM cast_info ci, name n, title t
WHERE ci.person_id = n.id AND ci.movie_id = t.id AND n.pcode LIKE 'ab%' AND t.production_year BETWEEN 1995 AND 2000;

SELECT count(*)
FROM cast_info ci, title t, kind_type kt
WHERE ci.movie_id = t.id AND kt.id = t.kind_id AND kt.kind = 'kind3' AND ci.note IS NOT NULL;

SELECT count(*), min(n.name)
FROM cast_info ci, name n
WHERE ci.person_role_id = n.id AND n.gender = 'f';

SELECT count(*), min(n.name)
FROM cast_info ci JOIN name n ON ci.person_role_id = n.id
WHERE n.name LIKE 'abc%';

SELECT t.production_year, count(*), count(DISTINCT ci.person_id)
FROM cast_info ci JOIN title t ON ci.movie_id = t.id
WHERE t.episode_nr = 7
GROUP BY t.production_year
ORDER BY 1;

SELECT count(*)
FROM title t
WHERE t.production_year > 2018 AND EXISTS (SELECT 1
FROM movie_keyword mk JOIN keyword k ON k.id = mk.keyword_id
WHERE mk.movie_id = t.id AND k.phonetic LIKE 'Ka%');

SELECT count(*)
FROM cast_info ci
WHERE ci.movie_id IN (SELECT movie_id
FROM movie_companies mc JOIN company_name cn ON cn.id = mc.company_id
WHERE cn.country_code = '[ab]');

SELECT count(*), sum(x.c)
FROM (SELECT movie_id, count(*) AS c
FROM cast_info
GROUP BY movie_id) x JOIN title t ON t.id = x.movie_id
WHERE t.phonetic LIKE 'AB%';

SELECT k.phonetic, count(*)
FROM movie_keyword mk JOIN keyword k ON mk.keyword_id = k.id JOIN movie_info mi ON mi.movie_id = mk.movie_id
WHERE mi.info_type_id = 3 AND k.phonetic < 'K1'
GROUP BY 1
ORDER BY 2 DESC, 1 LIMIT 20;

SELECT count(*), min(t.title), min(mi.info)
FROM title t JOIN movie_info mi ON mi.movie_id = t.id JOIN info_type it ON it.id = mi.info_type_id
WHERE it.info = 'info16' AND t.production_year = 1999 AND t.kind_id <> 2;

SELECT count(*)
FROM title t LEFT JOIN movie_info mi ON mi.movie_id = t.id AND mi.info_type_id = 5
WHERE t.production_year = 1950;

SELECT count(*), count(mi.id)
FROM title t LEFT JOIN movie_info mi ON mi.movie_id = t.id
WHERE t.phonetic = 'ABCDE';

SELECT count(*), min(n.name), min(a.note)
FROM cast_info a JOIN cast_info b ON a.movie_id = b.movie_id AND a.role_id = b.role_id JOIN name n ON n.id = a.person_id
WHERE b.note = '(' || substr(md5('7'), 1, 8) || ')' AND a.movie_id > 1000 AND n.gender = 'f';

SELECT count(*), max(t.title)
FROM title t, cast_info ci, movie_info mi, movie_keyword mk
WHERE t.id = ci.movie_id AND t.id = mi.movie_id AND t.id = mk.movie_id AND mk.keyword_id > 1000 AND mi.info_type_id = 9 AND ci.role_id = 4 AND t.production_year < 1960 AND ci.movie_id > 5000;

SELECT count(*)
FROM movie_info mi JOIN title t ON mi.movie_id = t.id
WHERE t.production_year > 1900;

SELECT count(*), max(mi.info)
FROM movie_info mi JOIN title t ON mi.movie_id = t.id
WHERE t.id < 100;

SELECT count(*), max(mi.info)
FROM movie_info mi JOIN title t ON mi.movie_id = t.id
WHERE t.title LIKE '%abcd%';

SELECT count(*)
FROM movie_info mi JOIN movie_info mj ON mi.info = mj.info
WHERE mi.movie_id BETWEEN 200000 AND 200100 AND mj.info_type_id = 1;

SELECT count(*), min(ci.note)
FROM cast_info ci JOIN movie_companies mc ON mc.movie_id = ci.movie_id JOIN company_name cn ON cn.id = mc.company_id
WHERE cn.name LIKE '%beef%' AND mc.note LIKE '%2003%';

SELECT count(*)
FROM name n JOIN cast_info ci ON n.id = ci.person_id JOIN title t ON t.id = ci.movie_id
WHERE t.production_year IS NULL AND n.gender IS NULL;

SELECT t.kind_id, sum(CASE WHEN mk.keyword_id % 2 = 0 THEN 1 ELSE 0 END)
FROM movie_keyword mk JOIN title t ON mk.movie_id = t.id
WHERE t.production_year IN (1931, 1932)
GROUP BY 1
ORDER BY 1;

SELECT count(*), min(n.name), min(t.title), min(ci.note)
FROM cast_info ci JOIN title t ON ci.movie_id = t.id JOIN name n ON n.id = ci.person_id
WHERE t.production_year > 1935 AND n.pcode = 'abcd';

SELECT count(*), min(n.name), min(t.title), min(ci.note)
FROM cast_info ci JOIN name n ON n.id = ci.person_id JOIN title t ON ci.movie_id = t.id
WHERE t.production_year > 1935 AND n.pcode = 'abcd';

SELECT count(*), min(n.name), min(ci.note)
FROM cast_info ci JOIN name n ON ci.person_role_id = n.id;

SELECT count(*), min(n.name), min(ci.note)
FROM cast_info ci JOIN name n ON ci.person_role_id = n.id
WHERE n.gender IS NOT NULL;

SELECT count(*), min(t.title), min(ci.note)
FROM cast_info ci JOIN title t ON t.id = ci.movie_id
WHERE ci.movie_id IN (SELECT movie_id
FROM movie_keyword
GROUP BY movie_id HAVING count(*) > 10);

SELECT count(*), sum(c)
FROM (SELECT ci.person_id, ci.movie_id, count(*) AS c
FROM cast_info ci
GROUP BY ci.person_id, ci.movie_id) x JOIN name n ON n.id = x.person_id
WHERE n.pcode LIKE 'a%' AND n.gender = 'f';

SELECT count(*), min(mi.info)
FROM movie_info mi JOIN title t ON mi.movie_id = t.id
WHERE t.kind_id = 3 AND t.production_year BETWEEN 1990 AND 1999 AND t.episode_nr = 4;

SELECT count(*), min(mi.info)
FROM movie_info mi JOIN movie_keyword mk ON mi.movie_id = mk.movie_id
WHERE mk.keyword_id = 12345;
