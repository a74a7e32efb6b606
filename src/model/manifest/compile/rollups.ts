import { createHash } from 'node:crypto';
import {
  type Column,
  columnOf,
  isInteger,
  isMoment,
  quoteIdentifier,
  quoteLiteral,
  type Relation,
  ROLLUP_ROWS,
  ROLLUP_TIME,
  type Rollup,
  type RollupMeasure,
  type TypeName,
  tableSql,
} from 'osl-compiler';
import { CODES, membersOf, type Path, type Problems, type RelationMap } from '../diagnostic.js';
import type { CacheDocument, ManifestDocument, RollupDocument } from '../document.js';
import { type CacheRule, type Connector, frozenMap, type RollupFacts } from '../manifest.js';

/** Schema of rollups in the entity's database; owned by the gateway. */
export const ROLLUP_SCHEMA = 'osl_rollups';

/** Types allowed for dimensions: equal values have equal text, so that each group has exactly one text. */
const DIMENSIONS: ReadonlySet<TypeName> = new Set<TypeName>([
  ...(['bool', 'int2', 'int4', 'int8', 'text', 'uuid', 'date', 'timestamp', 'timestamptz'] as const),
]);
/** Version of the method by which rollups are computed; part of each fingerprint. */
const METHOD = 1;

/** Returns the rollups of a document. A rollup whose entity does not exist is reported and left out. */
export function rollupsOf(
  document: ManifestDocument,
  relations: RelationMap,
  connectors: ReadonlyMap<string, Connector>,
  problems: Problems,
): ReadonlyMap<string, RollupFacts> {
  return frozenMap(
    membersOf(document.rollups).flatMap(([name, declared]): [string, RollupFacts][] => {
      const path = ['rollups', name];
      const relation = relations.get(declared.entity);
      if (relation?.kind !== 'entity') {
        if (problems.broken.has(declared.entity)) return [];
        const entities = [...relations.values()].filter((r) => r.kind === 'entity').map((r) => r.name);
        problems.unknown([...path, 'entity'], 'entity', declared.entity, entities);
        return [];
      }
      if (connectors.get(relation.connector)?.rowSecurity === true)
        problems.add(
          CODES.conflict,
          [...path, 'entity'],
          `connector \`${relation.connector}\` has row security, which would not stand behind a rollup`,
          'leave the rollup out, or `row_security`',
        );
      return [[name, factsOf(name, declared, relation, path, problems)]];
    }),
  );
}

function factsOf(
  name: string,
  declared: RollupDocument,
  relation: Relation,
  path: Path,
  problems: Problems,
): RollupFacts {
  const columnAt = (
    column: string,
    at: Path,
    types: ReadonlySet<TypeName> | null,
    what: string,
  ): Column[] => {
    const found = columnOf(relation, column);
    const known = relation.columns.map((c) => `${relation.name}.${c.name}`);
    if (found === null) {
      problems.unknown([...path, ...at], 'column', `${relation.name}.${column}`, known);
      return [];
    }
    if (types === null || (types.has(found.type) && found.stored === undefined)) return [found];
    const message = `\`${column}\` is ${found.stored ?? found.type}, which is no ${what}`;
    problems.add(CODES.typeMismatch, [...path, ...at], message, `it may be ${[...types].join(', ')}`);
    return [];
  };
  const { dimensions: wanted = [], measures: added = [], time } = declared;
  const dimensions = wanted.flatMap((d, i) => columnAt(d, ['dimensions', i], DIMENSIONS, 'dimension'));
  for (const [i, measure] of added.entries())
    if (wanted.includes(measure))
      problems.add(
        CODES.conflict,
        [...path, 'measures', i],
        `\`${measure}\` is a dimension already`,
        'name it in one of both lists',
      );
  const measures = added.flatMap((m, i) => columnAt(m, ['measures', i], null, 'measure'));
  const moments: ReadonlySet<TypeName> = new Set<TypeName>(['timestamp', 'timestamptz']);
  const [moment] = time === undefined ? [] : columnAt(time.column, ['time', 'column'], moments, 'moment');
  const kept = measures.map(measureOf);
  const query = queryOf(relation, dimensions, moment, time?.grain, measures, kept);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([METHOD, relation.connector, query]))
    .digest('hex');
  const rollup: Rollup = Object.freeze({
    name,
    entity: relation.name,
    schema: ROLLUP_SCHEMA,
    table: `${name.slice(0, 30)}_${fingerprint.slice(0, 12)}`,
    dimensions: Object.freeze(dimensions.map((c) => c.name)),
    time:
      moment === undefined || time === undefined
        ? null
        : Object.freeze({ column: moment.name, grain: time.grain }),
    measures: Object.freeze(kept),
  });
  const maxAgeMs = declared.max_age * 1_000;
  return Object.freeze({ rollup, connector: relation.connector, maxAgeMs, fingerprint, query });
}

