import { createHash } from 'node:crypto';
import { isArray, type Relation, type TypeName } from 'osl-compiler';
import { type Sql, sql, sqlJoin, sqlName, sqlTable, sqlType } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import {
  type Connector,
  type DeclaredFacetVersion,
  type DeclaredTableColumn,
  type Facet,
  type Manifest,
  type Table,
  tableName,
} from '../../model/manifest/index.js';
import type { TextSpan } from '../chunk.js';
import { DEFAULT_MIN_LENGTH } from '../store/control.js';
import { type Detector, detectorsOf } from './detectors/detectors.js';
import { type DeclaredValue, type DictionaryMatch, type Exception, MASK, ValueMatcher } from './matcher.js';

/** Number of replacements, by sensitivity label or detector. */
export type RedactionCounts = Map<string, number>;

export interface RedactedText {
  readonly text: string;
  readonly changed: boolean;
}

/** Detectors, each with the name under which its matches are counted. */
export type NamedDetectors = readonly (readonly [name: string, detect: Detector])[];

/** Redaction rules of a facet version, without the dictionary's values. */
export interface RedactionRules {
  readonly redact: readonly string[];
  readonly detectors: NamedDetectors;
  /** Declared values that are ordinary words and are not redacted. */
  readonly exceptions: readonly string[];
}

/** Applies a facet version's redaction rules with a dictionary. */
export class Redactor {
  readonly labels: ReadonlySet<string>;
  readonly matcher: ValueMatcher;
  /** Hash of the dictionary, 32 hex digits; part of every document's content hash. */
  readonly dictionaryHash: string;
  readonly #detectors: NamedDetectors;

  constructor({ redact, detectors }: RedactionRules, matcher: ValueMatcher, dictionaryHash: string) {
    this.labels = new Set(redact);
    this.matcher = matcher;
    this.dictionaryHash = dictionaryHash;
    this.#detectors = detectors;
  }

  /**
   * Replaces every declared value and every match of a detector.
   *
   * INVARIANT: no declared value remains. A replacement creates new word boundaries, so the result is searched
   * repeatedly until nothing is found.
   */
  redact(text: string, counts: RedactionCounts): RedactedText {
    let current = text;
    for (;;) {
      const found = this.#findAll(current);
      if (found.length === 0) return { text: current, changed: current !== text };
      const next = replaceAll(current, found);
      if (next === current) return { text: current, changed: current !== text };
      for (const { label } of found) counts.set(label, (counts.get(label) ?? 0) + 1);
      current = next;
    }
  }

  /**
   * True if cutting the text inside a word, at `at`, leaves no declared value at either side of the cut. Offsets are in
   * UTF-16 code units.
   *
   * @param start start of the piece before the cut, possibly inside the same word
   */
  mayCut(text: string, at: number, start: number): boolean {
    if (this.matcher.size === 0) return true;
    const reach = this.matcher.longest * 4 + 64;
    const before = text.slice(Math.max(start, at - reach), at);
    const after = text.slice(at, at + reach);
    return (
      !this.matcher.find(before).some((f) => isInvisible(before.slice(f.end))) &&
      !this.matcher.find(after).some((f) => isInvisible(after.slice(0, f.start)))
    );
  }

  #findAll(text: string): readonly DictionaryMatch[] {
    const spans = [...this.matcher.find(text)];
    for (const [label, detect] of this.#detectors) {
      for (const span of detect(text)) spans.push({ ...span, label });
    }
    return merged(spans);
  }
}

/** True if `text` is invisible to readers. Marks and format characters do not separate letters. */
function isInvisible(text: string): boolean {
  return /^[\p{M}\p{Cf}]*$/u.test(text);
}

/** Merges overlapping spans, keeping the label of the first. */
function merged(spans: readonly DictionaryMatch[]): readonly DictionaryMatch[] {
  const out: DictionaryMatch[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = out.at(-1);
    if (last !== undefined && span.start < last.end) {
      out[out.length - 1] = { ...last, end: Math.max(last.end, span.end) };
    } else {
      out.push(span);
    }
  }
  return out;
}

