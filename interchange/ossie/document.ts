import type { TypeName } from 'osl-compiler';

/** The format as exported, version 0.2. */
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

/** `data` is JSON. */
interface OssieExtension {
  readonly vendor_name: string;
  readonly data: string;
}

/** Types of the model for the portable types of the format. */
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

/** Portable type for a type of the model; `Opaque` if there is none. */
export function datatypeOf(type: TypeName): string {
  return PORTABLE.get(type) ?? 'Opaque';
}
