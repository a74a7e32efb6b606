import type { Node } from '@pgsql/types';
import type { TypeName } from 'osl-compiler';
import { safeText } from '../names.js';
import type { SourceMapping } from '../source.js';
import { NoMapping, parseExpression, refuseControlCharacters } from '../sql-expression.js';

/** The document that the export writes, in version 0.2 of the format. */
export interface OssieDocument {
  readonly version: string;
  readonly semantic_model: readonly OssieModel[];
}

export interface OssieModel {
  readonly name: string;
  readonly datasets: readonly OssieDataset[];
  readonly relationships?: readonly OssieRelationship[];
  readonly metrics?: readonly OssieMetric[];
  readonly custom_extensions?: readonly OssieExtension[];
}

export interface OssieDataset {
  readonly name: string;
  readonly source: string;
  readonly primary_key: readonly string[];
  readonly description?: string;
  readonly ai_context?: OssieContext;
  readonly fields: readonly OssieField[];
}

export interface OssieField {
  readonly name: string;
  readonly expression: OssieExpression;
  readonly dimension?: { readonly is_time: boolean };
  readonly description?: string;
  readonly datatype: string;
  readonly ai_context?: OssieContext;
  readonly custom_extensions?: readonly OssieExtension[];
}

export interface OssieRelationship {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly from_columns: readonly string[];
  readonly to_columns: readonly string[];
}

export interface OssieMetric {
  readonly name: string;
  readonly expression: OssieExpression;
  readonly description?: string;
  readonly ai_context?: OssieContext;
}

interface OssieExpression {
  readonly dialects: readonly { readonly dialect: string; readonly expression: string }[];
}

export interface OssieContext {
  readonly synonyms: readonly string[];
}

interface OssieExtension {
  readonly vendor_name: string;
  readonly data: string;
}

/** Manifest types by portable type of the format. */
export const DATATYPES: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['String', 'text'],
  ['Integer', 'int8'],
  ['Decimal', 'numeric'],
  ['Float', 'float8'],
  ['Boolean', 'bool'],
  ['Date', 'date'],
  ['Time', 'time'],
  ['DateTime', 'timestamp'],
  ['DateTimeTz', 'timestamptz'],
]);

const PORTABLE: ReadonlyMap<string, string> = new Map([
  ...[...DATATYPES].map(([word, type]): [string, string] => [type, word]),
  ['int2', 'Integer'],
  ['int4', 'Integer'],
  ['float4', 'Float'],
]);

/** Returns the portable type for a manifest type; `Opaque` if the format has none. */
export function datatypeOf(type: TypeName): string {
  return PORTABLE.get(type) ?? 'Opaque';
}

/** Supported dialects in order of preference; all others belong to other engines. */
const READ = ['ANSI_SQL', 'OSSIE_SQL_2026'] as const;

/** Dialects of other engines, read only for plain column names, which mean the same in all of them. */
const OTHER_SQL: ReadonlySet<string> = new Set(['SNOWFLAKE', 'DATABRICKS', 'BIGQUERY']);

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Parses the expression of a field or metric in the preferred supported dialect, or a plain name in the SQL of another
 * engine. Other dialects are reported.
 *
 * @throws NoMapping if no supported dialect is present
 */
export function expressionOf(part: SourceMapping): {
  readonly node: Node;
  readonly text: string;
  readonly place: SourceMapping;
} {
  const expression = part.child('expression');
  const entries = (expression?.parts('dialects') ?? []).map((entry) => {
    return { entry, dialect: entry.needText('dialect'), text: entry.needText('expression') };
  });
  const preferred = READ.map((d) => entries.find((e) => e.dialect === d)).find((e) => e !== undefined);
  const found = preferred ?? entries.find((e) => OTHER_SQL.has(e.dialect) && PLAIN_NAME.test(e.text));
  const others = entries.filter((e) => e !== found);
  for (const { entry, dialect } of others)
    entry.note(
      null,
      'lost',
      found === undefined
        ? `the dialect \`${safeText(dialect)}\` is not read`
        : `the expression in \`${safeText(dialect)}\` was left out; \`${found.dialect}\` was read`,
    );
  if (found === undefined) throw new NoMapping('it has no expression in ANSI_SQL');
  refuseControlCharacters(found.text);
  return { node: parseExpression(found.text), text: found.text, place: found.entry };
}

/** Returns the synonyms in an `ai_context`; everything else in it is reported as lost. */
export function synonymsOf(part: SourceMapping): readonly string[] {
  if (!part.has('ai_context')) return [];
  if (part.isText('ai_context')) {
    part.lose('ai_context', 'instructions to a model have no counterpart');
    return [];
  }
  const context = part.child('ai_context');
  if (context === null) return [];
  for (const key of context.keys())
    if (key !== 'synonyms') context.lose(key, `\`${safeText(key)}\` for a model has no counterpart`);
  return context.texts('synonyms');
}

/** Vendor name that marks this gateway's extension. */
export const VENDOR = 'OSL';

export function loseExtensions(part: SourceMapping): void {
  for (const extension of part.parts('custom_extensions')) {
    const vendor = extension.needText('vendor_name');
    if (vendor === VENDOR) extension.ignore('data');
    else extension.loseAll(`the extension of \`${safeText(vendor)}\` has no counterpart`);
  }
}

/** Returns this gateway's extension of a field; null if missing or unreadable. Other extensions are reported. */
export function ownExtension(part: SourceMapping): Readonly<Record<string, unknown>> | null {
  loseExtensions(part);
  for (const extension of part.parts('custom_extensions')) {
    if (extension.text('vendor_name') !== VENDOR) continue;
    const data = jsonObject(extension.text('data') ?? '');
    if (data !== null) return data;
    extension.note('data', 'lost', 'the extension is not JSON object');
  }
  return null;
}

/** Parses a JSON object; null if the text is anything else. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    return { ...value };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return null;
    throw error;
  }
}
