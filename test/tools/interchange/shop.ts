/** One small shop, told in three foreign formats. The fixtures are of this project. */

/** `shop.clients` and `shop.sales`: sales without a client, a client without sales, sales without an amount. */
export const SHOP_SQL = `
create schema shop;
create table shop.clients (client_no int8 primary key, area text not null, joined date);
create table shop.sales (
  sale_no int8 primary key, client_no int8, state text not null, sold_on date not null, total numeric, pieces int4
);
insert into shop.clients values (1, 'north', '2025-01-03'), (2, 'south', '2025-02-01'), (3, 'north', null);
insert into shop.sales values
  (10, 1, 'paid', '2026-01-02', 120.50, 3), (11, 1, 'open', '2026-01-02', 80, 1),
  (12, 2, 'paid', '2026-01-05', 40.25, 2), (13, 2, 'void', '2026-02-01', 999, 9),
  (14, null, 'paid', '2026-02-03', 10, null), (15, 1, 'paid', '2026-02-03', null, 4),
  (16, 2, 'open', '2026-02-10', 60, 7);
`;

export const SHOP_DBT = `
version: 2
models:
  - name: clients
    columns:
      - { name: client_no, data_type: bigint, constraints: [{ type: primary_key }] }
      - { name: area, data_type: text, constraints: [{ type: not_null }] }
      - { name: joined, data_type: date }
  - name: sales
    description: Everything that was sold.
    columns:
      - { name: sale_no, data_type: bigint }
      - { name: client_no, data_type: bigint }
      - { name: state, data_type: text }
      - { name: sold_on, data_type: date }
      - { name: total, data_type: "numeric(12, 2)" }
      - { name: pieces, data_type: integer }
semantic_models:
  - name: clients
    model: ref('clients')
    entities:
      - { name: client, type: primary, expr: client_no }
    dimensions:
      - { name: area, type: categorical }
      - { name: joined, type: time, type_params: { time_granularity: day } }
  - name: sales
    model: "{{ ref('sales') }}"
    defaults: { agg_time_dimension: sold_on }
    entities:
      - { name: sale, type: primary, expr: sale_no }
      - { name: client, type: foreign, expr: client_no }
    dimensions:
      - { name: state, type: categorical }
      - { name: sold_on, type: time, type_params: { time_granularity: day } }
    measures:
      - { name: turnover_raw, agg: sum, expr: total }
      - { name: sale_rows, agg: count, expr: sale_no }
      - { name: buyers_raw, agg: count_distinct, expr: client_no }
      - { name: pieces, agg: sum, create_metric: true }
      - { name: big_raw, agg: sum_boolean, expr: total > 50 }
      - { name: middle_raw, agg: median, expr: total }
metrics:
  - name: turnover
    label: Takings
    type: simple
    type_params: { measure: turnover_raw }
    filter: "{{ Dimension('sale__state') }} <> 'void'"
  - { name: sales, type: simple, type_params: { measure: sale_rows } }
  - { name: buyers, type: simple, type_params: { measure: buyers_raw } }
  - { name: big_sales, type: simple, type_params: { measure: big_raw } }
  - { name: middle, type: simple, type_params: { measure: middle_raw } }
  - name: paid_share
    type: ratio
    type_params:
      numerator: { name: sales, filter: "{{ Dimension('sale__state') }} = 'paid'" }
      denominator: sales
  - name: per_sale
    type: derived
    type_params:
      expr: t / n
      metrics: [{ name: turnover, alias: t }, { name: sales, alias: n }]
  - name: pieces_to_date
    type: cumulative
    type_params: { measure: pieces, cumulative_type_params: { grain_to_date: month, period_agg: last } }
`;