function replaceAll(text: string, spans: readonly TextSpan[]): string {
  let out = '';
  let at = 0;
  for (const { start, end } of spans) {
    out += text.slice(at, start) + MASK;
    at = end;
  }
  return out + text.slice(at);
}

/** Creates a redactor. The values are sorted, so that their order does not affect the dictionary's hash. */
export function redactorOf(
  rules: RedactionRules,
  values: readonly { readonly value: string; readonly label: string }[],
  minLength: number,
): Redactor {
  const hash = createHash('sha256').update(`${JSON.stringify(rules.exceptions)}\n`);
  const sorted = [...values].sort((a, b) => order(a.label, b.label) || order(a.value, b.value));
  for (const { label, value } of sorted) hash.update(`${JSON.stringify([label, value])}\n`);
  return new Redactor(
    rules,
    new ValueMatcher(sorted, minLength, rules.exceptions),
    hash.digest('hex').slice(0, 32),
  );
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Redactors for the documents of one facet version. */
export interface Redactors {
  /** Returns a function that maps each of `keys` to a redactor; null is the key of documents without one. */
  forKeys(keys: readonly (string | null)[]): Promise<(key: string | null) => Redactor>;
  /** Number of values searched for so far, and number of excluded values by reason. */
  counted(): { readonly values: number; readonly exceptions: Readonly<Partial<Record<Exception, number>>> };
  /** Declared columns whose type does not allow searching for their values. */
  readonly skipped: readonly SkippedColumn[];
}

/**
 * Opens redactors with one dictionary for all documents, or one per key, as the facet declares.
 *
 * @throws ContentError `unknownDetector`, `unknownCountry`, `notInstalled`
 */
export async function openRedactors(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  minLength: number,
): Promise<Redactors> {
  const connector = manifest.connectors.get(facet.connector);
  if (connector === undefined) throw new TypeError('a facet of the manifest has a connector');
  const { redact } = version;
  const rules = { redact, detectors: await detectorsOf(version), exceptions: facet.exceptions };
  return facet.dictionary === 'tenant'
    ? ofTenant(await openRedactor(system, connector, version, rules, minLength))
    : ofKeys(system, manifest, facet, version, rules, minLength);
}

function ofTenant({ redactor, skipped }: Awaited<ReturnType<typeof openRedactor>>): Redactors {
  return {
    forKeys: async () => () => redactor,
    counted: () => ({
      values: redactor.matcher.size,
      exceptions: Object.fromEntries(redactor.matcher.exceptions),
    }),
    skipped,
  };
}

function ofKeys(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  rules: RedactionRules,
  minLength: number,
): Redactors {
  const exceptions = new Map<Exception, number>();
  const nobody = redactorOf(rules, [], minLength);
  let values = 0;
  return {
    async forKeys(keys) {
      const named = [...new Set(keys.filter((k) => k !== null))];
      const read = await readKeyDictionaries(system, manifest, facet, version, named);
      const byKey = new Map([...read].map(([key, own]) => [key, redactorOf(rules, own, minLength)]));
      for (const { matcher } of byKey.values()) {
        values += matcher.size;
        for (const [why, n] of matcher.exceptions) exceptions.set(why, (exceptions.get(why) ?? 0) + n);
      }
      return (key) => (key === null ? nobody : (byKey.get(key) ?? nobody));
    },
    counted: () => ({ values, exceptions: Object.fromEntries(exceptions) }),
    skipped: [],
  };
}

/** A declared column whose values cannot be searched for in text. */
export interface SkippedColumn {
  /** `schema.table.column`. */
  readonly column: string;
  readonly type: string;
}

interface Dictionary {
  readonly values: readonly DeclaredValue[];
  readonly skipped: readonly SkippedColumn[];
}

async function readDictionary(
  system: SystemQueries,
  connector: Connector,
  version: DeclaredFacetVersion,
): Promise<Dictionary> {
  const labels = new Set(version.redact);
  const values: DeclaredValue[] = [];
  const skipped: SkippedColumn[] = [];
  for (const table of connector.tables.values()) {
    for (const column of table.columns.values()) {
      if (column.sensitivity === null || !labels.has(column.sensitivity)) continue;
      const statement = columnValuesSql(table, column);
      if (statement === null) {
        skipped.push({ column: `${table.schema}.${table.table}.${column.name}`, type: column.type });
        continue;
      }
      for (const row of await system.query(statement)) {
        values.push({ value: String(row['v']), label: column.sensitivity });
      }
    }
  }
  return { values, skipped };
}

function columnValuesSql(table: Table, { name, type }: DeclaredTableColumn): Sql | null {
  const found = valueIn(sqlName(name), type);
  if (found === null) return null;
  const { value, lateral } = found;
  return sql`select distinct ${value} as v from ${sqlTable(table)}${lateral} where ${value} is not null`;
}

/**
 * SQL for the searchable texts of a column: each array element, each string or number in jsonb, otherwise the value as
 * text. Null if the type has none.
 */
function valueIn(column: Sql, type: TypeName): { readonly value: Sql; readonly lateral: Sql } | null {
  if (type === 'bytea' || type === 'bytea[]' || type === 'jsonb[]' || type === 'bool') return null;
  if (type === 'jsonb') {
    const leaves = sql`pg_catalog.jsonb_path_query(${column}, 'strict $.** ? (@.type() == "string" || @.type() == "number")')`;
    return { value: sql`j.v #>> '{}'`, lateral: sql` cross join lateral ${leaves} as j(v)` };
  }
  if (isArray(type))
    return {
      value: sql`a.v::pg_catalog.text`,
      lateral: sql` cross join lateral pg_catalog.unnest(${column}) as a(v)`,
    };
  return { value: sql`${column}::pg_catalog.text`, lateral: sql`` };
}

/** Opens a redactor for `version` with the dictionary of the whole connector. */
async function openRedactor(
  system: SystemQueries,
  connector: Connector,
  version: DeclaredFacetVersion,
  rules: RedactionRules,
  minLength: number = DEFAULT_MIN_LENGTH,
): Promise<{ readonly redactor: Redactor; readonly skipped: readonly SkippedColumn[] }> {
  const { values, skipped } = await readDictionary(system, connector, version);
  return { redactor: redactorOf(rules, values, minLength), skipped };
}

/** A FROM clause that leads from keys of the facet's entity to the related rows of one table. */
interface KeyPath {
  readonly table: string;
  /** The related rows have the alias `n`. */
  readonly from: Sql;
  readonly key: Sql;
}

/**
 * Reads the labelled values related to each key: those in the facet's own rows, in the entity's rows, and in the rows
 * of entities and bridges that a declared link leads to. Other rows have no influence, so a redaction does not reveal
 * which values they contain.
 */
async function readKeyDictionaries(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  keys: readonly string[],
): Promise<ReadonlyMap<string, readonly DeclaredValue[]>> {
  const labels = new Set(version.redact);
  const found = new Map<string, DeclaredValue[]>(keys.map((key) => [key, []]));
  const tables = manifest.connectors.get(facet.connector)?.tables ?? new Map<string, never>();
  for (const reach of reachesOf(manifest, facet)) {
    for (const column of tables.get(reach.table)?.columns.values() ?? []) {
      if (column.sensitivity === null || !labels.has(column.sensitivity)) continue;
      const statement = valuesSql(reach, column, facet.entityKey.type);
      if (statement === null) continue;
      for (const row of await system.query(statement, [keys]))
        found.get(String(row['k']))?.push({ value: String(row['v']), label: column.sensitivity });
    }
  }
  return found;
}

function valuesSql({ from, key }: KeyPath, column: DeclaredTableColumn, keyType: TypeName): Sql | null {
  const found = valueIn(sql`n.${sqlName(column.name)}`, column.type);
  if (found === null) return null;
  const { value, lateral } = found;
  // Equal keys may have different texts, such as the numerics 1 and 1.0: values belong to the text that was asked for.
  return sql`select distinct w.k, ${value} as v from pg_catalog.unnest($1::pg_catalog.text[]) as w(k)
    cross join ${from}${lateral} where ${key} = w.k::${sqlType(keyType)} and ${value} is not null`;
}

function reachesOf(manifest: Manifest, facet: Facet): readonly KeyPath[] {
  const { catalog } = manifest;
  const entity = catalog.relations.get(facet.entity);
  const store = catalog.facets.get(facet.legOf ?? facet.name);
  const own = tableName(facet);
  const source: KeyPath = {
    table: own,
    from: sql`${sqlTable(facet)} as n`,
    key: sql`n.${sqlName(facet.entityKey.physical)}`,
  };
  // Rows in another database cannot be joined.
  if (entity === undefined || store === undefined || entity.connector !== facet.connector) return [source];
  const e = tableOf(entity, E);
  const key = sql`e.${physical(entity, store.keyOfEntity)}`;
  const reaches: KeyPath[] = [
    source,
    { table: nameOf(entity), from: tableOf(entity, N), key: sql`n.${physical(entity, store.keyOfEntity)}` },
  ];
  for (const edge of catalog.edges) {
    const ways = [
      { here: edge.from, near: edge.fromColumns, there: edge.to, far: edge.toColumns, turned: false },
      { here: edge.to, near: edge.toColumns, there: edge.from, far: edge.fromColumns, turned: true },
    ].filter((w) => w.here === facet.entity);
    for (const { near, there, far, turned } of ways) {
      const neighbour = catalog.relations.get(there);
      const bridge = edge.bridge === null ? null : catalog.relations.get(edge.bridge.name);
      if (neighbour === undefined || neighbour.connector !== facet.connector) continue;
      const equal = (
        a: Sql,
        r: Relation,
        as: readonly string[],
        b: Sql,
        s: Relation,
        bs: readonly string[],
      ) =>
        sqlJoin(
          as.map((c, i) => sql`${a}.${physical(r, c)} = ${b}.${physical(s, bs[i] ?? '')}`),
          AND,
        );
      if (edge.bridge === null || bridge === null || bridge === undefined) {
        const on = equal(E, entity, near, N, neighbour, far);
        reaches.push({
          table: nameOf(neighbour),
          from: sql`${e} join ${tableOf(neighbour, N)} on ${on}`,
          key,
        });
        continue;
      }
      const [into, outOf] = turned
        ? [edge.bridge.toColumns, edge.bridge.fromColumns]
        : [edge.bridge.fromColumns, edge.bridge.toColumns];
      reaches.push(
        {
          table: nameOf(bridge),
          from: sql`${e} join ${tableOf(bridge, N)} on ${equal(E, entity, near, N, bridge, into)}`,
          key,
        },
        {
          table: nameOf(neighbour),
          from: sql`${e} join ${tableOf(bridge, B)} on ${equal(E, entity, near, B, bridge, into)} join ${tableOf(neighbour, N)} on ${equal(B, bridge, outOf, N, neighbour, far)}`,
          key,
        },
      );
    }
  }
  return reaches;
}

function nameOf(relation: Relation): string {
  return tableName(relation);
}

function tableOf(relation: Relation, alias: Sql): Sql {
  return sql`${sqlTable(relation)} as ${alias}`;
}

function physical(relation: Relation, name: string): Sql {
  return sqlName(relation.columns.find((c) => c.name === name)?.physical ?? name);
}

/** Aliases of the entity, of a bridge, and of the rows that are read. */
const [E, B, N] = [sql`e`, sql`b`, sql`n`];
const AND = sql` and `;
