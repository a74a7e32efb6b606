/** Models that use what the formats have, also what a manifest has not. The fixtures are of this project. */

export const RICH_DBT = `
models:
  - name: trips
    description: Journeys of a ferry.
    config: { alias: trips_v, schema: marts, tags: [daily] }
    constraints:
      - { type: primary_key, columns: [trip_id] }
      - { type: check, expression: fare > 0 }
    columns:
      - { name: trip_id, data_type: bigint, data_tests: [unique] }
      - { name: fare, data_type: "numeric(8, 2)", constraints: [{ type: not_null }] }
      - { name: shape, data_type: geography }
  - name: newer
    semantic_model: true
semantic_models:
  - name: trips
    description: One row for each crossing.
    label: Crossings
    model: ref('trips')
    config: { meta: { owner: sea } }
    defaults: { agg_time_dimension: left_on }
    entities:
      - { name: trip, type: primary, expr: trip_id }
      - { name: ship, type: foreign, expr: ship_id, role: vessel }
      - { name: route, type: foreign, expr: route_code }
      - { name: pair, type: foreign, expr: "a || b" }
    dimensions:
      - { name: left_on, type: time, type_params: { time_granularity: day } }
      - { name: back_on, type: time, expr: back_at, type_params: { time_granularity: hour }, is_partition: true }
      - { name: class, type: categorical, expr: class_name, description: "{{ doc('class') }}" }
      - { name: is_far, type: categorical, expr: "miles > 100", label: Far }
      - { name: shape, type: categorical }
    measures:
      - { name: fares, agg: sum, expr: fare, description: What was paid. }
      - { name: riders, agg: count_distinct, expr: "rider_id" }
      - { name: late, agg: sum_boolean, expr: is_late, agg_time_dimension: back_on }
      - { name: p90, agg: percentile, expr: miles, agg_params: { percentile: 0.9, use_approximate_percentile: true } }
      - { name: balance, agg: max, expr: balance, non_additive_dimension: { name: left_on, window_choice: max } }
      - { name: unused, agg: min, expr: miles }
  - name: ships
    node_relation: { alias: ships, schema_name: harbour, database: sea }
    entities:
      - { name: ship, type: primary, expr: id }
      - { name: number_plate, type: unique, expr: plate }
    dimensions:
      - { name: flag, type: categorical }
  - name: nothing
    model: "{{ var('which') }}"
    entities: [{ name: thing, type: primary }]
metrics:
  - name: fares
    description: Fares that were paid.
    label: Takings
    type: simple
    type_params: { measure: { name: fares, filter: "{{ Dimension('trip__class') }} = 'second'", join_to_timespine: true } }
    filter: ["{{ TimeDimension('trip__left_on', 'month') }} >= '2026-01-01'", "{{ Entity('ship') }} is not null"]
    config: { meta: { team: sea } }
  - { name: riders, type: simple, type_params: { measure: riders }, time_granularity: month }
  - { name: late, type: simple, type_params: { measure: late } }
  - { name: p90, type: simple, type_params: { measure: p90 } }
  - { name: balance, type: simple, type_params: { measure: balance } }
  - { name: flagged, type: simple, type_params: { measure: fares }, filter: "{{ Dimension('ship__flag') }} = 'NO'" }
  - name: fare_each
    type: ratio
    type_params: { numerator: { name: fares, alias: f }, denominator: riders }
    filter: "{{ Dimension('class') }} <> 'crew'"
  - name: growth
    type: derived
    type_params:
      expr: now - before
      metrics: [{ name: fares, alias: now }, { name: fares, alias: before, offset_window: 1 month }]
  - name: first_class
    type: derived
    type_params:
      expr: f + 1
      metrics: [{ name: fares, alias: f, filter: "{{ Dimension('trip__class') }} = 'first'" }]
  - { name: both, type: derived, type_params: { expr: riders + f, metrics: [riders, { name: fares, alias: f }] } }
  - { name: mean, type: derived, expr: riders * 2, input_metrics: [riders], numerator: late }
  - { name: twice, type: derived, type_params: { expr: riders, input_metrics: [riders] }, input_metrics: [fares] }
  - { name: so_far, type: cumulative, type_params: { measure: riders, window: 7 days } }
  - { name: ever, type: cumulative, input_metric: { name: riders, filter: "{{ Dimension('trip__class') }} = 'first'" }, period_agg: last }
  - { name: chicken, type: derived, type_params: { expr: egg, metrics: [{ name: egg }] } }
  - { name: egg, type: derived, type_params: { expr: chicken, metrics: [{ name: chicken }] } }
  - name: turned
    type: conversion
    type_params: { conversion_type_params: { base_measure: fares, conversion_measure: late, entity: ship } }
  - name: boarding
    type: conversion
    filter: "{{ Dimension('trip__class') }} <> 'crew'"
    type_params:
      conversion_type_params:
        base_measure: { name: fares, filter: "{{ Dimension('ship__flag') }} = 'NO'" }
        conversion_metric: riders
        entity: ship
        calculation: CONVERSIONS
        window: 7 days
        constant_properties: [{ base_property: class, conversion_property: route }]
  - name: boarding_rate
    type: conversion
    type_params: { conversion_type_params: { base_metric: riders, conversion_metric: flagged, entity: trip } }
saved_queries:
  - { name: weekly, query_params: { metrics: [fares] } }
`;

