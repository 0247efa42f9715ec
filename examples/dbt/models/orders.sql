{{ config(materialized='table', partition_by=['region']) }}
select id, if(id % 2 = 0, 'us', 'eu') as region, cast(id as double) as total from range(10)
