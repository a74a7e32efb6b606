import type { Relation, TypeName } from 'osl-compiler';
import { isArray, typeRow } from 'osl-compiler/types';
import { not, variable } from './formula.js';
import type { Obligation, ObligationCaller, ObligationPart } from './obligations.js';
import type { ModelValue, SolverModel } from './smt.js';
import type { Encoder, RowVariable } from './values.js';

/** A row and callers that refute a claim, with values that the database can hold. */
export interface Counterexample {
  readonly relation: Relation;
  readonly part: ObligationPart;
  /** Values by physical column, in Postgres' text format. Columns that do not matter are left out. */
  readonly row: ReadonlyMap<string, string | null>;
  readonly callers: readonly CounterexampleCaller[];
  /** Keys of the grant conditions that hold. */
  readonly conditions: readonly string[];
  /** Parts of predicates that are unknown to the solver and affect the result, such as `the function lower`. */
  readonly unknowns: readonly string[];
}

export interface CounterexampleCaller extends Pick<ObligationCaller, 'roles' | 'snapshot'> {
  /** The caller's attributes; a missing attribute has no entry. */
  readonly attributes: ReadonlyMap<string, AttributeValues>;
}

type AttributeValues = 'any' | readonly string[];

/** Converts a solver's model to a counterexample; null if some of its values cannot be written for Postgres. */
export function counterexampleOf(obligation: Obligation, model: SolverModel): Counterexample | null {
  const { relation, encoders, callers, parts } = obligation;
  const part = parts.find((p) => model.holds(p.formula));
  const [rowEncoder] = encoders;
  if (part === undefined || rowEncoder === undefined) return null;
  const row = rowOf(relation, rowEncoder, part, model);
  const attributes: ReadonlyMap<string, AttributeValues>[] = [];
  for (const encoder of encoders) {
    const callerAttributes = attributesOf(encoder, model, attributes);
    if (callerAttributes === null) return null;
    attributes.push(callerAttributes);
  }
  if (row === null) return null;
  const unknowns = encoders.flatMap((encoder) =>
    [...encoder.unknowns].filter(([name]) => model.value(name) !== null).map(([, what]) => what),
  );
  return {
    relation,
    part,
    row,
    callers: callers.map(({ encoder, roles, snapshot }) => ({
      roles,
      snapshot,
      attributes: attributes[encoder] ?? new Map(),
    })),
    conditions: [
      ...new Set(
        encoders.flatMap((encoder) =>
          [...encoder.conditions].filter((key) => isTrue(model, `${encoder.caller} holds ${key}`)),
        ),
      ),
    ],
    unknowns: [...new Set(unknowns)],
  };
}

/** Optional constraints that make a counterexample easier to read and run: the columns in its checks are not NULL. */
export function softConstraintsOf({ encoders, parts, relation }: Obligation) {
  const [encoder] = encoders;
  const names = new Set(parts.flatMap((p) => p.checks.flatMap((c) => c.of ?? [])));
  const physical = relation.columns.filter((c) => names.has(c.name)).map((c) => c.physical);
  return [...(encoder?.columns.values() ?? [])]
    .filter(({ column }) => physical.includes(column))
    .map(({ isNull }) => not(variable(isNull, 'Bool')));
}

function isTrue(model: SolverModel, name: string): boolean {
  return model.value(name) === true;
}

function rowOf(
  relation: Relation,
  encoder: Encoder,
  { checks }: ObligationPart,
  model: SolverModel,
): ReadonlyMap<string, string | null> | null {
  const row = new Map<string, string | null>();
  for (const { physical, name, type, labels, stored } of relation.columns) {
    const rowVariable = encoder.columns.get(physical);
    if (rowVariable === undefined) {
      const isShown = relation.primaryKey.includes(name) || checks.some((c) => c.of === name);
      if (isShown && !isArray(type)) row.set(physical, labels?.[0] ?? sampleOf(type, stored));
      continue;
    }
    const value = columnValue(rowVariable, model);
    if (value === undefined) return null;
    row.set(physical, value);
  }
  return row;
}

function sampleOf(type: TypeName, stored: string | undefined): string | null {
  return isArray(type) || stored !== undefined ? null : typeRow(type).example;
}

/** Returns the text of a column's value, null for NULL; undefined if the value cannot be written (see `valueText`). */
export function columnValue(
  { type, isNull, value, rank }: RowVariable,
  model: SolverModel,
): string | null | undefined {
  if (isTrue(model, isNull)) return null;
  if (value === null) return sampleOf(type, undefined) ?? undefined;
  const rankValue = rank === null ? '0' : String(model.value(rank) ?? '0');
  const modelValue = model.value(value);
  if (rankValue !== '0') return RANKS[rankValue];
  return modelValue === null ? (sampleOf(type, undefined) ?? undefined) : valueText(modelValue, type);
}

