import type { Relation, TypeName } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { CacheDocument } from '../document.js';
import type { CacheRule, Connector } from '../manifest.js';
import type { Problems } from './scope.js';

/** What grows with every change: numbers and times have a greatest value that any database finds by an index. */
const GROWING: ReadonlySet<TypeName> = new Set<TypeName>([
  ...(['int2', 'int4', 'int8', 'numeric', 'date', 'timestamp', 'timestamptz'] as const),
]);

/** How answers that read `relation` may be given again; null where nothing says that they may. */
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