export const SHOP_CUBE = `
cubes:
  - name: client
    sql_table: shop.clients
    dimensions:
      - { name: client_no, sql: client_no, type: number, primary_key: true, public: true }
      - { name: area, sql: "{CUBE}.area", type: string }
      - { name: joined, sql: joined, type: time }
  - name: sale
    sql: select * from shop.sales
    description: Everything that was sold.
    joins:
      - { name: client, relationship: many_to_one, sql: "{CUBE}.client_no = {client.client_no}" }
    dimensions:
      - { name: sale_no, sql: sale_no, type: number, primary_key: true, public: true }
      - { name: client_no, sql: client_no, type: number }
      - { name: state, sql: state, type: string }
      - { name: sold_on, sql: sold_on, type: time }
      - { name: total, sql: total, type: number }
      - { name: pieces_count, sql: pieces, type: number }
    measures:
      - { name: turnover, title: Takings, type: sum, sql: "{CUBE.total}", filters: [{ sql: "{CUBE}.state <> 'void'" }] }
      - { name: sales, type: count }
      - { name: paid_sales, type: count, filters: [{ sql: "{state} = 'paid'" }] }
      - { name: buyers, type: count_distinct, sql: client_no }
      - { name: pieces, type: sum, sql: "{CUBE}.pieces" }
      - { name: big_sales, type: number, sql: "sum(case when {CUBE}.total > 50 then 1 else 0 end)" }
      - { name: middle, type: number, sql: "percentile_cont(0.5) within group (order by {total})" }
      - { name: paid_share, type: number, sql: "{paid_sales} / {sales}" }
      - { name: per_sale, type: number, sql: "{turnover} / {sales}" }
      - { name: pieces_to_date, type: sum, sql: "{CUBE}.pieces", rolling_window: { type: to_date, granularity: month } }
`;

export const SHOP_OSSIE = `
version: 0.2.0.dev0
semantic_model:
  - name: shop
    datasets:
      - name: client
        source: db.shop.clients
        primary_key: [client_no]
        fields:
          - { name: client_no, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: client_no }] } }
          - { name: area, datatype: String, expression: { dialects: [{ dialect: ANSI_SQL, expression: area }] } }
          - { name: joined, datatype: Date, expression: { dialects: [{ dialect: ANSI_SQL, expression: joined }] } }
      - name: sale
        source: db.shop.sales
        description: Everything that was sold.
        primary_key: [sale_no]
        fields:
          - { name: sale_no, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: sale_no }] } }
          - { name: client_no, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: client_no }] } }
          - { name: state, datatype: String, expression: { dialects: [{ dialect: ANSI_SQL, expression: state }] } }
          - name: sold_on
            datatype: Date
            dimension: { is_time: true }
            expression: { dialects: [{ dialect: ANSI_SQL, expression: sold_on }] }
          - { name: total, datatype: Decimal, expression: { dialects: [{ dialect: ANSI_SQL, expression: total }] } }
          - { name: pieces, datatype: Integer, expression: { dialects: [{ dialect: ANSI_SQL, expression: pieces }] } }
    relationships:
      - { name: sale_client, from: sale, to: client, from_columns: [client_no], to_columns: [client_no] }
    metrics:
      - name: turnover
        ai_context: { synonyms: [Takings] }
        expression:
          dialects:
            - { dialect: ANSI_SQL, expression: "SUM(CASE WHEN sale.state <> 'void' THEN sale.total END)" }
      - { name: sales, expression: { dialects: [{ dialect: ANSI_SQL, expression: COUNT(sale.sale_no) }] } }
      - { name: buyers, expression: { dialects: [{ dialect: ANSI_SQL, expression: COUNT(DISTINCT sale.client_no) }] } }
      - { name: pieces, expression: { dialects: [{ dialect: ANSI_SQL, expression: SUM(sale.pieces) }] } }
      - name: big_sales
        expression: { dialects: [{ dialect: ANSI_SQL, expression: "SUM(CASE WHEN sale.total > 50 THEN 1 ELSE 0 END)" }] }
      - { name: middle, expression: { dialects: [{ dialect: ANSI_SQL, expression: MEDIAN(sale.total) }] } }
      - name: paid_share
        expression:
          dialects:
            - dialect: ANSI_SQL
              expression: "COUNT(CASE WHEN sale.state = 'paid' THEN 1 END) * 1.0 / COUNT(*)"
      - name: per_sale
        expression:
          dialects:
            - dialect: ANSI_SQL
              expression: "SUM(CASE WHEN sale.state <> 'void' THEN sale.total END) / COUNT(sale.sale_no)"
      - name: sales_per_client
        expression: { dialects: [{ dialect: ANSI_SQL, expression: COUNT(sale.sale_no) / COUNT(client.client_no) }] }
`;
