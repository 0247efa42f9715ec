{{ config(materialized='incremental', incremental_strategy='merge', unique_key='region') }}
select region, sum(total) as total from {{ ref('orders') }} group by region
