SELECT count(*), sum(cs_quantity), sum(cs_net_profit), sum(cs_ext_tax)
FROM catalog_sales JOIN date_dim ON cs_sold_date_sk = d_date_sk
WHERE d_year = 2000 AND d_moy = 5;

SELECT count(*), sum(inv_quantity_on_hand), sum(inv_item_sk)
FROM inventory JOIN date_dim ON inv_date_sk = d_date_sk
WHERE d_year = 2000 AND d_moy = 5;

SELECT count(*), sum(ss_quantity), sum(ss_net_profit)
FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk
WHERE d_year = 2000 AND d_moy = 5;

SELECT count(*), sum(ws_quantity), sum(ws_net_profit)
FROM web_sales JOIN date_dim ON ws_sold_date_sk = d_date_sk
WHERE d_year = 2000 AND d_moy = 5;

SELECT count(*), sum(cs_quantity), sum(cs_net_profit), sum(cs_ext_tax)
FROM catalog_sales JOIN date_dim ON cs_sold_date_sk = d_date_sk
WHERE d_year = 2000;

SELECT count(*), sum(cs_quantity), sum(cs_net_profit), sum(cs_ext_tax)
FROM catalog_sales JOIN item ON cs_item_sk = i_item_sk
WHERE i_category = 'Music' AND i_class = 'rock';