function measureOf({ name: column, type }: Column, i: number): RollupMeasure {
  const kept = (letter: string, of: TypeName | null) =>
    of === null ? null : Object.freeze({ name: `#${letter}${i + 1}`, type: of });
  const extreme = isInteger(type) || isMoment(type) ? type : null;
  const sum =
    type === 'int2' || type === 'int4' ? 'int8' : type === 'int8' || type === 'numeric' ? 'numeric' : null;
  return Object.freeze({
    column,
    count: Object.freeze({ name: `#c${i + 1}`, type: 'int8' }),
    sum: kept('s', sum),
    min: kept('l', extreme),
    max: kept('g', extreme),
  });
}

/** Returns a rollup's query. Texts are also grouped by their bytes: a collation may treat different texts as equal. */
function queryOf(
  relation: Relation,
  dimensions: readonly Column[],
  moment: Column | undefined,
  grain: string | undefined,
  measures: readonly Column[],
  kept: readonly RollupMeasure[],
): string {
  const quoted = ({ physical }: Column): string => quoteIdentifier(physical);
  const utc = moment?.type === 'timestamptz' ? ` AT TIME ZONE 'UTC'` : '';
  const period =
    moment === undefined ? null : `date_trunc(${quoteLiteral(grain ?? 'day')}, ${quoted(moment)}${utc})`;
  const outputs = [
    ...dimensions.map(quoted),
    ...(period === null ? [] : [`${period} AS ${quoteIdentifier(ROLLUP_TIME)}`]),
    `count(*) AS ${quoteIdentifier(ROLLUP_ROWS)}`,
    ...measures.flatMap((column, i) => aggregatesOf(quoted(column), kept[i])),
  ];
  const keys = [
    ...dimensions.flatMap((c) => (c.type === 'text' ? [quoted(c), `${quoted(c)} COLLATE "C"`] : [quoted(c)])),
    ...(period === null ? [] : [period]),
  ];
  const from = `SELECT ${outputs.join(', ')} FROM ${tableSql(relation)}`;
  // Without HAVING, the rollup of an empty table would have a row if there are no keys.
  return keys.length === 0 ? `${from} HAVING count(*) > 0` : `${from} GROUP BY ${keys.join(', ')}`;
}

function aggregatesOf(column: string, measure: RollupMeasure | undefined): readonly string[] {
  if (measure === undefined) return [];
  const { count, sum, min, max } = measure;
  return (
    [
      ['count', count],
      ['sum', sum],
      ['min', min],
      ['max', max],
    ] as const
  ).flatMap(([name, kept]) => (kept === null ? [] : [`${name}(${column}) AS ${quoteIdentifier(kept.name)}`]));
}

/** Types allowed for a watermark: its values can grow with every change, and an index can find the maximum. */
const GROWING: ReadonlySet<TypeName> = new Set<TypeName>([
  ...(['int2', 'int4', 'int8', 'numeric', 'date', 'timestamp', 'timestamptz'] as const),
]);

/** Returns the cache settings for answers that read `relation`; null if such answers are not cached. */
export function cacheRuleOf(
  declared: CacheDocument | undefined,
  relation: Relation,
  connectors: ReadonlyMap<string, Connector>,
  problems: Problems,
): CacheRule | null {
  if (declared === undefined) return null;
  const { name, connector, schema, table, columns } = relation;
  const path = ['entities', name, 'cache'] as const;
  const { watermark, notify = false } = declared;
  const column = columns.find((c) => c.name === watermark);
  if (watermark !== undefined && column === undefined)
    problems.unknown(
      [...path, 'watermark'],
      'column',
      `${name}.${watermark}`,
      columns.map((c) => `${name}.${c.name}`),
    );
  if (column !== undefined && (!GROWING.has(column.type) || column.stored !== undefined))
    problems.add(
      CODES.typeMismatch,
      [...path, 'watermark'],
      `\`${column.name}\` is ${column.type}, which does not grow`,
      'a watermark is a number, a date or a timestamp that every change makes greater',
    );
  if (notify && connectors.get(connector)?.kind === 'pglite')
    problems.add(
      CODES.conflict,
      [...path, 'notify'],
      'an embedded database notifies nobody',
      'leave `notify` out, and name a `watermark`',
    );
  return Object.freeze({
    connector,
    schema,
    table,
    maxAgeMs: declared.max_age * 1_000,
    watermark: column?.physical ?? null,
    notify,
  });
}
