import { arrayText, type Expr, InternalError, isArray, queryError, type TypeName } from 'osl-compiler';
import type { StepInput } from '../parts.js';
import { textOfBinary } from './binary.js';
import { slotValues } from './slot-values.js';

/** Text of a constant expression: a literal or `$n`. */
export function textValue(expr: Expr, input: StepInput): string | null {
  if (expr.kind === 'cast') return textValue(expr.arg, input);
  if (expr.kind === 'null') return null;
  if (expr.kind === 'boolean') return String(expr.value);
  if (expr.kind !== 'parameter') throw new InternalError(`a ${expr.kind} is no constant`);
  const slot = input.plan.slots[expr.slot];
  if (slot === undefined) return null;
  const declared = slot.kind === 'client' ? slot.declared : null;
  if (slot.kind === 'client' && declared !== null && !READ_AS_THEY_ARE.has(declared.oid)) {
    throw queryError('declaredType', { index: slot.index + 1, type: declared.sql, cast: null });
  }
  const [value] = slotValues([slot], new Map(), input);
  if (value === undefined || value.bytes === null) return null;
  if (value.format === 1) return textOfBinary(value.bytes, slot.type, declared?.oid);
  return Buffer.from(value.bytes).toString('utf8');
}

/** `name`, `oid`, `varchar` and their arrays: their text format is that of the model's type. */
const READ_AS_THEY_ARE: ReadonlySet<number> = new Set([19, 26, 1003, 1015, 1028, 1043]);

/** NaN for anything that is not an int4 literal: `0x10`, `1e1`, empty. */
export function wholeNumber(text: string | null): number {
  return text !== null && /^\s*[+-]?\d+\s*$/.test(text) ? Number(text) : Number.NaN;
}

/** A constant array in Postgres' text format. */
export function arrayValue(expr: Expr, input: StepInput): string | null {
  if (expr.kind === 'cast') return arrayValue(expr.arg, input);
  if (expr.kind !== 'array') return textValue(expr, input);
  return arrayText(expr.items.map((i) => textValue(i, input)));
}

/** A constant as a JSON value. */
export function constantValue(expr: Expr, input: StepInput): unknown {
  if (expr.kind === 'array' || isArray(expr.type)) return elements(arrayValue(expr, input));
  const text = textValue(expr, input);
  return text === null ? null : jsonValue(text, expr.type);
}

/** JSON for a value in text format, such that `jsonb_to_recordset` restores it. */
export function jsonValue(text: string | null, type: TypeName): unknown {
  if (text === null) return null;
  if (type === 'jsonb') return parsedJson(text);
  if (type === 'bool') return text === 't' || text === 'true';
  // As text for NaN and infinities, which JSON lacks: `jsonb_to_recordset` parses them as Postgres does.
  const number = type === 'int2' || type === 'int4' || type === 'float4' || type === 'float8';
  return number && Number.isFinite(Number(text)) ? Number(text) : text;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw queryError('invalidLiteral', { type: 'jsonb' });
  }
}

/** Like `elementsOrNull`, without NULLs. */
export function elements(text: string | null): readonly string[] {
  return elementsOrNull(text).filter((e) => e !== null);
}

/** Elements of a one-dimensional array in Postgres' text format. */
export function elementsOrNull(text: string | null): readonly (string | null)[] {
  if (text === null || text === '{}') return [];
  const items: (string | null)[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|((?:[^,{}"\\]|\\.)+)/gs;
  for (const match of text.slice(1, -1).matchAll(pattern)) {
    const [, quoted, bare] = match;
    if (quoted !== undefined) items.push(quoted.replace(/\\(.)/gs, '$1'));
    const word = bare?.trim() ?? '';
    if (word !== '') items.push(word.toUpperCase() === 'NULL' ? null : word.replace(/\\(.)/gs, '$1'));
  }
  return items;
}