const RANKS: Readonly<Record<string, string>> = { '-1': '-infinity', '1': 'infinity', '2': 'NaN' };

/** Formats a value as Postgres does; undefined if it cannot be written, such as a date outside the years 1 to 9999. */
function valueText(value: ModelValue, type: TypeName): string | undefined {
  if (typeof value === 'boolean') return String(value);
  switch (type) {
    case 'date':
      return dateText(Number(value));
    case 'time':
      return timeText(BigInt(value));
    case 'timestamp':
    case 'timestamptz':
      return timestampText(BigInt(value), type === 'timestamptz' ? '+00' : '');
    case 'numeric':
    case 'float4':
    case 'float8':
      return decimalText(value);
    default:
      return value.includes('\u0000') ? undefined : value;
  }
}

function dateText(days: number): string | undefined {
  const date = new Date(days * 86_400_000);
  const text = Number.isNaN(date.getTime()) ? '' : date.toISOString();
  return /^\d{4}-/.test(text) && !text.startsWith('0000') ? text.slice(0, 10) : undefined;
}

const DAY_US = 86_400_000_000n;

function timestampText(us: bigint, zone: string): string | undefined {
  const inDay = ((us % DAY_US) + DAY_US) % DAY_US;
  const day = dateText(Number((us - inDay) / DAY_US));
  return day === undefined ? undefined : `${day} ${timeText(inDay)}${zone}`;
}

function timeText(us: bigint): string {
  const [seconds, rest] = [us / 1_000_000n, us % 1_000_000n];
  const parts = [seconds / 3_600n, (seconds / 60n) % 60n, seconds % 60n].map((n) =>
    String(n).padStart(2, '0'),
  );
  return `${parts.join(':')}${rest === 0n ? '' : `.${String(rest).padStart(6, '0')}`}`;
}

/** Converts a fraction to decimal digits; undefined if it needs more than 30 decimal places. */
function decimalText(value: string): string | undefined {
  const [above = '', below] = value.split('/');
  if (below === undefined) return above;
  const scale = 10n ** 30n;
  const [numerator, denominator] = [BigInt(above), BigInt(below)];
  if ((numerator * scale) % denominator !== 0n) return undefined;
  const digits = ((numerator < 0n ? -numerator : numerator) * scale) / denominator;
  const padded = String(digits).padStart(31, '0');
  const text = `${padded.slice(0, -30)}.${padded.slice(-30)}`.replace(/\.?0+$/, '');
  return `${numerator < 0n ? '-' : ''}${text}`;
}

/**
 * Returns the attributes of a caller; null if a value cannot be written as text or no unused value is left. An
 * attribute that matches none of the compared values gets a value that no earlier caller has, since claims compare
 * callers with different values.
 */
function attributesOf(
  encoder: Encoder,
  model: SolverModel,
  earlier: readonly ReadonlyMap<string, AttributeValues>[],
): ReadonlyMap<string, AttributeValues> | null {
  const attributes = new Map<string, AttributeValues>();
  for (const name of encoder.attributes) {
    const hasProperty = (property: string): boolean => isTrue(model, `${encoder.caller} ${property} ${name}`);
    if (hasProperty('missing')) continue;
    if (hasProperty('any')) attributes.set(name, 'any');
    else if (hasProperty('empty')) attributes.set(name, []);
    else {
      const values = valuesOf(
        name,
        encoder,
        model,
        earlier.flatMap((a) => a.get(name) ?? []),
      );
      if (values === null) return null;
      attributes.set(name, values);
    }
  }
  return attributes;
}

function valuesOf(
  attribute: string,
  encoder: Encoder,
  model: SolverModel,
  excluded: readonly string[],
): readonly string[] | null {
  const memberships = encoder.memberships.filter((m) => m.attribute === attribute);
  const values = new Set<string>();
  const others = new Set(excluded);
  for (const { type, args, value } of memberships) {
    const text = value === null ? undefined : columnValue(value, model);
    const isMember = model.holds(encoder.membership(attribute, type, args));
    if (text === undefined) return null;
    if (text !== null) (isMember ? values : others).add(text);
  }
  if (values.size > 0) return [...values];
  const [{ type } = { type: 'text' as const }] = memberships;
  const other = OTHER_VALUES[type]?.find((candidate) => !others.has(candidate));
  return other === undefined ? null : [other];
}

/** By type, values for an attribute that must match no value of the row. */
export const OTHER_VALUES: Readonly<Partial<Record<TypeName, readonly string[]>>> = {
  text: ['another', 'yet another', 'a third'],
  bpchar: ['another', 'yet another', 'a third'],
  int2: ['31001', '31002', '31003'],
  int4: ['31001', '31002', '31003'],
  int8: ['31001', '31002', '31003'],
  numeric: ['31001', '31002', '31003'],
  float8: ['31001', '31002', '31003'],
  bool: ['true', 'false'],
  date: ['2041-05-06', '2041-05-07'],
  uuid: ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'],
};