export const RICH_CUBE = `
cubes:
  - name: trip
    title: Crossings
    description: One row for each crossing.
    sql_table: sea.trips
    data_source: harbour
    refresh_key: { every: 1 hour }
    public: false
    joins:
      - { name: ship, relationship: many_to_one, sql: "{CUBE}.ship_id = {ship.id}" }
      - { name: route, relationship: many_to_one, sql: "{CUBE}.route_code = {route.code}" }
      - { name: twin, relationship: one_to_one, sql: "{CUBE}.id = {twin.id}" }
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true }
      - { name: left_on, sql: "{CUBE}.left_at", type: time, title: Departure, granularities: [{ name: week4, interval: 4 weeks }] }
      - { name: class, sql: class, type: string, description: First or second., meta: { colour: blue } }
      - { name: fare, sql: fare, type: number, format: currency }
      - { name: rank, sql: "{class}", type: string }
      - { name: far, sql: "{CUBE}.miles > 100", type: boolean }
      - { name: place, type: geo, latitude: { sql: lat }, longitude: { sql: lon } }
      - { name: inner, sql: secret, type: string, public: false }
      - { name: band, type: string, case: { when: [{ sql: "{fare} > 9", label: high }], else: { label: low } } }
    segments:
      - { name: second, sql: "{CUBE}.class = 'second'" }
    measures:
      - { name: count, type: count, drill_members: [id] }
      - { name: fares, type: sum, sql: "{fare}", title: Takings, format: currency, currency: usd, filters: [{ sql: "{CUBE}.class <> 'crew'" }, { sql: "{far}" }] }
      - { name: riders, type: count_distinct_approx, sql: rider }
      - { name: hidden, type: max, sql: "{fare}", public: false }
      - { name: kept, type: min, sql: "{fare}", public: false }
      - { name: spread, type: number, sql: "{fares} / {hidden}", format: percent }
      - { name: week, type: sum, sql: "{fare}", rolling_window: { trailing: 7 day, offset: end } }
      - { name: ahead, type: sum, sql: "{fare}", rolling_window: { leading: 7 day } }
      - { name: chicken, type: number, sql: "{egg} + 1" }
      - { name: egg, type: number, sql: "{chicken} + 1" }
      - { name: ranked, type: rank, multi_stage: true, sql: "{fares}" }
    pre_aggregations:
      - { name: main, measures: [count], dimensions: [class] }
    hierarchies:
      - { name: h, levels: [class] }
  - name: ship
    sql: SELECT * FROM sea.ships
    dimensions:
      - { name: id, sql: id, type: number, primary_key: true, public: true }
      - { name: flag, sql: flag, type: string }
    measures:
      - { name: count, type: count }
  - name: twin
    sql: SELECT id, 1 AS one FROM sea.trips WHERE fare > 5
    dimensions: [{ name: id, sql: id, type: number, primary_key: true }]
  - { name: child, extends: ship }
views:
  - { name: all_trips, cubes: [{ join_path: trip, includes: "*" }] }
`;

export const RICH_OSSIE = `
version: 0.2.0.dev0
dialects: [ANSI_SQL, SNOWFLAKE]
semantic_model:
  - name: sea
    description: Ferries.
    ai_context: { instructions: Be brief., examples: [how many] }
    datasets:
      - name: trips
        source: harbour.sea.trips
        primary_key: [trip_id]
        unique_keys: [[trip_id], [ticket]]
        description: One row for each crossing.
        ai_context: { synonyms: [crossings, journeys] }
        fields:
          - name: trip_id
            datatype: Integer
            expression: { dialects: [{ dialect: ANSI_SQL, expression: id }] }
          - name: left_on
            label: times
            dimension: { is_time: true }
            expression: { dialects: [{ dialect: ANSI_SQL, expression: trips.left_at }] }
          - name: fare
            datatype: Decimal
            description: In kroner.
            expression:
              dialects:
                - { dialect: ANSI_SQL, expression: fare }
                - { dialect: SNOWFLAKE, expression: "fare::number" }
          - name: double_fare
            expression: { dialects: [{ dialect: ANSI_SQL, expression: fare * 2 }] }
          - name: shape
            datatype: Opaque
            expression: { dialects: [{ dialect: ANSI_SQL, expression: shape }] }
          - name: odd
            expression: { dialects: [{ dialect: MDX, expression: "[odd]" }] }
        custom_extensions: [{ vendor_name: DBT, data: "{}" }]
      - name: ships
        source: sea.ships
        unique_keys: [[plate]]
        fields:
          - { name: plate, expression: { dialects: [{ dialect: ANSI_SQL, expression: plate }] } }
      - { name: query, source: "select a, b from t", primary_key: [a] }
      - { name: keyless, source: sea.keyless, fields: [] }
    relationships:
      - { name: trip_ship, from: trips, to: ships, from_columns: [ship], to_columns: [plate] }
      - { name: both, from: trips, to: ships, from_columns: [a, b], to_columns: [c, d] }
      - { name: lost, from: trips, to: query, from_columns: [a], to_columns: [a] }
    metrics:
      - { name: doubled, expression: { dialects: [{ dialect: ANSI_SQL, expression: SUM(trips.double_fare) }] } }
      - name: each
        description: Fare for each ship.
        datatype: Decimal
        ai_context: { synonyms: [per ship] }
        expression: { dialects: [{ dialect: ANSI_SQL, expression: SUM(trips.fare) / COUNT(ships.plate) }] }
      - { name: windowed, expression: { dialects: [{ dialect: ANSI_SQL, expression: "SUM(trips.fare) OVER ()" }] } }
      - { name: crossed, expression: { dialects: [{ dialect: ANSI_SQL, expression: "SUM(trips.fare * ships.plate)" }] } }
      - { name: plain, expression: { dialects: [{ dialect: ANSI_SQL, expression: trips.fare }] } }
      - { name: text_sum, expression: { dialects: [{ dialect: ANSI_SQL, expression: SUM(trips.shape) }] } }
`;
